"""CPU time and memory of judging a full record with all rules on one core; prints tables, asserts nothing.

    python tests/bench/judge.py                          makes 72 h x 1000 series x 1 s first: some minutes
    python tests/bench/judge.py --hours 2 --keep /tmp/two-hours
    python tests/bench/judge.py --record /tmp/two-hours  judges that one again

Every series is one that a rule reads: cores, memory, drops, queues, the life and needs of watched processes, boot,
crashes, and the load.
The judge is a process of its own, bound to one core and one thread, so its figures hold nothing of the making.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.bench.record import BEGIN_NS, Signal

from soakwatch.judge.verdict import Verdict
from soakwatch.record import Counts, Record, RecordView, SeriesKey, StoredEvent, StoredFault
from soakwatch.record.bulk import PollStretch, Readings
from soakwatch.record.model import Values
from soakwatch_model.case import Ledger
from soakwatch_model.metric import BY_NAME
from soakwatch_model.sample import object_text
from soakwatch_model.series import Series
from soakwatch_model.window import Phase, Window

ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR")}
TARGET_S, TARGET_MB = 120.0, 1500.0


class Steady(Signal):
    """A reading that never changes (``level``), grows with the time (``uptime``), or is drawn anew (``depth``)."""

    def draw(self, count: int) -> Values:
        """The next readings."""
        if self.kind == "uptime":
            first, self.last_level = self.last_level, self.last_level + count
            return np.arange(first, first + count, dtype=np.float64) * self.level
        if self.kind == "depth":
            return self.rng.poisson(self.level, count).astype(np.int64)
        return np.full(count, int(self.level), dtype=np.int64)


PLAIN = frozenset({"fixed", "uptime", "depth"})


def device(count: int, interval_s: float, seed: int) -> list[Signal]:
    """The device: cores, memory, boot, crashes, interfaces, queues, and watched processes until there are enough.

    Metrics that a probe reads less often than each second come on top of ``count``.
    """
    drawn: list[Signal] = []
    often = 0

    def add(metric: str, kind: str, level: float, /, **labels: object) -> None:
        nonlocal often
        rng = np.random.default_rng([seed, len(drawn)])
        sort = Steady if kind in PLAIN else Signal
        drawn.append(sort(metric, object_text(**labels), kind, level, rng, int(rng.integers(1, 10**6))))
        often += not BY_NAME[metric].every

    add("system.cpu.utilization", "share", 0.4)
    for core in range(32):
        add("system.cpu.core.utilization", "share", min(0.02 * core + 0.05, 0.95), core=core)
        add("system.softnet.dropped", "fixed" if core % 4 else "poisson", 1e-4, core=core)
    for metric in ("usage", "available", "committed", "swap.usage"):
        add(f"system.memory.{metric}", "pages", 500_000)
    add("system.memory.limit", "fixed", 2**34)
    add("system.processes", "few", 400)
    add("system.boot.id", "fixed", 2**47 - 1)
    add("system.boot.time", "fixed", BEGIN_NS // 10**9 - 10**6)
    add("system.uptime", "uptime", interval_s)
    add("system.memory.oom_kills", "fixed", 0)
    add("system.core.files", "fixed", 0, folder="/var/crash")
    for kind in ("oom", "segfault"):
        add("system.kernel.alarms", "fixed", 0, kind=kind)
    add("system.conntrack.count", "depth", 40_000)
    add("system.conntrack.limit", "fixed", 2**18)
    for mount in ("/", "/var", "/var/log"):
        add("system.filesystem.usage", "pages", 10**6, mountpoint=mount)
        add("system.filesystem.limit", "fixed", 2**36, mountpoint=mount)
    for interface in range(8):
        for direction in ("receive", "transmit"):
            labels = {"interface": f"eth{interface}", "direction": direction}
            add("system.network.packet.dropped", "poisson", 1e-3, **labels)
            add("system.network.errors", "fixed", 0, **labels)
    for protocol in ("udp", "tcp"):
        for reason in ("buffer", "checksum"):
            add(f"system.{protocol}.receive_errors", "poisson", 1e-5, reason=reason)
    for queue in range(16):
        add("queue.depth", "depth", 40, queue=queue)
        add("queue.limit", "fixed", 4096, queue=queue)
        add("queue.dropped", "poisson", 1e-4, queue=queue)
    for process in range(count):
        labels = {"process": f"worker{process}", "instance": "0"}
        add("process.memory.usage", "pages", 30_000, **labels)
        add("process.memory.pss", "pages", 25_000, **labels)
        add("process.up", "fixed", 1, **labels)
        add("process.start_time", "fixed", BEGIN_NS // 10**9 - 1000, **labels)
        add("process.pid", "fixed", 1000 + process, **labels)
        add("process.count", "fixed", 1, process=f"worker{process}")
        add("process.cpu.utilization", "elapsed", 0.3, **labels)
        add("process.open_files", "few", 120, **labels)
        add("process.threads", "few", 16, **labels)
        if often >= count:
            break
    while often > count:
        often -= not BY_NAME[drawn.pop().metric].every
    return drawn


def generator(seed: int) -> list[Signal]:
    """The load: what every case is shown beside its own series. All that is sent comes back."""
    drawn: list[Signal] = []
    for metric, kind, level, labels in (
        ("load.requests", "poisson", 12000, {}),
        ("load.request.rate", "latency", 12000, {}),
        ("load.failure.rate", "fixed", 0, {}),
        ("load.tx.packets", "poisson", 90_000, {}),
        ("load.rx.packets", "poisson", 90_000, {}),
        ("load.offered.packet.rate", "fixed", 90_000, {}),
        ("load.ceiling.packet.rate", "fixed", 150_000, {}),
        ("load.queue_full", "fixed", 0, {}),
        ("load.cpu.utilization", "share", 0.5, {}),
        *(("load.latency", "latency", 0.002, {"quantile": quantile}) for quantile in ("0.5", "0.9", "0.99")),
    ):
        rng = np.random.default_rng([seed, 1000 + (0 if metric.endswith(".packets") else len(drawn))])
        sort = Steady if kind in PLAIN else Signal
        drawn.append(sort(metric, object_text(**labels), kind, level, rng))
    return drawn


def stretches(drawn: list[Signal], interval_ns: int, total: int, seed: int) -> Iterator[PollStretch]:
    """The polls of a run, an hour at a time; starts come some 100 µs late."""
    rng = np.random.default_rng(seed)
    size = max(1, round(3600e9 / interval_ns))
    apart = [max(1, round(BY_NAME[signal.metric].every * 1e9 / interval_ns)) for signal in drawn]
    for first in range(0, total, size):
        number = np.arange(first, min(first + size, total))
        time_ns = BEGIN_NS + number * interval_ns + rng.gamma(3, 30_000, number.size).astype(np.int64)
        readings = []
        for signal, every in zip(drawn, apart, strict=True):
            entry, position = BY_NAME[signal.metric], np.flatnonzero(number % every == 0)
            if position.size:
                value = signal.draw(position.size)
                readings.append(
                    Readings(signal.metric, signal.object, entry.unit, entry.kind, position, time_ns[position], value)
                )
        yield PollStretch(time_ns, np.ones(number.size, np.bool_), "", readings)


def phases_of(minutes: int) -> list[tuple[str, int]]:
    """Names and minutes: a baseline and a recovery of a tenth, at most an hour; stress in the middle of the soak."""
    part = max(1, min(60, minutes // 10))
    soak = max(1, (minutes - 2 * part) // 2)
    rest = max(1, minutes - part - soak - 2 * part)
    return [("baseline", part), ("soak", soak), ("stress", part), ("recovery", part), ("soak", rest)]


def make(folder: Path, hours: float, series: int, interval_s: float, seed: int) -> None:
    """A record of that length with a plan, two targets and all phases, written an hour at a time."""
    interval_ns, total = round(interval_s * 1e9), round(hours * 3600 / interval_s)
    minutes = max(5, round(hours * 60))
    phases = phases_of(minutes)
    plan = f"""name: bench
