"""Memory of the live judge while processes come and go, by the hour of the run; prints a table, asserts nothing.

    python tests/bench/churn.py                                       24 h x 60 processes x 2 s, some minutes
    python tests/bench/churn.py --hours 2 --processes 180 --interval 0.2

Nearly every poll has another set of processes than the one before, and brings events of those that came or went. The
polls of each minute are written into a real record in time that passes quickly; then the live judge, in a process of
its own as in a run, is asked. What it has resident is that process alone.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from soakwatch.core.supervised_child import python_module
from soakwatch.judge.planned import PLANNED_KEY, planned_text
from soakwatch.record import Record
from soakwatch_model.event import Event
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample, object_text

T0 = 1_790_000_000_000_000_000
SECOND = 1_000_000_000
STAY = 4  # processes that live as long as the run
SHARE = 0.02  # of the others that come or go with each poll
_SLEEPS, _RUNS = float(ord("S")), float(ord("R"))


@dataclass
class Churn:
    """Processes that come and go; ``poll`` looks at all of them."""

    processes: int
    chance: random.Random = field(default_factory=lambda: random.Random(1))
    layouts: set[tuple[int, ...]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._labels = [object_text(process=f"worker{n // 20}", instance=n % 20) for n in range(self.processes)]
        self._since: list[int | None] = [0 if n < STAY else None for n in range(self.processes)]
        self._pid = 1000

    def poll(self, source: int, due_ns: int) -> Poll:
        """One poll of the source."""
        second, events, samples = (due_ns - T0) // SECOND, list[Event](), list[Sample]()

        def see(metric: str, label: str, value: float) -> None:
            samples.append(Sample(metric, label, value, due_ns))

        see("system.cpu.utilization", "", 0.3 + 0.01 * self.chance.random())
        see("system.memory.usage", "", 10**9 + 4096 * self.chance.randrange(100))
        for n, label in enumerate(self._labels):
            if n >= STAY and self.chance.random() < SHARE:
                events.append(self._turn(n, label, due_ns, second))
            since = self._since[n]
            see("process.up", label, 0 if since is None else 1)
            if since is None:
                continue
            see("process.start_time", label, 1.79e9 + since)
            see("process.pid", label, 1000 + since)
            see("process.state", label, _RUNS if self.chance.random() < 0.1 and n >= STAY else _SLEEPS)
            see("process.memory.usage", label, 10**7 + 4096 * ((since + second // 60) % 50))
            see("process.cpu.time", f"{label},mode=user", (second - since) * 0.01)
            see("process.threads", label, 4)
            see("process.open_files", label, 20 + second % 3)
        self.layouts.add(tuple(n for n, since in enumerate(self._since) if since is not None))
        answer = Answer(tuple(samples), tuple(events), ())
        return Poll(source, due_ns, due_ns, SECOND // 100, PollOutcome.OK, None, answer)

    def _turn(self, n: int, label: str, now_ns: int, second: int) -> Event:
        if self._since[n] is None:
            self._since[n], self._pid = second, self._pid + 1
            detail = {"pid": str(self._pid), "started": "2026-11-29T19:37:35Z"}
            return Event("process.start", "dut", label, now_ns, None, detail)
        self._since[n] = None
        detail = {"pid": str(self._pid), "started": "2026-11-29T19:37:35Z", "cpu_s": "1.19", "zombie": "no"}
        return Event("process.exit", "dut", label, now_ns, None, detail)


def begun(folder: Path, hours: float, interval_s: float) -> tuple[Record, int]:
    """A new record of such a run, and its source."""
    record = Record.create(folder)
    texts = {
        "run": "churn",
        "plan": f"name: churn\nduration: {max(1, round(hours * 60))}m\ntargets: {{dut: {{sources: [local]}}}}\n",
        "start_ns": str(T0),
        PLANNED_KEY: planned_text(hours * 3600, ["soak"]),
    }
    for key, text in texts.items():
        record.set_meta(key, text)
    record.target("dut", "dut")
    record.begin_span(T0)
    source = record.source("dut", "local", "local", round(interval_s * SECOND), required=True)
    record.begin_phase("soak", T0)
    return record, source.id


def written(record: Record, source: int, churn: Churn, minute: int, interval_s: float) -> None:
    """The polls of one minute, in the record."""
    step_ns = round(interval_s * SECOND)
    begin_ns = T0 + minute * 60 * SECOND
    record.put([churn.poll(source, due_ns) for due_ns in range(begin_ns, begin_ns + 60 * SECOND, step_ns)])


class AskedJudge:
    """The live judge of a run as a process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.forgot = ""

    def look(self) -> int:
        """Ask it, and read its answer; returns how many subjects have new findings."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("look\n")
        self._process.stdin.flush()
        lines = 0
        while (line := self._process.stdout.readline().rstrip("\n")) != ".":
            if not line or line.startswith("! "):
                raise RuntimeError(line or "the judge ended")
            self.forgot = json.loads(line).get("forgot", self.forgot)
            lines += "of" in json.loads(line)
        return lines

    def figure(self, name: str) -> float:
        """A line of its /proc/PID/status, MB: VmRSS is what it has resident now, VmHWM the most so far."""
        for line in Path(f"/proc/{self._process.pid}/status").read_text(encoding="utf-8").splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024 / 1e6
        raise LookupError(name)

    def cpu_s(self) -> float:
        """CPU seconds it took so far."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100


@contextmanager
def asked_judge(folder: Path) -> Iterator[AskedJudge]:
    """The live judge of a record, ended with the block."""
    command: Sequence[str] = python_module("soakwatch.judge.live", str(folder))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield AskedJudge(process)
        finally:
            process.kill()


def main() -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=24)
    parser.add_argument("--processes", type=int, default=60)
    parser.add_argument("--interval", type=float, default=2.0, help="seconds")
    options = parser.parse_args()
    churn = Churn(options.processes)
    with tempfile.TemporaryDirectory(prefix="soakwatch-bench-") as work:
        folder = Path(work, "run")
        record, source = begun(folder, options.hours, options.interval)
        with record, asked_judge(folder) as judge:
            print(f"{'after':>7}{'sets':>9}{'RSS MB':>9}{'peak':>7}{'CPU s':>8}{'record MB':>11}   forgot")
            began_s = time.process_time()
            for minute in range(round(options.hours * 60)):
                written(record, source, churn, minute, options.interval)
                judge.look()
                if minute == 9 or minute % 60 == 59:
                    size = (folder / "record.sqlite").stat().st_size / 1e6
                    figures = (
                        f"{judge.figure('VmRSS'):9.0f}{judge.figure('VmHWM'):7.0f}{judge.cpu_s():8.1f}{size:11.1f}"
                    )
                    when = f"{(minute + 1) / 60:5.1f} h"
                    print(f"{when:>7}{len(churn.layouts):9,}{figures}   {'yes' if judge.forgot else 'no'}", flush=True)
            print(f"writing took {time.process_time() - began_s:.0f} s CPU")


if __name__ == "__main__":
    main()
