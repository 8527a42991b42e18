"""Series of real devices by what they tell, and quiet windows of them: what real nights are put together from.

A window is quiet when no label of its set lies in it and a plain criterion, which knows nothing of the rules, says that
it does not grow (``QUIET``). A finer series is read as a poll would read it, a coarser one is held until its next
reading, as by a device that renews it each five minutes; nothing is smoothed, drawn through or added.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal

import numpy as np
from tests.bench.accuracy.gc_log import collections
from tests.bench.accuracy.night import Floats, floats
from tests.bench.accuracy.real_runs import TABLES, Readings
from tests.bench.accuracy.sets import SETS
from tests.bench.accuracy.trials import columns, epoch, half, number, opened, rows
from tests.bench.accuracy.windows import is_quiet, memory_series

Kind = Literal["memory", "cpu", "traffic", "requests", "latency", "queue", "connections", "temperature", "run queue"]
_TRIES: Final = 300  # windows of one set that are looked at before another set is tried
_PODS: Final = {"2022-08-22": "nezha shop", "2023-01-29": "nezha trains"}
_SMD: Final[Mapping[int, Kind]] = {
    0: "cpu",
    2: "run queue",
    4: "memory",
    5: "memory",
    6: "memory",
    8: "queue",
    18: "traffic",
    19: "traffic",
    20: "traffic",
    21: "traffic",
    23: "connections",
    25: "connections",
}
"""Columns of the server machines, in the order that their public loaders give."""


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """A real series: of which set, which file or column (``name``) of which host, at seconds since its begin. Lines of
    one host share their begin. ``ill`` are the stretches that a label calls abnormal."""

    data: str
    name: str
    host: str
    kind: Kind
    at_s: Floats
    value: Floats
    ill: tuple[tuple[float, float], ...] = ()

    @property
    def length_s(self) -> float:
        """From the first reading to the last."""
        return float(self.at_s[-1])


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """A window of a line, read at the polls of a night."""

    line: Line
    begin_s: float
    value: Floats


# --- what is quiet ---------------------------------------------------------------------------------------------------


def _memory_is_quiet(value: Floats) -> bool:
    """Thirds and medians of sixths agree within 1.5 %, or within 4 % where the last 24th is within 1 % of the first, as
    in a wave of a day; nine readings in ten lie within a third of the median, and the last 24th within 2 % of it."""
    low, middle, high = np.percentile(value, [5, 50, 95])
    if not (low > 0 and high - low < 0.33 * middle):
        return False
    parts = np.array_split(value, 24)
    first, last = float(np.median(parts[0])), float(np.median(parts[-1]))
    if abs(last - middle) > 0.02 * middle:
        return False
    return is_quiet(value) or (abs(last - first) < 0.01 * middle and is_quiet(value, 0.04))


def _sixths(value: Floats) -> Floats:
    return floats([np.median(part) for part in np.array_split(value, 6)])


def _cpu_is_quiet(value: Floats) -> bool:
    """Never over 90 %; it ends within 2 points of where it began, and waves by less than 10 points between."""
    sixths = _sixths(value)
    if not (value.min() >= 0 and value.max() <= 0.9 and np.ptp(value) > 1e-4):
        return False
    return bool(abs(sixths[-1] - sixths[0]) < 0.02 and np.ptp(sixths) < 0.1)


def _load_is_quiet(value: Floats) -> bool:
    """It stays between a tenth of its median and ten times as much, and ends within 15 % of its begin."""
    middle, sixths = float(np.median(value)), _sixths(value)
    if not (middle > 0 and value.min() > 0.1 * middle and value.max() < 10 * middle):
        return False
    return bool(abs(sixths[-1] - sixths[0]) < 0.15 * middle)


def _latency_is_quiet(value: Floats) -> bool:
    """Medians of sixths agree within 15 % of the median, the last 24th is within 30 % of it, and no reading is over ten
    times as long."""
    middle, last = float(np.median(value)), float(np.median(np.array_split(value, 24)[-1]))
    if not (value.min() > 0 and value.max() < 10 * middle and abs(last - middle) < 0.3 * middle):
        return False
    return bool(np.ptp(_sixths(value)) < 0.15 * middle)


def _level_is_quiet(value: Floats) -> bool:
    """A level that waves by less than a fifth of its median between sixths, and never comes to twice the median."""
    middle = float(np.median(value))
    return bool(middle > 0 and value.min() > 0 and value.max() < 2 * middle and np.ptp(_sixths(value)) < 0.2 * middle)


def _queue_is_quiet(value: Floats) -> bool:
    """Not empty throughout, and no sixth is twice as full on average as another and as all."""
    means = floats([part.mean() for part in np.array_split(value, 6)])
    return bool(value.max() > 0 and means.max() < 2 * max(float(means.min()), 0.5 * float(value.mean())))


QUIET: Final[Mapping[Kind, Callable[[Floats], bool]]] = {
    "memory": _memory_is_quiet,
    "cpu": _cpu_is_quiet,
    "traffic": _load_is_quiet,
    "requests": _load_is_quiet,
    "latency": _latency_is_quiet,
    "queue": _queue_is_quiet,
    "connections": _memory_is_quiet,
    "temperature": _level_is_quiet,
    "run queue": _level_is_quiet,
}
"""When a window of a kind may stand in a healthy night."""


# --- the sets --------------------------------------------------------------------------------------------------------


def _line(
    data: str,
    name: str,
    kind: Kind,
    time_s: Floats,
    value: Floats,
    *,
    host: str = "",
    begin_s: float | None = None,
    ill: Sequence[tuple[float, float]] = (),
) -> Iterator[Line]:
    """A line of the readings that are numbers, in order of time; none where there are too few."""
    there = np.flatnonzero(np.isfinite(time_s) & np.isfinite(value))
    at, first = np.unique(time_s[there], return_index=True)
    if at.size >= 100:
        begin = float(at[0]) if begin_s is None else begin_s
        own = tuple((a - begin, b - begin) for a, b in ill)
        yield Line(data, name, host or name, kind, floats(at - begin), floats(value[there][first]), own)


def _stretches(label: Floats, apart_s: float) -> list[tuple[float, float]]:
    """Where a column of labels is not 0, in seconds."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0.0], label > 0, [0.0]])))
    return [(apart_s * a, apart_s * b) for a, b in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)]


