"""Real series as whole tables through ``soakwatch judge``: what the verdict says of a file, and what is known of it.

    python tests/bench/accuracy/real_runs.py DATA_DIR [--set nezha] [--each]

Each file becomes a long table with all of its series that the catalogue knows; no rule is named. ``ill``: something is
known to have gone wrong in it; ``well``: nothing is; ``unknown``: nobody has said. Prints Markdown, asserts nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import json
import os
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

for _library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[3]))

import numpy as np  # noqa: E402
from tests.bench.accuracy.gc_log import collections  # noqa: E402
from tests.bench.accuracy.night import floats  # noqa: E402
from tests.bench.accuracy.sets import SETS  # noqa: E402
from tests.bench.accuracy.trials import Floats, Truth, columns, epoch, number, opened, rows  # noqa: E402

from soakwatch.cli.main import run as command  # noqa: E402


@dataclass(frozen=True, slots=True)
class Readings:
    """One column: which metric of which object, in which unit."""

    metric: str
    object: str
    unit: str
    at_s: Floats
    value: Floats


@dataclass(frozen=True, slots=True)
class Table:
    """A file as a whole table; ``names`` are the rules of which one has to fail where it is ill."""

    data: str
    file: str
    truth: Truth
    readings: tuple[Readings, ...]
    names: tuple[str, ...] = ()
    detail: str = ""


def nezha(folder: Path) -> Iterator[Table]:
    """Pods, a reading a minute: CPU and memory; ill where a CPU fault was injected, unknown with another one."""
    for day in sorted(folder.glob("20*")):
        fault_list = json.loads((day / "fault_list.json").read_text())
        faults = [fault for hour in fault_list.values() for fault in hour]
        for path in sorted(day.glob("*_metric.csv.gz")):
            time_s, busy, memory = columns(path, "TimeStamp", "CpuUsageRate(%)", "MemoryUsage(Mi)")
            own = [f["inject_type"] for f in faults if f["inject_pod"] == path.name.removesuffix("_metric.csv.gz")]
            cpu = [kind for kind in own if kind.startswith("cpu")]
            truth: Truth = "ill" if cpu else "unknown" if own else "well"
            yield Table(
                "nezha",
                f"{day.name}/{path.name}",
                truth,
                (
                    Readings("system.cpu.utilization", "", "%", time_s, busy),
                    Readings("process.memory.usage", "process=pod", "By", time_s, memory * 2**20),
                ),
                ("cpu_spike", "cpu_saturation"),
                f"{len(cpu)} CPU faults",
            )


def hpas_ldms(folder: Path) -> Iterator[Table]:
    """Ten minutes at 1 Hz: memory of a host under an application; leaks of 48 MB/s that are freed again."""
    events = list(rows(folder / "events.csv"))
    for path in sorted(folder.glob("*/meminfo.csv.gz")):
        name = path.parent.name
        time_s, total, free = columns(path, "Time", "MemTotal", "MemAvailable")
        leaks = [e for e in events if e["run"] == name and e["anomaly"] == "memleak"]
        others = [e for e in events if e["run"] == name and e["anomaly"] not in {"memleak", "none"}]
        truth: Truth = "ill" if leaks else "unknown" if others else "well"
        yield Table(
            "hpas_ldms",
            name,
            truth,
            (
                Readings("system.memory.usage", "", "By", time_s, (total - free) * 1024),
                Readings("system.memory.available", "", "By", time_s, free * 1024),
            ),
            ("growth", "memory_growth"),
            "freed inside the run",
        )


def gc_logs(folder: Path) -> Iterator[Table]:
    """Heap after each collection: a table that is written by events."""
    for truth in rows(folder / "truth.csv"):
        time_s, heap, _, _, _ = collections(folder / truth["file"])
        verdict = truth["verdict"]
        known: Truth = "ill" if "leak_to" in verdict or verdict == "slow_leak" else "well"
        if verdict.startswith(("growth_leak_or", "periodic")):
            known = "unknown"
        heap_used = Readings("process.memory.usage", "process=java", "By", time_s, heap)
        yield Table("gc_logs", truth["file"], known, (heap_used,), ("growth", "memory_growth", "saturation"), verdict)


def sysbench_tpcc(folder: Path) -> Iterator[Table]:
    """Transactions a second for 2.8 h: ill where the last sixth is 5 % and more below the first, or where it stalls."""
    for truth in rows(folder / "truth.csv"):
        read: list[tuple[float, float, float]] = []
        with opened(folder / truth["file"]) as file:
            for line in file:
                cells = line.split(",")
                if len(cells) > 7 and cells[0].isdigit():
                    read.append((1.6e9 + float(cells[0]), number(cells[2]), number(cells[7])))
        time_s, tps, latency = np.array(read, dtype=np.float64).T
        change, zero = number(truth["change_last_vs_first_pct"]), number(truth["zero_tps_seconds"])
        yield Table(
            "sysbench_tpcc",
            truth["file"],
            "ill" if change < -5 or zero >= 10 else "well",
            (
                Readings("load.request.rate", "", "{request}/s", time_s, tps),
                Readings("load.latency", "quantile=0.95", "ms", time_s, latency),
            ),
            ("performance_decline", "loss", "step_change", "periodic_pause", "latency"),
            f"{change:+.1f} %, {zero:.0f} s of zeros",
        )


def dbtester(folder: Path) -> Iterator[Table]:
    """Databases under write load: ill where no transaction came for 10 s and more at once."""
    stalls: dict[str, list[float]] = defaultdict(list)
    for row in rows(folder / "stalls.csv"):
        stalls[row["run"]].append(number(row["zero_len_s"]))
    for path in sorted(folder.glob("20*/*-timeseries.csv")):
        name = f"{path.parent.name}/{path.name}"
        time_s, rate, latency = columns(path, "unix_ts", "throughput", "avg_latency_ms")
        if time_s.size >= 30:
            longest = max(stalls.get(name, [0.0]))
            yield Table(
                "dbtester",
                name,
                "ill" if longest >= 10 else "unknown",
                (
                    Readings("load.request.rate", "", "{request}/s", time_s, rate),
                    Readings("load.latency", "", "ms", time_s, latency),
                ),
                ("loss", "periodic_pause", "hang"),
                f"longest stall {longest:.0f} s",
            )


def llm_aging(folder: Path) -> Iterator[Table]:
    """A text service under constant load for days; that its trend is a leak is the reading of its authors."""
    for path in sorted(folder.glob("*.csv.gz")):
        read = [(epoch(r["currentTime"]), number(r["usedMemory"]), number(r["totalCpuUsage(%)"])) for r in rows(path)]
        time_s, used, busy = np.array(read, dtype=np.float64).T
        yield Table(
            "llm_aging",
            path.name,
            "unknown",
            (
                Readings("system.memory.usage", "", "By", time_s, used),
                Readings("system.cpu.utilization", "", "%", time_s, busy),
            ),
        )


def perseus_failover(folder: Path) -> Iterator[Table]:
    """A node is isolated, unannounced: ill where no operation came for 10 s and more."""
    for trial in SETS["perseus_failover"](folder):
        load = trial.case.load[0]
        time_s = floats(load.time_ns * 1e-9 + 1.6e9)
        longest = max(((b - a) * 1e-9 - 2 for a, b in trial.labels or ()), default=0.0)
        yield Table(
            "perseus_failover",
            trial.file,
            "ill" if longest >= 10 else "well",
            (Readings("load.request.rate", "", "{request}/s", time_s, load.values),),
            ("loss", "periodic_pause", "hang"),
            f"longest {longest:.0f} s",
        )


def cisco_telemetry_11(folder: Path) -> Iterator[Table]:
    """A router's nodes, each 10 s for 3 h: CPU and free memory, quiet."""
    for trial in SETS["cisco_telemetry_11"](folder):
        if trial.rule in {"cpu_spike", "growth"}:
            line = trial.case.series[0]
            unit = "1" if trial.rule == "cpu_spike" else "By"
            yield Table(
                "cisco_telemetry_11",
                f"{trial.file} {trial.rule}",
                "well",
                (Readings(line.metric, "", unit, floats(line.time_ns * 1e-9), line.values),),
            )


