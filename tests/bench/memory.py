"""Memory and CPU of a run with 7,000 series, by the hour, in time that passes quickly; prints a table, asserts nothing.

    python tests/bench/memory.py                             24 h of 7,000 series, 10 s apart: some ten minutes
    python tests/bench/memory.py --hours 3 --interval 2
    python tests/bench/memory.py --judge                     and what judging the record takes at the end

Two processes of a run work beside each other: a writer, which puts the polls of 48 switches and of a host with 60
processes into a real record, and the live judge, which is asked after each minute of the run. The writer makes the
readings as well, a minute of them at a time; it has no pollers, no timers and no page. Memory is what the kernel says
of each process: resident (RSS), and of that its own (USS).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.bench.judge import ONE_THREAD
from tests.bench.record import BEGIN_NS

from soakwatch.judge.planned import PLANNED_KEY, planned_text
from soakwatch.record import Record
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample, object_text

MINUTE_S = 60
COMMIT_S = 10
MARKS_H = (0.25, 0.5, 1, 1.5, 2, 3, 4, 6, 8, 12, 16, 20, 24, 36, 48, 60, 72)

Named = tuple[str, str, str, float]  # metric, object, kind of signal, level


def switch(ports: int) -> list[Named]:
    """What is read of a switch: each port, and the box."""
    named: list[Named] = []
    for port in range(ports):
        for direction in ("receive", "transmit"):
            labels = object_text(interface=f"ge-0/0/{port}", direction=direction)
            named += [
                ("system.network.io", labels, "counter", 1e6),
                ("system.network.packets", labels, "counter", 1e3),
                ("system.network.errors", labels, "rare", 1e-5),
                ("system.network.packet.dropped", labels, "rare", 1e-3),
            ]
        alone = object_text(interface=f"ge-0/0/{port}")
        named += [("system.network.up", alone, "still", 1), ("system.network.admin_up", alone, "still", 1)]
        named.append(("system.network.speed", alone, "still", 10**10))
    named += [("system.cpu.utilization", "", "share", 0.3), ("system.memory.usage", "", "pages", 4e5)]
    named += [("system.memory.available", "", "pages", 6e5), ("system.boot.time", "", "still", BEGIN_NS // 10**9 - 99)]
    for part in range(4):
        named.append(("system.memory.pool.usage", object_text(pool=f"pool{part}"), "pages", 5e4))
        named.append(("system.temperature", object_text(sensor=f"sensor{part}"), "degrees", 45))
    return named


def host(processes: int) -> list[Named]:
    """What is read of a host: its processors, and the processes that are watched."""
    named: list[Named] = [
        ("system.cpu.core.utilization", object_text(core=core), "share", 0.1 * core + 0.05) for core in range(8)
    ]
    named += [("system.memory.usage", "", "pages", 4e5), ("system.memory.available", "", "pages", 6e5)]
    for process in range(processes):
        labels = object_text(process=f"worker{process}", instance=0)
        named += [
            ("process.memory.usage", labels, "pages", 3e4),
            ("process.cpu.utilization", labels, "share", 0.3),
            ("process.open_files", labels, "few", 120),
            ("process.threads", labels, "few", 16),
            ("process.up", labels, "still", 1),
            ("process.start_time", labels, "still", BEGIN_NS // 10**9 - 1000),
            ("process.pid", labels, "still", 1000 + process),
        ]
    return named


class Signals:
    """The readings of one source: all of its series at once."""

    def __init__(self, named: list[Named], seed: int) -> None:
        self.names = [(metric, labels) for metric, labels, _, _ in named]
        self._rng = np.random.default_rng(seed)
        kinds = np.array([kind for *_, kind, _ in named])
        self._columns = {kind: np.flatnonzero(kinds == kind) for kind in sorted(set(kinds.tolist()))}
        self._level = np.array([level for *_, level in named], np.float64)
        self._last = {kind: np.zeros(columns.size, np.int64) for kind, columns in self._columns.items()}

    def rows(self, count: int) -> list[list[int | float]]:
        """The next polls, each the readings in the order of ``names``."""
        columns: list[list[int | float]] = [[]] * len(self.names)
        for kind, places in self._columns.items():
            for place, column in zip(places.tolist(), self._draw(kind, count, self._level[places]).T, strict=True):
                columns[place] = column.tolist()
        return [list(row) for row in zip(*columns, strict=True)]

    def _draw(self, kind: str, count: int, level: np.ndarray) -> np.ndarray:
        rng, shape = self._rng, (count, level.size)
        if kind == "share":
            return rng.binomial(99, np.minimum(level, 1), shape) / 100
        if kind == "degrees":
            return level + rng.integers(-2, 3, shape) / 2
        if kind == "still":
            return np.broadcast_to(level.astype(np.int64), shape)
        if kind == "few":
            return level.astype(np.int64) + (rng.random(shape) < 0.05)
        if kind == "pages":
            walk = self._last[kind] + np.cumsum((rng.random(shape) < 0.3) * rng.integers(-20, 21, shape), axis=0)
            self._last[kind] = walk[-1] - walk[-1] // 50  # it wanders, and comes back
            return 4096 * (level.astype(np.int64) + walk)
        counted = self._last[kind] + np.cumsum(rng.poisson(level, shape), axis=0)
        self._last[kind] = counted[-1]
        return counted


def minutes(signals: Signals, source: int, interval_s: int, total: int) -> Iterator[list[Poll]]:
    """The polls of a source, a minute at a time."""
    for minute in range(total):
        polls = []
        for number, row in enumerate(signals.rows(MINUTE_S // interval_s)):
            due_ns = BEGIN_NS + (minute * MINUTE_S + number * interval_s) * 10**9
            at_ns = due_ns + 120_000 + source * 1000
            samples = tuple([Sample(*name, value, at_ns) for name, value in zip(signals.names, row, strict=True)])
            polls.append(Poll(source, due_ns, at_ns, 2_000_000, PollOutcome.OK, None, Answer(samples, (), ())))
        yield polls


def write(folder: Path, hours: float, devices: int, interval_s: int) -> None:
    """Write the run; after each minute say so, and wait to be told to go on."""
    facts = {
        "run": "bench",
        "plan": f"name: bench\nduration: {round(hours * 60)}m\ntargets: {{dut: {{sources: [local]}}}}\n",
        "start_ns": str(BEGIN_NS),
        PLANNED_KEY: planned_text(hours * 3600, ["soak"]),
    }
    total = round(hours * 60)
    with Record.create(folder) as record:
        for key, text in facts.items():
            record.set_meta(key, text)
        record.begin_span(BEGIN_NS)
        record.begin_phase("soak", BEGIN_NS)
        coming, series = [], 0
        for number in range(devices + 1):
            name = f"sw{number:02}" if number else "host"
            record.target(name, "dut")
            source = record.source(name, "snmp" if number else "agent", name, interval_s * 10**9, required=True)
            signals = Signals(switch(12) if number else host(60), number)
            series += len(signals.names)
            coming.append(minutes(signals, source.id, interval_s, total))
        print(series, flush=True)
        for _ in sys.stdin:
            minute = [next(polls, []) for polls in coming]
            for first in range(0, len(minute[0]), max(1, COMMIT_S // interval_s)):
                record.put([poll for polls in minute for poll in polls[first : first + max(1, COMMIT_S // interval_s)]])
            print(".", flush=True)
        record.end_phase(BEGIN_NS + total * MINUTE_S * 10**9)
        record.finish()


class Watched:
    """A process that answers a line with lines that end in a dot."""

    def __init__(self, *command: str) -> None:
        self.process = psutil.Popen(
            [sys.executable, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **ONE_THREAD}
        )

    def ask(self) -> int:
        """Ask, and wait for the answer; how many lines it had."""
        self.process.stdin.write(b"look\n")
        self.process.stdin.flush()
        lines = 0
        while (line := self.process.stdout.readline()) != b".\n":
            if not line or line.startswith(b"! "):
                raise SystemExit(f"{self.process.args}: {line.decode()}")
            lines += 1
        return lines

    def figures(self) -> tuple[float, float, float]:
        """Resident memory and that of its own in MB, CPU seconds so far."""
        memory, times = self.process.memory_full_info(), self.process.cpu_times()
        return memory.rss / 1e6, memory.uss / 1e6, times.user + times.system


def run(folder: Path, hours: float, devices: int, interval_s: int) -> None:
    """Let both work, and print a line at each mark."""
    words = ["--write", str(folder), "--hours", str(hours), "--devices", str(devices), "--interval", str(interval_s)]
    writer = Watched(__file__, *words)
    print(
        f"{int(writer.process.stdout.readline()):,} series, {interval_s} s apart; MB, and CPU seconds since the start\n"
    )
    print(f"{'after':>7} {'writer':>8}{'own':>6}{'CPU':>8} {'judge':>8}{'own':>6}{'CPU':>8} {'both':>7}", flush=True)
    judge: Watched | None = None
    for minute in range(1, round(hours * 60) + 1):
        writer.ask()
        judge = judge or Watched("-m", "soakwatch.judge.live", str(folder))
        judge.ask()
        if minute in {round(60 * mark) for mark in MARKS_H}:
            one, two = writer.figures(), judge.figures()
            shown = " ".join(f"{rss:8.0f}{own:6.0f}{cpu:8.1f}" for rss, own, cpu in (one, two))
            print(f"{minute / 60:>5g} h {shown} {one[0] + two[0]:7.0f}", flush=True)
    for each in (judge, writer):
        if each is not None:
            each.process.stdin.close()
            each.process.wait()


def judge_whole(folder: Path) -> None:
    """Judge the record in a process of its own; what that took."""
    code = (
        "import resource, sys; from pathlib import Path; from soakwatch.judge.record_verdict import judge_record;"
        "from soakwatch.record import RecordView; v = judge_record(RecordView.open(Path(sys.argv[1])));"
        " u = resource.getrusage(resource.RUSAGE_SELF);"
        "print(f'judged at the end: {len(v.findings)} findings, {u.ru_utime + u.ru_stime:.1f} s CPU,"
        " at most {u.ru_maxrss * 1024 / 1e6:.0f} MB')"
    )
    subprocess.run([sys.executable, "-c", code, str(folder)], env={**os.environ, **ONE_THREAD}, check=False)


def main() -> int:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=24)
    parser.add_argument("--devices", type=int, default=48, help="switches, of 146 series each")
    parser.add_argument("--interval", type=int, default=10, help="seconds: a divisor of 60")
    parser.add_argument("--judge", action="store_true", help="judge the record at the end as well")
    parser.add_argument("--keep", type=Path, help="make the record in this folder and leave it there")
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        write(options.write, options.hours, options.devices, options.interval)
        return 0
    with tempfile.TemporaryDirectory(prefix="soakwatch-bench-") as work:
        folder: Path = options.keep or Path(work, "run")
        run(folder, options.hours, options.devices, options.interval)
        if options.judge:
            judge_whole(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