def _memory_of_hosts(folder: Path) -> Iterator[Line]:
    """The application servers and services whose columns have no names: those that keep a level may be a memory's."""
    labels: dict[str, list[tuple[float, float]]] = {}
    for path in sorted((folder / "asd_smd").glob("omi*.npz")):
        with np.load(path) as kept:
            labels[f"{path.stem} test"] = _stretches(kept["test_label"], 300.0)
    for path in sorted((folder / "jumpstarter_d2").glob("test_label_*.csv.gz")):
        with opened(path) as file:
            label = np.loadtxt(file, delimiter=",").ravel()
        labels[path.name.replace("label_", "")] = _stretches(label, 300.0)
    for data, name, time_s, value in memory_series(folder):
        host = name.rpartition(" ")[0]
        if data == "asd_smd" and name.startswith("omi"):
            yield from _line("application servers", name, "memory", time_s, value, host=host, ill=labels.get(host, ()))
            yield from _line("application servers", name, "cpu", time_s, value, host=host, ill=labels.get(host, ()))
        elif data == "jumpstarter_d2":
            yield from _line(data, name, "memory", time_s, value, host=host, ill=labels.get(host, ()))
        elif data == "llm_aging" or (data == "alibaba_mem" and name != "m_1939.csv"):  # that one is all anomalous
            yield from _line(data, name, "memory", time_s, value)


def _servers(folder: Path) -> Iterator[Line]:
    """Two server machines by column."""
    for path in sorted((folder / "asd_smd").glob("machine*.npz")):
        with np.load(path) as kept:
            for part in ("train", "test"):
                every = kept[part]
                ill = _stretches(kept["test_label"], 60.0) if part == "test" else ()
                time_s = floats(60.0 * np.arange(len(every)))
                for column, kind in _SMD.items():
                    name, value = f"{path.stem} {part} {column}", floats(every[:, column])
                    yield from _line("server machines", name, kind, time_s, value, host=f"{path.stem} {part}", ill=ill)


