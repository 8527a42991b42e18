"""What a column becomes: a metric of the catalogue by its name, its alias or the user's word, else ``imported.X``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from soakwatch.core.suggest import hint
from soakwatch.sources.tables.errors import DataError
from soakwatch.sources.tables.options import Meaning, Options
from soakwatch.sources.tables.units import EXAMPLES, fits, into, split_header, unit
from soakwatch_agent.metric import BY_NAME, Metric, slack_of
from soakwatch_agent.sample import object_text

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
"""What columns of times are called, without blanks and in small letters; those before others come first."""

IMPORTED = "imported."
"""Metrics outside of the catalogue bear this before their column's name: their trait is in the record."""
OTHERWISE = " (--unit COLUMN=… says otherwise)"
_OF_PROC = frozenset({"MemTotal", "MemAvailable", "VmRSS", "VmSize"})
NO_UNIT = "{unit}"
"""What nobody told the unit of: "1" would be shown as a share in percent."""
MEMORY, MEMORY_SHARE = "system.memory.usage", "system.memory.utilization"
LEAST_BYTES = 2.0**20  # what has no unit and is smaller than this may be kilobytes, megabytes or a share
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
    """What a column is in the record: readings are its numbers times ``scale``, in ``unit``.

    ``scale`` is None where only the readings can tell it (see ``scale_of``).
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
        """Whether the catalogue does not know it."""
        return self.metric.startswith(IMPORTED)


def naming(column: str, target: str, told: Options, labels: Mapping[str, str], given: str | None = None) -> Naming:
    """The naming of a column (or of a metric in a long table, with the unit ``given`` there). Raises DataError."""
    bare, of_header = split_header(column)
    said = told.units.get(column) or given or of_header
    meant = told.meanings.get(column)
    if meant is not None:
        return _mapped(column, meant, target, told, labels, said)
    metric, own = _metric_of(column, bare)
    if metric == MEMORY and said is not None and unit(said).name == "1":
        metric = MEMORY_SHARE
    if metric is not None and (said is None or fits(said, BY_NAME[metric].unit) or column in told.units):
        exact = column.strip() in BY_NAME or bool(own)  # who knows the catalogue's name also knows its unit
        return _of_catalogue(column, BY_NAME[metric], target, told, {**own, **labels}, said, sure=exact)
    return _outside(column, bare, told, labels, said)


def outside(column: str, told: Options, labels: Mapping[str, str]) -> Naming:
    """The naming of a column that does not turn out to be what its name says."""
    bare, of_header = split_header(column)
    return _outside(column, bare, told, labels, told.units.get(column) or of_header)


def scale_of(column: str, made: Naming, largest: float, median: float) -> tuple[float | None, str]:
    """The factor for a column without a unit, and what is to be told of it; None where nobody can know.

    Only what shows is taken for granted: a share above 1 is in percent, names as in /proc are in KiB, and what is above
    a million is in bytes.
    """
    if made.scale is not None:
        return made.scale, ""
    if made.unit == "1":
        percent = largest > 1 + slack_of(made.metric)
        word = "in percent, for it exceeds 1" if percent else "as a share of 1, for it never exceeds that"
        if not percent and largest > 1:
            word = f"as a share of 1, for it exceeds that by no more than {largest - 1:.2g}"
        return (0.01 if percent else 1.0), f"read {word}{OTHERWISE}"
    if made.unit == "By" and column in _OF_PROC:
        return 1024.0, f"read in KiB, as /proc has it{OTHERWISE}"
    if made.unit == "By" and median >= LEAST_BYTES:
        return 1.0, f"read in bytes{OTHERWISE}"
    return None, f"without a unit, so not taken as {made.metric}: say --unit 'COLUMN=…' ({EXAMPLES})"


def _metric_of(column: str, bare: str) -> tuple[str | None, dict[str, str]]:
    match = _BRACED.fullmatch(column.strip())
    if match and match[1] in BY_NAME:
        return match[1], dict(part.split("=", 1) for part in match[2].split(",") if "=" in part)
    if column.strip() in BY_NAME or bare in BY_NAME:
        return (column.strip() if column.strip() in BY_NAME else bare), {}
    plain = re.sub(r"[^a-z0-9]", "", bare.lower())
    found = _BY_ALIAS.get(plain)
    if found is None:
        quantile = _QUANTILE.fullmatch(plain)
        if quantile and plain != quantile[1]:
            return "load.latency", {"quantile": quantile[1]}
    return found, {}


def _mapped(
    column: str, meant: Meaning, target: str, told: Options, labels: Mapping[str, str], said: str | None
) -> Naming:
    unit_text = meant.unit or said
    entry = BY_NAME.get(meant.metric)
    if entry is not None:
        return _of_catalogue(column, entry, target, told, {**meant.labels, **labels}, unit_text, sure=True)
    if not meant.metric.startswith(IMPORTED):
        known = [*BY_NAME, f"{IMPORTED}{_ODD.sub('_', meant.metric)}"]
        raise DataError(f"--map {column}: no metric is called {meant.metric!r}{hint(meant.metric, known)}")
    return _outside(column, meant.metric.removeprefix(IMPORTED), told, {**meant.labels, **labels}, unit_text)


def _of_catalogue(
    column: str,
    entry: Metric,
    target: str,
    told: Options,
    labels: Mapping[str, str],
    said: str | None,
    *,
    sure: bool = False,
) -> Naming:
    kind = told.kinds.get(column)
    if kind is not None and kind != entry.kind:
        raise DataError(
            f"--kind {column}={kind}: {entry.name} is a {entry.kind}; map the column to imported.NAME instead"
        )
    scale = into(said, entry.unit, f"column {column}") if said else _plain_scale(entry, sure=sure)
    name = _object(entry, target, labels)
    return Naming(entry.name, name, entry.unit, scale, entry.kind, entry.growth)


def _plain_scale(entry: Metric, *, sure: bool) -> float | None:
    """Of what has no unit: things are counted in ones, and a column that was mapped is in the metric's own unit."""
    if sure or entry.unit.startswith("{") or entry.unit in {"Cel", "Hz"}:
        return 1.0
    return None if entry.kind == "gauge" or entry.unit == "By" else 1.0


def _object(entry: Metric, target: str, labels: Mapping[str, str]) -> str:
    own = dict(labels)
    if entry.labels[:2] == _OF_PROCESS:
        own = {"process": target, "instance": "0", **own}
    ordered = {label: own.pop(label) for label in entry.labels if label in own}
    return object_text(**ordered, **own)


def _outside(column: str, bare: str, told: Options, labels: Mapping[str, str], said: str | None) -> Naming:
    name = _ODD.sub("_", bare.strip()).strip("_.") or _ODD.sub("_", column).strip("_.") or "column"
    scale, word = 1.0, "1" if said is None else said
    if said is not None:
        found = unit(f"{{{bare}}}/s" if said == "/s" else said)
        word, scale = found.name, found.scale
    else:
        word = NO_UNIT
    kind = told.kinds.get(column, "gauge")
    direction = told.growths.get(column, told.growth) if kind == "gauge" else None
    return Naming(IMPORTED + name, object_text(**labels), word, scale, kind, direction)