def alibaba_mem(folder: Path) -> Iterator[Table]:
    """Machines of a cluster: memory in percent; busy, without labels but for two."""
    for path in sorted(folder.glob("m_*.csv*")):
        labelled = path.name in {"m_1935.csv", "m_1939.csv"}
        read = [
            (epoch(row[""]), number(row["mem_util_percent"]))
            if labelled
            else (epoch(row["Timestamp"]), number(row["Value"]))
            for row in rows(path)
        ]
        time_s, used = np.array(read, dtype=np.float64).T
        truth: Truth = "well" if path.name == "m_1935.csv" else "unknown"
        yield Table("alibaba_mem", path.name, truth, (Readings("system.memory.utilization", "", "%", time_s, used),))


def pg_queue(folder: Path) -> Iterator[Table]:
    """Minutes of a work queue: nothing is wrong, some begin with a backlog that drains."""
    for path in sorted(folder.glob("*.csv")):
        time_s = np.array([epoch(f"2026-01-01T{row['time']}") for row in rows(path)])
        writes, reads, depth = columns(path, "writes_per_s", "reads_per_s", "qdepth")
        yield Table(
            "pg_queue",
            path.name,
            "well",
            (
                Readings("load.offered.rate", "", "{request}/s", time_s, writes),
                Readings("load.request.rate", "", "{request}/s", time_s, reads),
                Readings("queue.depth", "queue=jobs", "{packet}", time_s, depth),
            ),
        )