duration: {minutes}m
phases: [{", ".join(f"{{{name}: {length}m}}" for name, length in phases)}]
targets:
  dut: {{role: dut, sources: [local: {{interval: {interval_ns / 1e6:g}ms}}]}}
  tg: {{role: generator, sources: [command: {{run: ["true"], interval: {interval_ns / 1e6:g}ms}}]}}
"""
    load = generator(seed)
    drawn = device(series - len(load), interval_s, seed)
    with Record.create(folder) as record:
        for key, text in {"run": "bench", "plan": plan, "start_ns": str(BEGIN_NS)}.items():
            record.set_meta(key, text)
        record.target("dut", "dut")
        record.target("tg", "generator")
        record.begin_span(BEGIN_NS)
        local = record.source("dut", "local", "local", interval_ns, required=True)
        command = record.source("tg", "command", "command", interval_ns, required=True)
        both = zip(
            stretches(drawn, interval_ns, total, seed), stretches(load, interval_ns, total, seed + 1), strict=True
        )
        for of_device, of_load in both:
            record.put_columns(local, of_device)
            record.put_columns(command, of_load)
        at_ns = BEGIN_NS
        for name, length in phases:
            record.begin_phase(name, at_ns)
            at_ns += length * 60 * 10**9
        record.end_phase(BEGIN_NS + total * interval_ns)
        record.set_meta("ended_ns", str(BEGIN_NS + total * interval_ns))
        record.finish()


class Metered:
    """A record that counts what judging reads of it, and the CPU time of that."""

    def __init__(self, view: RecordView) -> None:
        self._view = view
        self.reads: Counter[SeriesKey] = Counter()
        self.cpu_s = 0.0
        self.accounts = 0

    def meta(self, key: str) -> str | None:
        """As in the record."""
        return self._view.meta(key)

    def roles(self) -> Mapping[str, str]:
        """As in the record."""
        return self._view.roles()

    def window(self) -> Window:
        """As in the record."""
        return self._view.window()

    def phases(self) -> tuple[Phase, ...]:
        """As in the record."""
        return self._view.phases()

    def keys(self, metrics: Sequence[str] | None = None) -> tuple[SeriesKey, ...]:
        """As in the record."""
        return self._view.keys(metrics)

    def series(self, key: SeriesKey, begin_ns: int | None = None, end_ns: int | None = None) -> Series:
        """As in the record, counted."""
        self.reads[key] += 1
        began = time.process_time()
        try:
            return self._view.series(key, begin_ns, end_ns)
        finally:
            self.cpu_s += time.process_time() - began

    def events(self) -> tuple[StoredEvent, ...]:
        """As in the record."""
        return self._view.events()

    def faults(self) -> tuple[StoredFault, ...]:
        """As in the record."""
        return self._view.faults()

    def ledgers(self, window: Window) -> tuple[Ledger, ...]:
        """As in the record, counted."""
        self.accounts += 1
        began = time.process_time()
        try:
            return self._view.ledgers(window)
        finally:
            self.cpu_s += time.process_time() - began


def judge_here(folder: Path) -> None:
    """Judge in this process and print what it took; then the same for the report."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    from soakwatch.core.c_allocator import freed_memory_kept
    from soakwatch.judge.judge import RuleUse, judge
    from soakwatch.judge.record_verdict import recorded_plan
    from soakwatch.plan.rule_plan import planned_rules

    imported = time.process_time()
    by_rule: Counter[str] = Counter()
    cases: Counter[str] = Counter()
    since = ("(set-up)", time.process_time())

    def report(text: str) -> None:
        nonlocal since
        now = time.process_time()
        by_rule[since[0]] += now - since[1]  # type: ignore[assignment]  # a Counter adds floats as well
        since = (text.partition(" ")[0], now)
        cases[since[0]] += 1

    wall = time.perf_counter()
    with RecordView.open(folder) as view:
        counts, rules = view.counts(), recorded_plan(view).rules
        metered = Metered(view)
        uses = [RuleUse(rule) for rule in planned_rules(rules)]
        with freed_memory_kept():
            verdict = judge(metered, "bench", uses, report)
        report("(end)")
        judged, wall = time.process_time(), time.perf_counter() - wall
        tell(counts, verdict, metered, judged - imported, wall)
        head = f"{'rule':20}{'cases':>7}{'s CPU':>8}{'ms/case':>9}{'findings':>10}"
        print(f"start and imports{imported:7.2f} s CPU\n\n{head}")
        per_rule = Counter(finding.rule for finding in verdict.findings)
        for name, took in sorted(by_rule.items(), key=lambda pair: -pair[1]):
            each = 1000 * took / max(cases[name], 1)
            print(f"{name:20}{cases[name]:7}{took:8.2f}{each:9.1f}{per_rule[name]:10}", flush=True)
        from soakwatch.report.html import render_html
        from soakwatch.report.json import render_json

        print(f"\nfindings, sha256  {hashlib.sha256(render_json(verdict).encode()).hexdigest()[:16]}")
        before = time.process_time()
        page = render_html(view, verdict)
        rendered = time.process_time() - before
    print(
        f"\nreport           {rendered:7.2f} s CPU, {len(page.encode()) / 1e6:.2f} MB of HTML; peak {peak_mb():.0f} MB"
    )


