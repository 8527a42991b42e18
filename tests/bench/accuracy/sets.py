"""The real data sets, each as trials: which rule is asked what, and what is known. Where truth is weak it says so."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from tests.bench.accuracy.gc_log import collections
from tests.bench.accuracy.trials import (
    BUSY,
    MEMORY,
    RATE,
    Floats,
    S,
    Trial,
    Truth,
    alone,
    carried,
    columns,
    epoch,
    number,
    opened,
    rows,
    series,
)

from soakwatch_model.case import Case
from soakwatch_model.event import Event
from soakwatch_model.series import Series, Trait
from soakwatch_model.window import Phase, Window

Labels = tuple[tuple[int, int], ...]
_FAULT_S = 300.0  # a CPU fault of nezha lasts about three minutes; readings come each minute


def _ns(begin_s: float, end_s: float) -> tuple[int, int]:
    return round(begin_s * S), round(end_s * S)


def nezha(folder: Path) -> Iterator[Trial]:
    """Pods with injected faults: CPU faults are to be found in the pod that has them; memory has no truth."""
    for day in sorted(folder.glob("20*")):
        fault_list = json.loads((day / "fault_list.json").read_text())
        faults = [fault for hour in fault_list.values() for fault in hour]
        for path in sorted(day.glob("*_metric.csv.gz")):
            time_s, busy, memory = columns(path, "TimeStamp", "CpuUsageRate(%)", "MemoryUsage(Mi)")
            pod = path.name.removesuffix("_metric.csv.gz")
            own = [f for f in faults if f["inject_pod"] == pod and f["inject_type"].startswith("cpu")]
            begun = [number(f["inject_timestamp"]) for f in own]
            labels = tuple(_ns(b - 60, b + _FAULT_S) for b in begun)
            name = f"{day.name}/{path.name}"
            cpu = series("system.cpu.utilization", time_s, np.clip(busy / 100, 0, 2), BUSY, cadence_s=60.0)
            yield Trial("nezha", name, "cpu_spike", alone(cpu), labels=labels, note="pods, not devices")
            used = series("process.memory.usage", time_s, memory * 2**20, MEMORY, object_="process=pod", cadence_s=60.0)
            yield Trial("nezha", name, "growth", alone(used), note="no leak labels: reported, not scored")


def hpas_ldms(folder: Path) -> Iterator[Trial]:
    """Ten minutes of an application, with memory leaks of 48 MB/s that are freed at their end, and other anomalies."""
    events = list(rows(folder / "events.csv"))
    for path in sorted(folder.glob("*/meminfo.csv.gz")):
        name = path.parent.name
        time_s, total, free = columns(path, "Time", "MemTotal", "MemAvailable")
        used = series("system.memory.usage", time_s, (total - free) * 1024, MEMORY, cadence_s=1.0)
        begin = float(time_s[0])
        own = [e for e in events if e["run"] == name and e["anomaly"] == "memleak"]
        leaks = [(number(e["start_s"]), number(e["end_s"])) for e in own]
        first = leaks[0] if leaks else (float("nan"), float("nan"))
        low, high = (first[0] + 5, first[1] - 20) if leaks else (60.0, 400.0)  # some are freed a little early
        seen = used.between(*_ns(begin + low, begin + high))
        for rule, more in (("growth", {"shortest": 60.0}), ("memory_growth", {})):
            yield Trial(
                "hpas_ldms",
                name,
                rule,
                alone(seen),
                "ill" if leaks else "well",
                more=more,
                note="steep leaks: logic, not sensitivity",
            )
        if len(leaks) == 1 and first[0] > 45:
            case = _after_stress(used, begin, *first)
            yield Trial(
                "hpas_ldms",
                name,
                "recovery",
                case,
                "well",
                more={"tolerance": 0.1},
                note="freed to within 10 %: 5 % stay, and every run rises by 9 % at its end",
            )


def _after_stress(used: Series, begin: float, start: float, end: float) -> Case:
    """The run as baseline, stress and recovery; its start-up of ten seconds is left out."""
    last = float(used.time_ns[-1]) / S + 1
    edges = [begin + 10, begin + start, begin + end, last]
    names = ("baseline", "stress", "recovery")
    phases = tuple(Phase(names[i], Window(*_ns(edges[i], edges[i + 1]))) for i in range(3))
    window = Window(*_ns(edges[0], edges[-1]))
    return Case("dut", "", window, (used.between(window.begin_ns, window.end_ns),), phases=phases)


def gc_logs(folder: Path) -> Iterator[Trial]:
    """Heaps after collection of real servers, half a day to ten days, and their pauses."""
    for truth in rows(folder / "truth.csv"):
        name, verdict = truth["file"], truth["verdict"]
        time_s, heap, ceiling, pause, full = collections(folder / name)
        floor = _floor(time_s, heap, replace(MEMORY, ceiling=float(np.nanmax(ceiling))))
        known: Truth = "ill" if "leak_to" in verdict or verdict == "slow_leak" else "well"
        if verdict.startswith(("growth_leak_or", "periodic")):
            known = "unknown"
        for rule in ("growth", "memory_growth"):
            yield Trial("gc_logs", name, rule, alone(floor), known, note="truth read out of the log by us")
        events = tuple(
            Event("pause", "dut", "", *_ns(a, a + p)) for a, p in zip(time_s[full], pause[full], strict=True)
        )
        window = Window(*_ns(float(time_s[0]), float(time_s[-1]) + 1))
        case = replace(
            alone(floor), series=(), object="", window=window, phases=(Phase("soak", window),), events=events
        )
        fixed = verdict.startswith("periodic") or name.startswith("ps__details__854")
        yield Trial(
            "gc_logs",
            name,
            "periodic_pause",
            case,
            "ill" if fixed else "unknown",
            note="full collections",
            detail=f"median interval {truth['full_gc_interval_median_s']} s",
        )


def _floor(time_s: Floats, heap: Floats, trait: Trait) -> Series:
    """The lowest heap after a collection in each 480th of the run: collections come as they like."""
    read = np.isfinite(heap)
    time_s, heap = time_s[read], heap[read]
    wide = max(float(time_s[-1] - time_s[0]) / 480, 1e-3)
    bucket = ((time_s - time_s[0]) / wide).astype(int)
    kept, first = np.unique(bucket, return_index=True)
    lowest = np.minimum.reduceat(heap, first)
    return series("process.memory.usage", time_s[0] + wide * (kept + 0.5), lowest, trait, object_="process=java")


def sysbench_tpcc(folder: Path) -> Iterator[Trial]:
    """Transactions a second for 2.8 h: declines of 10 to 72 %, stable runs, a warm-up and a stall as traps."""
    for truth in rows(folder / "truth.csv"):
        time_s, tps = [], []
        with opened(folder / truth["file"]) as file:
            for line in file:
                cells = line.split(",")
                if len(cells) > 6 and cells[0].isdigit():
                    time_s.append(float(cells[0]))
                    tps.append(number(cells[2]))
        case = carried(series("load.request.rate", time_s, tps, RATE, cadence_s=1.0))
        change = number(truth["change_last_vs_first_pct"])
        yield Trial(
            "sysbench_tpcc",
            truth["file"],
            "performance_decline",
            case,
            "ill" if change < -5 else "well",
            note="medians of the first and the last sixth",
            detail=f"{change:+.1f} %",
        )
        zero = number(truth["zero_tps_seconds"])
        yield Trial(
            "sysbench_tpcc",
            truth["file"],
            "periodic_pause",
            case,
            "ill" if zero else "unknown",
            note="seconds of no transaction; other dips have no labels",
            detail=f"{zero:.0f} s",
        )


def dbtester(folder: Path) -> Iterator[Trial]:
    """Databases under write load: seconds of no throughput, and memory that grows with the data that it holds."""
    stalls: dict[str, list[tuple[float, float]]] = {}
    for row in rows(folder / "stalls.csv"):
        stalls.setdefault(row["run"], []).append((number(row["zero_start_unix"]), number(row["zero_len_s"])))
    for path in sorted(folder.glob("20*/*-timeseries.csv")):
        name = f"{path.parent.name}/{path.name}"
        time_s, rate = columns(path, "unix_ts", "throughput")
        if time_s.size < 30:
            continue
        labels = tuple(_ns(begin - 1, begin + lasts + 1) for begin, lasts in stalls.get(name, []))
        case = carried(series("load.request.rate", time_s, rate, RATE, cadence_s=1.0))
        yield Trial(
            "dbtester",
            name,
            "periodic_pause",
            case,
            labels=labels,
            whole=False,
            note="seconds of no throughput, most stalls one; shallower dips have no labels",
        )
    for path in sorted(folder.glob("20*/*-monitor.csv.gz")):
        time_s, used = columns(path, "unix_ts", "VmRSSBytes")
        if time_s.size < 30:
            continue
        memory = series("process.memory.usage", time_s, used, MEMORY, object_="process=db", cadence_s=1.0)
        flat = path.parent.name == "2016050901"
        yield Trial(
            "dbtester",
            f"{path.parent.name}/{path.name}",
            "growth",
            alone(memory),
            "well" if flat else "unknown",
            note="under 67 min; grows with its data: reported, not scored (2016050901 is flat)",
        )


def llm_aging(folder: Path) -> Iterator[Trial]:
    """A text service under constant load for days; that the trend is a leak is the reading of its authors."""
    for path in sorted(folder.glob("*.csv.gz")):
        read = [(epoch(r["currentTime"]), number(r["usedMemory"]), number(r["totalCpuUsage(%)"])) for r in rows(path)]
        time_s, used, busy = np.array(read, dtype=np.float64).T
        memory = series("system.memory.usage", time_s, used, MEMORY, cadence_s=60.0)
        for rule in ("growth", "memory_growth", "step_change"):
            yield Trial("llm_aging", path.name, rule, alone(memory), note="weak truth: reported, not scored")
        cpu = series("system.cpu.utilization", time_s, busy / 100, BUSY, cadence_s=60.0)
        yield Trial("llm_aging", path.name, "cpu_spike", alone(cpu), note="no labels: reported, not scored")


def perseus_failover(folder: Path) -> Iterator[Trial]:
    """A node is isolated and comes back: seconds without any operation, known to the second."""
    for path in sorted(folder.glob("*.log")):
        time_s: list[float] = []
        done: list[float] = []
        marks: list[float] = []
        for line in path.read_text(encoding="utf-8").splitlines():
            cells = line.split("\t")
            if line.startswith("# "):
                marks.append(time_s[-1] if time_s else 0.0)
            elif len(cells) >= 7 and cells[0].isdigit():
                time_s.append(float(cells[0]))
                done.append(sum(number(cell) for cell in cells[1:4]))
        rate, second = np.array(done), np.array(time_s)
        zero = (rate == 0) & (second > marks[1])
        labels = _stretches(second, zero)
        case = carried(series("load.request.rate", second, rate, RATE, cadence_s=1.0))
        yield Trial(
            "perseus_failover",
            path.name,
            "periodic_pause",
            case,
            labels=labels,
            lasted_s=float(zero.sum()),
            note="seconds without any operation after the isolation",
        )


def _stretches(second: Floats, inside: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Labels:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], inside, [False]]).astype(int)))
    return tuple(_ns(float(second[a]) - 1, float(second[b - 1]) + 1) for a, b in pairwise([*edges.tolist(), -1]))[::2]


def cisco_telemetry_11(folder: Path) -> Iterator[Trial]:
    """A router of which one interface is shut and opened: CPU and memory do not react, its data rate does."""
    for path in sorted(folder.glob("*.csv.gz")):
        if "cpu-utilization" in path.name:
            for node, got in _by(path, "node-name", "total-cpu-one-minute").items():
                cpu = series("system.cpu.utilization", got[0], got[1] / 100, BUSY, cadence_s=10.0)
                yield Trial("cisco_telemetry_11", f"{path.name} {node}", "cpu_spike", alone(cpu), "well", labels=())
        if "memory-summary" in path.name:
            for node, got in _by(path, "node-name", "free-physical-memory").items():
                down = replace(MEMORY, growth="down")
                free = series("system.memory.available", got[0], got[1], down, cadence_s=10.0)
                for rule in ("growth", "memory_growth", "step_change"):
                    yield Trial("cisco_telemetry_11", f"{path.name} {node}", rule, alone(free), "well", note="flat")
        if "data-rate" in path.name:
            rate = _by(path, "interface-name", "input-data-rate").get("HundredGigE0/0/0/10")
            events = [e for e in rows(folder / "events.csv.gz") if e["event"].endswith("_interface")]
            turned = [(e["event"], number(e["timestamp"])) for e in events]
            if rate is not None:
                case = carried(series("load.request.rate", rate[0], rate[1], RATE, cadence_s=10.0))
                shut = [(a, b) for (what, a), (_, b) in pairwise(turned) if what.startswith("shutdown")]
                shut = [(a, b) for a, b in shut if a > rate[0][0] and b < rate[0][-1] - 60]
                yield Trial(
                    "cisco_telemetry_11",
                    path.name,
                    "periodic_pause",
                    case,
                    labels=tuple(_ns(a, b) for a, b in shut),
                    lasted_s=sum(b - a for a, b in shut),
                    note="an interface shut for 40 min and opened again",
                )


def _by(path: Path, key: str, column: str) -> dict[str, tuple[Floats, Floats]]:
    rows_of: dict[str, list[tuple[float, float]]] = {}
    for row in rows(path):
        rows_of.setdefault(row[key], []).append((epoch(row[""]), number(row[column])))
    tables = {name: np.array(read) for name, read in sorted(rows_of.items()) if len(read) > 50}
    return {name: (read[:, 0], read[:, 1]) for name, read in tables.items()}


def nab(folder: Path) -> Iterator[Trial]:
    """Cloud metrics each five minutes with wide labelled windows; hand labels that are known to be incomplete."""
    windows = json.loads((folder / "combined_windows.json").read_text())
    for path in sorted(folder.glob("real*/*.csv")):
        name = f"{path.parent.name}/{path.name}"
        read = [(epoch(r["timestamp"]), number(r["value"])) for r in rows(path)]
        time_s, value = np.array(read, dtype=np.float64).T
        labels = tuple(_ns(epoch(a), epoch(b)) for a, b in windows[name])
        if "cpu" in name:
            cpu = series("system.cpu.utilization", time_s, value / 100, BUSY, cadence_s=300.0)
            yield Trial("nab", name, "cpu_spike", alone(cpu), labels=labels, note="labels are no spikes to 95 %")
            if not labels:
                yield Trial(
                    "nab",
                    name,
                    "cpu_spike",
                    alone(cpu),
                    "well",
                    labels=(),
                    more={"coarsest": 300.0},
                    note="labels are no spikes to 95 %",
                    detail="quiet",
                )
        level = series("load.latency", time_s, value, replace(RATE, unit="{reading}"), cadence_s=300.0)
        yield Trial("nab", name, "step_change", alone(level), labels=labels, note="labels are anomalies, not steps")


def asd_smd(folder: Path) -> Iterator[Trial]:
    """Servers scaled to 0..1: CPU against the segments whose explanation lists it."""
    for path in sorted(folder.glob("machine*.npz")):
        with np.load(path) as kept:
            value, before = (kept[part][:, 0].astype(np.float64) for part in ("test", "train"))
        calm = series("system.cpu.utilization", 60.0 * np.arange(before.size), before, BUSY, cadence_s=60.0)
        yield Trial(
            "asd_smd",
            path.name,
            "cpu_spike",
            alone(calm),
            "well",
            labels=(),
            detail="quiet",
            note="scaled to its own range; labels say that the machine was ill: weak truth",
        )
        interpretation = folder / "interpretation_label" / f"{path.stem}.txt"
        labels = []
        for line in interpretation.read_text().split() if interpretation.exists() else []:
            stretch, _, which = line.partition(":")
            first, _, last = stretch.partition("-")
            if "1" in which.split(","):
                labels.append(_ns(60 * (number(first) - 1), 60 * (number(last) + 1)))
        cpu = series("system.cpu.utilization", 60.0 * np.arange(value.size), value, BUSY, cadence_s=60.0)
        yield Trial(
            "asd_smd",
            path.name,
            "cpu_spike",
            alone(cpu),
            labels=tuple(labels) if interpretation.exists() else None,
            note="scaled to its own range; labels say that the machine was ill: weak truth",
        )


SETS: dict[str, Callable[[Path], Iterator[Trial]]] = {
    f.__name__: f
    for f in (
        nezha,
        hpas_ldms,
        gc_logs,
        sysbench_tpcc,
        dbtester,
        llm_aging,
        perseus_failover,
        cisco_telemetry_11,
        nab,
        asd_smd,
    )
}
"""The sets by name."""