TABLES: dict[str, Callable[[Path], Iterator[Table]]] = {
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
        alibaba_mem,
        pg_queue,
    )
}


@dataclass(frozen=True, slots=True)
class TableVerdict:
    """The verdict on one table: ``named`` if one of the rules that should fail it does."""

    table: Table
    verdict: str
    warned: bool
    rules: tuple[str, ...]
    named: bool
    reason: str

    @property
    def outcome(self) -> str:
        """The verdict; a pass with warnings is one of its own."""
        return "warn" if self.verdict == "pass" and self.warned else self.verdict


def judged(table: Table) -> TableVerdict:
    """Write the table, call the command, read its verdict."""
    with tempfile.TemporaryDirectory(prefix="soakwatch-bench-") as folder:
        path, out = Path(folder) / "table.csv", Path(folder) / "verdict.json"
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(("time", "target", "metric", "object", "value", "unit"))
            for readings in table.readings:
                head = (readings.metric, readings.object)
                for time_s, value in zip(readings.at_s.tolist(), readings.value.tolist(), strict=True):
                    if np.isfinite(time_s) and np.isfinite(value):
                        target = "tg" if readings.metric.startswith("load.") else "dut"
                        writer.writerow((f"{time_s:.3f}", target, *head, repr(value), readings.unit))
        heard = io.StringIO()
        with contextlib.redirect_stdout(heard), contextlib.redirect_stderr(heard):
            code = command(["judge", str(path), "--json", str(out)])
        if code not in {0, 1, 3}:
            return TableVerdict(
                table, "refused", warned=False, rules=(), named=False, reason=heard.getvalue()[-200:].strip()
            )
        document = json.loads(out.read_text(encoding="utf-8"))
    deciding = [f for f in document["findings"] if f["outcome"] == document["verdict"] != "pass"]
    failed = {f["rule"] for f in document["findings"] if f["outcome"] == "fail"}
    return TableVerdict(
        table,
        document["verdict"],
        any(f["outcome"] == "warn" for f in document["findings"]),
        tuple(sorted({f["rule"] for f in deciding})),
        bool(failed & set(table.names)),
        document["reason"],
    )


def main() -> None:
    """Read, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--set", action="append", choices=list(TABLES), help="only this set (may be repeated)")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--each", action="store_true", help="a line for every table")
    options = parser.parse_args()
    names = options.set or list(TABLES)
    tables = list(chain.from_iterable(TABLES[name](options.folder / name) for name in names))
    with ProcessPoolExecutor(options.jobs) as pool:
        results = list(pool.map(judged, tables))
    print("| set | truth | tables | FAIL | INCONCLUSIVE | WARN | PASS | refused | named | decided by |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name in names:
        for truth in ("ill", "well", "unknown"):
            own = [result for result in results if result.table.data == name and result.table.truth == truth]
            if own:
                count, rules = (
                    Counter(result.outcome for result in own),
                    Counter(r for result in own for r in result.rules),
                )
                shown = " | ".join(str(count[key]) for key in ("fail", "inconclusive", "warn", "pass", "refused"))
                decided = ", ".join(f"{rule} {number}" for rule, number in rules.most_common(4))
                named = sum(result.named for result in own) if truth == "ill" else ""
                print(f"| {name} | {truth} | {len(own)} | {shown} | {named} | {decided} |")
    for result in results if options.each else ():
        print(
            f"{result.table.data} {result.table.file} {result.table.truth} ({result.table.detail}): {result.outcome}, "
            f"{', '.join(result.rules)}: {result.reason[:200]}"
        )


if __name__ == "__main__":
    main()
