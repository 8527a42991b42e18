"""What a column becomes: a catalogue metric by name, alias or the user's mapping, else ``imported.X``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from soakwatch.core.suggest import hint
from soakwatch.sources.tables.errors import DataError
from soakwatch.sources.tables.options import Meaning, Options
from soakwatch.sources.tables.units import EXAMPLES, fits, into, split_header, unit
from soakwatch_model.metric import BY_NAME, Metric, slack_of
from soakwatch_model.sample import object_text

TIME_NAMES = (
    "time",
    "timestamp",
    "unixts",
    "datetime",
    "currenttime",
    "ts",
    "date",
    "epoch",
    "unixtime",
    "when",
    "utc",
    "elapsed",
    "seconds",
    "timesec",
    "times",
    "t",
    "sec",
    "elapsedtime",
)
"""Names of time columns, lower case without blanks, the preferred ones first."""

IMPORTED = "imported."
"""Prefix of metrics outside the catalogue, whose trait is in the record."""
OTHERWISE = " (override with --unit COLUMN=…)"
_OF_PROC = frozenset({"MemTotal", "MemAvailable", "VmRSS", "VmSize"})
NO_UNIT = "{unit}"
"""The unit of a column without one; not "1", which would be shown in percent."""
MEMORY, MEMORY_SHARE = "system.memory.usage", "system.memory.utilization"
MIN_LIKELY_BYTES = 2.0**20  # smaller values without unit may be KB, MB or a share
_BRACED = re.compile(r"([a-z_.]+)\{(.*)\}")
_ODD = re.compile(r"[^A-Za-z0-9_.]+")
_QUANTILE = re.compile(r"(?:latency|responsetime)?(p\d{2,3}|max|min|mean|avg)(?:latency|responsetime)?")
_OF_PROCESS = ("process", "instance")

_ALIASES: Mapping[str, tuple[str, ...]] = {
    "system.cpu.utilization": (
        "cpu",
        "cpuusage",
        "cpuutil",
        "cpuutilization",
        "cpuutilisation",
        "totalcpuusage",
        "cpubusy",
        "cpuload",
    ),
    "system.memory.usage": (
        "usedmemory",
        "memoryused",
        "memused",
        "usedmem",
        "memusage",
        "memoryusage",
        "memory",
        "mem",
        "ram",
    ),
    "system.memory.utilization": (
        "memoryutilization",
        "memoryutilisation",
        "memutilization",
        "memutil",
        "mempct",
        "memorypercent",
        "mempercent",
        "memorypct",
        "rampercent",
    ),
    "system.memory.available": ("availablememory", "memavailable", "memoryavailable", "availablemem"),
    "system.memory.limit": ("totalmemory", "memtotal", "memorytotal"),
    "system.memory.swap.usage": ("usedswap", "swapused"),
    "system.processes": ("processes", "procs"),
    "system.temperature": ("temperature", "temp"),
    "queue.depth": ("queuedepth", "qdepth", "queuelength"),
    "process.memory.usage": ("rss", "vmrss", "residentmemory", "residentsetsize"),
    "process.memory.virtual": ("vmsize", "vsz", "virtualmemory"),
    "process.threads": ("threads", "numthreads", "threadcount"),
    "process.open_files": ("fd", "fds", "openfds", "openfiles", "numfds", "filedescriptors"),
    "load.request.rate": ("tps", "rps", "qps", "throughput", "requestrate", "requests"),
    "load.latency": ("latency", "responsetime", "avglatency", "meanlatency"),
    "load.failure.rate": ("errorrate", "failurerate"),
    "load.connections": ("connections",),
}
_BY_ALIAS = {alias: metric for metric, aliases in _ALIASES.items() for alias in aliases}


@dataclass(frozen=True, slots=True)
class Naming:
    """A column's name in the record: its readings are the cells times ``scale``, in ``unit``.

    ``scale`` is None if it depends on the readings (see ``scale_of``).
    """

    metric: str
    object: str
    unit: str
    scale: float | None
    kind: str
    growth: str | None
    note: str = ""

    @property
    def imported(self) -> bool:
        """True if the catalogue does not have it."""
        return self.metric.startswith(IMPORTED)


def naming(column: str, target: str, options: Options, labels: Mapping[str, str], given: str | None = None) -> Naming:
    """Names a column (or a metric of a long table, whose lines have the unit ``given``). Raises DataError."""
    bare, of_header = split_header(column)
    unit_text = options.units.get(column) or given or of_header
    meaning = options.meanings.get(column)
    if meaning is not None:
        return _mapped(column, meaning, target, options, labels, unit_text)
    metric, own = _metric_of(column, bare)
    if metric == MEMORY and unit_text is not None and unit(unit_text).name == "1":
        metric = MEMORY_SHARE
    if metric is not None and (unit_text is None or fits(unit_text, BY_NAME[metric].unit) or column in options.units):
        exact = column.strip() in BY_NAME or bool(own)  # a catalogue name implies its unit
        return _of_catalogue(column, BY_NAME[metric], target, options, {**own, **labels}, unit_text, sure=exact)
    return _outside(column, bare, options, labels, unit_text)


def outside(column: str, options: Options, labels: Mapping[str, str]) -> Naming:
    """Names a column as outside the catalogue, although its name suggests otherwise."""
    bare, of_header = split_header(column)
    return _outside(column, bare, options, labels, options.units.get(column) or of_header)


def scale_of(column: str, naming: Naming, largest: float, median: float) -> tuple[float | None, str]:
    """The factor for a column without a unit, and a note on it; None if it cannot be known.

    Only what the readings show is assumed: shares above 1 are percent, names of /proc are KiB, values above 2**20
    bytes.
    """
    if naming.scale is not None:
        return naming.scale, ""
    if naming.unit == "1":
        percent = largest > 1 + slack_of(naming.metric)
        word = "in percent, because it exceeds 1" if percent else "as a share of 1, because it never exceeds 1"
        if not percent and largest > 1:
            word = f"as a share of 1, because it exceeds 1 by at most {largest - 1:.2g}"
        return (0.01 if percent else 1.0), f"read {word}{OTHERWISE}"
    if naming.unit == "By" and column in _OF_PROC:
        return 1024.0, f"read in KiB, as /proc has it{OTHERWISE}"
    if naming.unit == "By" and median >= MIN_LIKELY_BYTES:
        return 1.0, f"read in bytes{OTHERWISE}"
    return None, f"without a unit, so not read as {naming.metric}: give --unit 'COLUMN=…' ({EXAMPLES})"


def _metric_of(column: str, bare: str) -> tuple[str | None, dict[str, str]]:
    match = _BRACED.fullmatch(column.strip())
    if match and match[1] in BY_NAME:
        return match[1], dict(part.split("=", 1) for part in match[2].split(",") if "=" in part)
    if column.strip() in BY_NAME or bare in BY_NAME:
        return (column.strip() if column.strip() in BY_NAME else bare), {}
    plain = re.sub(r"[^a-z0-9]", "", bare.lower())
    metric = _BY_ALIAS.get(plain)
    if metric is None:
        quantile = _QUANTILE.fullmatch(plain)
        if quantile and plain != quantile[1]:
            return "load.latency", {"quantile": quantile[1]}
    return metric, {}


def _mapped(
    column: str, meaning: Meaning, target: str, options: Options, labels: Mapping[str, str], column_unit: str | None
) -> Naming:
    unit_text = meaning.unit or column_unit
    entry = BY_NAME.get(meaning.metric)
    if entry is not None:
        return _of_catalogue(column, entry, target, options, {**meaning.labels, **labels}, unit_text, sure=True)
    if not meaning.metric.startswith(IMPORTED):
        known = [*BY_NAME, f"{IMPORTED}{_ODD.sub('_', meaning.metric)}"]
        raise DataError(f"--map {column}: there is no metric {meaning.metric!r}{hint(meaning.metric, known)}")
    return _outside(column, meaning.metric.removeprefix(IMPORTED), options, {**meaning.labels, **labels}, unit_text)


def _of_catalogue(
    column: str,
    entry: Metric,
    target: str,
    options: Options,
    labels: Mapping[str, str],
    unit_text: str | None,
    *,
    sure: bool = False,
) -> Naming:
    kind = options.kinds.get(column)
    if kind is not None and kind != entry.kind:
        raise DataError(
            f"--kind {column}={kind}: {entry.name} is a {entry.kind}; map the column to imported.NAME instead"
        )
    scale = into(unit_text, entry.unit, f"column {column}") if unit_text else _plain_scale(entry, sure=sure)
    name = _object(entry, target, labels)
    return Naming(entry.name, name, entry.unit, scale, entry.kind, entry.growth)


def _plain_scale(entry: Metric, *, sure: bool) -> float | None:
    """The factor without a unit: counted objects are in ones, a mapped column is in the metric's unit."""
    if sure or entry.unit.startswith("{") or entry.unit in {"Cel", "Hz", "W"}:
        return 1.0
    return None if entry.kind == "gauge" or entry.unit == "By" else 1.0


def _object(entry: Metric, target: str, labels: Mapping[str, str]) -> str:
    own = dict(labels)
    if entry.labels[:2] == _OF_PROCESS:
        own = {"process": target, "instance": "0", **own}
    ordered = {label: own.pop(label) for label in entry.labels if label in own}
    return object_text(**ordered, **own)


def _outside(column: str, bare: str, options: Options, labels: Mapping[str, str], unit_text: str | None) -> Naming:
    bare = bare.strip().removeprefix(IMPORTED) or bare  # exported tables have the record's names
    name = _ODD.sub("_", bare).strip("_.") or _ODD.sub("_", column).strip("_.") or "column"
    scale, word = 1.0, "1" if unit_text is None else unit_text
    if unit_text is not None:
        parsed_unit = unit(f"{{{bare}}}/s" if unit_text == "/s" else unit_text)
        word, scale = parsed_unit.name, parsed_unit.scale
    else:
        word = NO_UNIT
    kind = options.kinds.get(column, "gauge")
    direction = options.growths.get(column, options.growth) if kind == "gauge" else None
    return Naming(IMPORTED + name, object_text(**labels), word, scale, kind, direction)
