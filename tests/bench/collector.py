"""Memory and CPU of a collector that runs, as the kernel sees it from outside; prints a table, asserts nothing.

    python tests/bench/collector.py [--duration 90]

Two real runs beside each other, each ``soakwatch run`` as a child: the quick one (this machine and 5 processes each
second), and a dense one (this machine and 20 processes each 200 ms, and a command that is the load). The live judge
is a process of its own, started after a minute; the judging at the end is shown apart from the run.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from soakwatch.record import RecordView
from soakwatch_model.window import Window

TARGET_MB = 150.0
WARM_S = 10.0  # imports and the first polls are not the running collector
EVERY_S = 0.1
LOAD = """
import time
while True:
    print("load.request.rate 800, load.failure.rate 0, load.latency{quantile=0.99} 0.012", flush=True)
    time.sleep(0.2)
"""


@dataclass
class Watched:
    """One collector and what was seen of it."""

    name: str
    folder: Path
    output: Path
    process: psutil.Popen
    began_ns: int
    ended_ns: int = 0
    run_mb: float = 0.0
    unique_mb: float = 0.0
    end_mb: float = 0.0
    judge_mb: float = 0.0
    judge_cpu_s: float = 0.0
    warm: tuple[int, float] | None = None
    last: tuple[int, float] | None = None
    judges: dict[int, float] = field(default_factory=dict)

    def measure(self) -> bool:
        """Note memory and CPU time; False once it is gone."""
        if self.process.poll() is not None:
            return False
        try:
            memory = self.process.memory_info().rss / 1e6
            times = self.process.cpu_times()
            judging = "judging" in self.output.read_text(encoding="utf-8")
            if judging:
                self.end_mb = max(self.end_mb, memory)
                self.ended_ns = self.ended_ns or time.time_ns()
            else:
                now_ns, cpu_s = time.time_ns(), times.user + times.system
                self.run_mb = max(self.run_mb, memory)
                self.last = (now_ns, cpu_s)
                if self.warm is None and now_ns - self.began_ns > WARM_S * 1e9:
                    self.warm = (now_ns, cpu_s)
                    self.unique_mb = self.process.memory_full_info().uss / 1e6
            for child in self.process.children():
                if child.name() == "soakwatch-judge" or "soakwatch.judge.live" in child.cmdline():
                    used = child.cpu_times()
                    self.judges[child.pid] = used.user + used.system
                    self.judge_mb = max(self.judge_mb, child.memory_info().rss / 1e6)
        except psutil.Error:  # it, or its child, went while it was looked at
            pass
        return True

    def line(self) -> str:
        """Its line of the table."""
        if self.warm is None or self.last is None:
            return f"{self.name:10} did not run: {self.output.read_text(encoding='utf-8').strip()}"
        with RecordView.open(self.folder) as view:
            ledgers = view.ledgers(Window(self.warm[0], self.last[0]))
            counts = view.counts()
        polls, due = sum(ledger.got for ledger in ledgers), sum(ledger.due for ledger in ledgers)
        seconds, cpu_s = (self.last[0] - self.warm[0]) * 1e-9, self.last[1] - self.warm[1]
        judged_s, a_sample = max(self.judges.values(), default=0.0), counts.bytes / max(counts.samples, 1)
        return (
            f"{self.name:10}{self.run_mb:9.0f}{self.unique_mb:9.0f}{polls:6}/{due:<6}"
            f"{1000 * cpu_s / max(polls, 1):9.2f}{100 * cpu_s / seconds:8.1f}{len(self.judges):7}{self.judge_mb:10.0f}"
            f"{judged_s:9.2f}{self.end_mb:9.0f}{a_sample:10.2f}"
        )


def main() -> int:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--duration", type=int, default=90, help="seconds; the live judge comes after 60")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soakwatch-bench-") as work, ExitStack() as stack:
        for number in range(20):
            child = subprocess.Popen([f"soakbench{number}", "3600"], executable="/bin/sleep")
            stack.callback(child.wait)
            stack.callback(child.kill)
        plan = Path(work, "dense.yaml")
        plan.write_text(f"""name: dense
phases: [{{baseline: {options.duration // 3}s}}, {{soak: {options.duration - options.duration // 3}s}}]
targets:
  dut:
    role: dut
    sources: [local: {{interval: 200ms}}]
    watch: {{processes: ["soakbench*"]}}
  tg:
    role: generator
    sources: [command: {{interval: 200ms, run: [{sys.executable}, -c, {json.dumps(LOAD)}]}}]
""")
        quick = ["--target", "local", "--interval", "1s", "--duration", f"{options.duration}s"]
        for number in range(5):
            quick += ["--process", f"soakbench{number}"]
        watched = [start(stack, Path(work), "quick", quick), start(stack, Path(work), "dense", [str(plan)])]
        alive = watched
        while alive:
            alive = [program for program in alive if program.measure()]
            time.sleep(EVERY_S)
        print(
            f"{psutil.cpu_count()} cores, {len(psutil.pids())} processes, {options.duration} s; MB resident (RSS) at"
            f" most; target under {TARGET_MB:g} MB while it runs\n"
        )
        print(
            f"{'':10}{'running':>9}{'unique':>9}{'polls/due':>13}{'ms/poll':>9}{'% core':>8}{'judges':>7}"
            f"{'judge MB':>10}{'judge s':>9}{'end MB':>9}{'B/sample':>10}"
        )
        for program in watched:
            print(program.line())
    return 0


def start(stack: ExitStack, work: Path, name: str, words: list[str]) -> Watched:
    """Start a collector; it is killed if the bench ends before it."""
    folder, output = work / name, work / f"{name}.txt"
    command = [str(Path(sys.executable).with_name("soakwatch")), "run", *words, "--into", str(folder)]
    with output.open("w", encoding="utf-8") as file:
        process = psutil.Popen(command, stdout=file, stderr=subprocess.STDOUT, cwd=work)

    def end() -> None:
        if process.poll() is None:
            process.terminate()
            process.wait()

    stack.callback(end)
    return Watched(name, folder, output, process, time.time_ns())


if __name__ == "__main__":
    sys.exit(main())