def tell(counts: Counts, verdict: Verdict, metered: Metered, cpu_s: float, wall_s: float) -> None:
    """Print what judging took and what came of it."""
    outcomes = Counter(finding.outcome.value for finding in verdict.findings)
    reads, different = sum(metered.reads.values()), len(metered.reads)
    print(f"{counts.samples:,} samples in {counts.polls:,} polls, {counts.bytes / 1e6:.1f} MB; one core, one thread")
    print(f"judging          {cpu_s:7.2f} s CPU, {wall_s:.2f} s wall; target {TARGET_S:g} s")
    print(
        f"  of it reading  {metered.cpu_s:7.2f} s CPU: {reads} reads of {different} series, {metered.accounts} accounts"
    )
    print(f"peak memory      {peak_mb():7.0f} MB; target {TARGET_MB:g} MB")
    print(f"verdict          {verdict.outcome.value}: {verdict.reason}")
    print("findings         " + ", ".join(f"{number} {outcome}" for outcome, number in sorted(outcomes.items())))


def peak_mb() -> float:
    """The most memory that this process has had resident, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def main() -> int:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", type=Path, help="judge this record: none is made")
    parser.add_argument("--keep", type=Path, help="make the record in this folder and leave it there")
    parser.add_argument("--hours", type=float, default=72)
    parser.add_argument("--series", type=int, default=1000)
    parser.add_argument("--interval", type=float, default=1.0, help="seconds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        judge_here(options.record)
        return 0
    with tempfile.TemporaryDirectory(prefix="soakwatch-bench-") as work:
        folder: Path = options.record or options.keep or Path(work, "run")
        if options.record is None:
            began = time.process_time()
            make(folder, options.hours, options.series, options.interval, options.seed)
            print(f"made {options.hours:g} h in {time.process_time() - began:.0f} s CPU", flush=True)
        command = [sys.executable, __file__, "--here", "--record", str(folder)]
        return subprocess.run(command, env={**os.environ, **ONE_THREAD}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