def _pods(folder: Path) -> Iterator[Line]:
    """Pods of two shops: memory, CPU, traffic, requests and latency; ill from five minutes before a fault to fifteen
    after it."""
    asked: tuple[tuple[str, Kind, float], ...] = (
        ("MemoryUsage(Mi)", "memory", 1.0),
        ("CpuUsageRate(%)", "cpu", 0.01),
        ("NetworkReceiveBytes", "traffic", 1.0),
        ("NetworkTransmitBytes", "traffic", 1.0),
        ("PodWorkload(Ops)", "requests", 1.0),
        ("PodServerLatencyP90(s)", "latency", 1.0),
        ("PodServerLatencyP99(s)", "latency", 1.0),
    )
    for day in sorted((folder / "nezha").glob("20*")):
        faults = [f for hour in json.loads((day / "fault_list.json").read_text()).values() for f in hour]
        for path in sorted(day.glob("*_metric.csv.gz")):
            pod = path.name.removesuffix("_metric.csv.gz")
            begun = [number(f["inject_timestamp"]) for f in faults if f["inject_pod"] == pod]
            time_s, *values = columns(path, "TimeStamp", *(column for column, _, _ in asked))
            for (column, kind, unit), value in zip(asked, values, strict=True):
                ill = [(b - 300, b + 900) for b in begun] if kind != "memory" else []
                host, begin_s = f"{day.name} {pod}", float(np.nanmin(time_s))
                name = f"{host} {column}"
                yield from _line(_PODS[day.name], name, kind, time_s, unit * value, host=host, begin_s=begin_s, ill=ill)


def _heaps(folder: Path) -> Iterator[Line]:
    """Heaps after each collection, of the servers that are known not to leak."""
    if not (folder / "gc_logs").is_dir():
        return
    for truth in rows(folder / "gc_logs" / "truth.csv"):
        if not ("leak_" in truth["verdict"] or truth["verdict"] == "slow_leak"):
            found = collections(folder / "gc_logs" / truth["file"])
            yield from _line("gc_logs", truth["file"], "memory", found.time_s, found.heap)


_OF_TABLES: Final[Mapping[str, Kind]] = {
    "system.memory.usage": "memory",
    "system.memory.available": "memory",
    "system.cpu.utilization": "cpu",
    "load.request.rate": "requests",
    "load.latency": "latency",
}


def _of_tables(folder: Path) -> Iterator[Line]:
    """A soak's host, a router for three hours, and databases for 2.8 h, as ``real_runs.py`` reads them."""
    for name in filter(lambda name: (folder / name).is_dir(), ("llm_aging", "cisco_telemetry_11", "sysbench_tpcc")):
        for table in TABLES[name](folder / name):
            if table.truth != "ill":
                for read in table.readings:
                    if name != "llm_aging" or read.metric != "system.memory.usage":  # is read with the other memories
                        yield from _of_table(name, table.file, read)


def _of_table(data: str, file: str, read: Readings) -> Iterator[Line]:
    value = read.value / 100 if read.unit == "%" else read.value
    name = f"{file} {read.metric} {read.object}"
    yield from _line(data, name, _OF_TABLES[read.metric], read.at_s, value, host=file)


def _cloud(folder: Path) -> Iterator[Line]:
    """Metrics of a cloud each five minutes, with labelled windows."""
    kinds: Mapping[str, Kind] = {"cpu": "cpu", "network": "traffic", "elb": "requests", "temperature": "temperature"}
    for trial in SETS["nab"](folder / "nab") if (folder / "nab").is_dir() else ():
        kind = next((kind for word, kind in kinds.items() if word in trial.file), None)
        if trial.rule == "step_change" and kind is not None:
            line = trial.case.series[0]
            ill = [(a * 1e-9, b * 1e-9) for a, b in trial.labels or ()]
            value = line.values / 100 if kind == "cpu" else line.values
            yield from _line("nab", trial.file, kind, floats(line.time_ns * 1e-9), floats(value), ill=ill)


