"""CPU time and memory of judging a run while it goes on; prints tables, asserts nothing.

    python tests/bench/live.py                       72 h x 200 series x 1 s, some minutes
    python tests/bench/live.py --hours 2 --series 1000

The minutes of a run are written into a real record one after another, and after each the live judge evaluates it, in
this process and on one core. An evaluation opens the record, reads what is new, judges it and renders the findings.
At the end a second judge works out the same state from the whole record, as after a crash.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.bench.judge import ONE_THREAD, device, generator
from tests.bench.record import BEGIN_NS, Signal, polls

from soakwatch.judge.live.answers import evaluator_of
from soakwatch.judge.live.evaluator import LiveEvaluator
from soakwatch.judge.planned import PLANNED_KEY, planned_text
from soakwatch.record import Record, finding_to_json
from soakwatch_model.sample import Poll

MARKS_H = (1, 2, 6, 12, 24, 48, 72)
OVER = 30  # evaluations that a line of the table is the mean of
TARGET_MS = 20.0


class Timed(LiveEvaluator):
    """The live judge, with the CPU time of each rule and of each part of an evaluation."""

    spent: Counter[str]
    evaluations: Counter[str]

    def _judge(self, case_builder, subject, now_ns):  # type: ignore[no-untyped-def]  # as in Looking
        began = time.process_time()
        super()._judge(case_builder, subject, now_ns)
        self.spent[subject.rule.name] += time.process_time() - began  # type: ignore[assignment]
        self.evaluations[subject.rule.name] += 1


def resident_mb() -> float:
    """What this process has resident."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024 / 1e6
    return float("nan")


def minutes(signals: list[Signal], source: int, interval_ns: int, total: int, seed: int) -> Iterator[list[Poll]]:
    """The polls of a run, a minute at a time."""
    a_minute, waiting = round(60e9 / interval_ns), list[Poll]()
    for stretch in polls(source, signals, interval_ns, total, seed):
        waiting += stretch
        while len(waiting) >= a_minute:
            yield waiting[:a_minute]
            waiting = waiting[a_minute:]
    if waiting:
        yield waiting


def evaluated(evaluator: LiveEvaluator) -> tuple[float, int]:
    """CPU seconds of one evaluation, with its text, and how many series it judged anew."""
    began = time.process_time()
    news = evaluator.evaluate()
    for name, findings in news.items():
        json.dumps({"of": name, "findings": [finding_to_json(finding) for finding in findings]})
    return time.process_time() - began, len(news)


def run(folder: Path, hours: float, series: int, interval_s: float, seed: int) -> None:
    """Write the run, evaluate it after each minute, print a line at each mark."""
    interval_ns, total = round(interval_s * 1e9), round(hours * 3600 / interval_s)
    load = generator(seed)
    drawn = device(series - len(load), interval_s, seed)
    series = len(drawn) + len(load)  # here a poll brings all of them
    plan = f"name: bench\nduration: {round(hours * 60)}m\ntargets: {{dut: {{sources: [local]}}}}\n"
    facts = {
        "run": "bench",
        "plan": plan,
        "start_ns": str(BEGIN_NS),
        PLANNED_KEY: planned_text(hours * 3600, ["baseline", "soak"]),
    }
    print(
        f"{'after':>6}{'ms/min/100':>12}{'reading':>9}{'judging':>9}{'worst':>8}{'told':>6}{'state MB':>9}{'RSS MB':>7}"
    )
    with Record.create(folder) as record:
        for key, text in facts.items():
            record.set_meta(key, text)
        record.target("dut", "dut")
        record.target("tg", "generator")
        record.begin_span(BEGIN_NS)
        local = record.source("dut", "local", "local", interval_ns, required=True)
        command = record.source("tg", "command", "command", interval_ns, required=True)
        record.begin_phase("baseline", BEGIN_NS)
        evaluator = evaluator_of(folder)
        evaluator.__class__ = Timed
        assert isinstance(evaluator, Timed)
        evaluator.spent, evaluator.evaluations = Counter(), Counter()
        costs: list[tuple[float, float, int]] = []
        both = zip(
            minutes(drawn, local.id, interval_ns, total, seed),
            minutes(load, command.id, interval_ns, total, seed + 1),
            strict=True,
        )
        for minute, (of_device, of_load) in enumerate(both, 1):
            record.put([*of_device, *of_load])
            if minute == 60:
                record.begin_phase("soak", BEGIN_NS + 3600 * 10**9)
            before = evaluator.spent.total()
            spent, judged_series = evaluated(evaluator)
            costs.append((spent, evaluator.spent.total() - before, judged_series))
            if minute in {60 * mark for mark in MARKS_H}:
                tell(f"{minute // 60} h", costs[-OVER:], evaluator, series)
        if not costs or len(costs) % 60:
            tell("end", costs[-OVER:], evaluator, series)
        print(f"\n{'rule':20}{'looks':>8}{'s CPU':>8}{'ms a look':>11}{'looks/min':>11}")
        for name, took in sorted(evaluator.spent.items(), key=lambda pair: -pair[1]):
            n = evaluator.evaluations[name]
            print(f"{name:20}{n:8}{took:8.2f}{1000 * took / n:11.2f}{n / len(costs):11.2f}")
        said_at_end = Counter(f"{f.outcome.value} {f.rule}" for f in evaluator.findings)
        print("said at the end: " + ", ".join(f"{number} {what}" for what, number in sorted(said_at_end.items())))
        again = evaluator_of(folder)
        began = time.process_time()
        again.evaluate()
        print(f"the same state from the record, after a crash: {time.process_time() - began:.2f} s CPU")


def tell(when: str, costs: list[tuple[float, float, int]], evaluator: LiveEvaluator, series: int) -> None:
    """One line of the table."""
    per = 1000 * 100 / series
    mean, judging = (sum(column) / len(costs) * per for column in list(zip(*costs, strict=True))[:2])
    worst = max(cost[0] for cost in costs) * per
    evaluated_series = sum(cost[2] for cost in costs) / len(costs)
    memory = f"{evaluator.nbytes / 1e6:9.1f}{resident_mb():7.0f}"
    print(
        f"{when:>6}{mean:12.2f}{mean - judging:9.2f}{judging:9.2f}{worst:8.1f}{evaluated_series:6.1f}{memory}",
        flush=True,
    )


def main() -> int:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=72)
    parser.add_argument("--series", type=int, default=200)
    parser.add_argument("--interval", type=float, default=1.0, help="seconds")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if os.environ.get("OMP_NUM_THREADS") != "1":
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ONE_THREAD})
    print(f"CPU ms a minute for each 100 series, mean of {OVER} looks; target at most {TARGET_MS:g}\n")
    with tempfile.TemporaryDirectory(prefix="soakwatch-bench-") as work:
        run(Path(work, "run"), options.hours, options.series, options.interval, options.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