def _services(folder: Path) -> Iterator[Line]:
    """Rates of two services and a shop's requests and latency."""
    for path in sorted((folder / "ms_cloud").glob("*rate/ingress*.csv.gz")) + sorted(
        (folder / "ms_cloud").glob("*rps/*.csv.gz")
    ):
        read = [(epoch(r["TimeStamp"].strip('"')), number(r["Value"]), number(r["Label"])) for r in rows(path)]
        time_s, value, label = np.array(read, dtype=np.float64).T
        ill = [(t - 300, t + 900) for t in time_s[label > 0].tolist()]
        kind: Kind = "traffic" if "ingress" in path.name else "requests"
        yield from _line("ms_cloud", path.name, kind, time_s, value, ill=ill)
    path = folder / "petshop_low" / "noissue" / "metrics.csv.gz"
    if not path.exists():
        return
    with opened(path) as file:
        services, metrics, statistics, _, *lines = csv.reader(file)
    table = np.array([[number(cell) for cell in line] for line in lines], dtype=np.float64)
    for column, (service, metric, statistic) in enumerate(zip(services, metrics, statistics, strict=True)):
        asked = {("requests", "Sum"): "requests", ("latency", "p50"): "latency", ("latency", "p99"): "latency"}
        own = asked.get((metric, statistic))
        if own is not None:
            kind = "requests" if own == "requests" else "latency"
            name = f"{service} {metric} {statistic}"
            begin_s = float(table[0, 0])
            value = floats(table[:, column])
            yield from _line("petshop", name, kind, floats(table[:, 0]), value, host=service, begin_s=begin_s)


@cache
def lines(folder: Path, which: str) -> tuple[Line, ...]:
    """The real series of a half of the hosts of each set (see ``trials.half``), in the order of a hash of their names.

    Raises FileNotFoundError where the folder holds none.
    """
    readers = (_memory_of_hosts, _servers, _pods, _heaps, _of_tables, _cloud, _services)
    every = [line for reader in readers for line in reader(folder)]
    if not every:
        raise FileNotFoundError(f"{folder}: none of the real sets is there")
    hosts: dict[str, set[str]] = {}
    for line in every:
        hosts.setdefault(line.data, set()).add(line.host)
    chosen = {data: half(which, of) for data, of in hosts.items()}
    kept = [line for line in every if line.host in chosen[line.data]]
    return tuple(sorted(kept, key=lambda line: hashlib.sha256(f"{line.data} {line.name}".encode()).digest()))


# --- windows ---------------------------------------------------------------------------------------------------------


def window(line: Line, begin_s: float, at_s: Floats) -> Floats | None:
    """What a device would have answered to polls at these times after ``begin_s``: the last reading. None where the
    window leaves the line, meets a label or holds an hour without a reading."""
    polled = begin_s + at_s
    if begin_s < line.at_s[0] or polled[-1] > line.length_s or _is_ill(line, begin_s, float(polled[-1])):
        return None
    index = np.searchsorted(line.at_s, polled, side="right") - 1
    if float((polled - line.at_s[index]).max()) > 3600:
        return None
    return floats(line.value[index])


def _is_ill(line: Line, begin_s: float, end_s: float) -> bool:
    return any(begin < end_s and end > begin_s for begin, end in line.ill)


def quiet(
    rng: np.random.Generator, real: Sequence[Line], kind: Kind, at_s: Floats, beside: Stretch | None = None
) -> Stretch | None:
    """A quiet window of a kind: of the host and the time of another window where that host has one, else of a set, a
    host and a time that are drawn, every set as often as another. None where no set has one."""
    if beside is not None:
        for line in real:
            if line.kind == kind and (line.data, line.host) == (beside.line.data, beside.line.host):
                found = _quiet_at(line, beside.begin_s, at_s)
                if found is not None:
                    return found
    of_set: dict[str, list[Line]] = {}
    for line in real:
        if line.kind == kind and line.length_s - line.at_s[0] > at_s[-1]:
            of_set.setdefault(line.data, []).append(line)
    names = sorted(of_set)
    for name in rng.permutation(len(names)).tolist():
        own = of_set[names[name]]
        for _ in range(_TRIES):
            line = own[int(rng.integers(len(own)))]
            found = _quiet_at(line, float(rng.uniform(line.at_s[0], line.length_s - at_s[-1])), at_s)
            if found is not None:
                return found
    return None


def _quiet_at(line: Line, begin_s: float, at_s: Floats) -> Stretch | None:
    value = window(line, begin_s, at_s)
    return Stretch(line, begin_s, value) if value is not None and QUIET[line.kind](value) else None
