"""A run of one device that tests write as it goes, and the live judge of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from soakwatch.judge.live.evaluator import LiveEvaluator
from soakwatch.judge.live.run_follower import RunFollower
from soakwatch.judge.planned import PLANNED_KEY, planned_text
from soakwatch.record import Record, RecordView
from soakwatch_model.sample import NOTHING, Answer, Poll, PollOutcome, Sample, object_text
from soakwatch_rules.rule import Rule
from soakwatch_testing.records import SECOND, T0

Level = Callable[[float], float | None]
WORKER = object_text(process="worker", instance="0")
HOUR = 3600


class Device:
    """A run of one device, written as it goes; ``run`` writes some seconds of it."""

    def __init__(
        self, folder: Path, interval_s: int = 10, hours: float = 24, phases: Sequence[str] = ("soak",)
    ) -> None:
        self.folder, self.interval_s, self.elapsed_s = folder, interval_s, 0
        self.record = Record.create(folder)
        plan = f"name: run\nduration: {round(hours * 60)}m\ntargets: {{dut: {{sources: [local]}}}}\n"
        for key, text in {"plan": plan, "run": "run", PLANNED_KEY: planned_text(hours * HOUR, phases)}.items():
            self.record.set_meta(key, text)
        self.record.target("dut", "dut")
        self.record.begin_span(T0)
        self.source = self.record.source("dut", "local", "local", interval_s * SECOND, required=True).id
        self.record.begin_phase(phases[0], T0)
        self.levels: dict[tuple[str, str], Level] = {}

    def run(self, seconds: int) -> None:
        """Write polls; None among the levels is a reading that is not there, and no reading at all a failed poll."""
        polls = []
        for second in range(self.elapsed_s, self.elapsed_s + seconds, self.interval_s):
            due = T0 + second * SECOND
            read = [(metric, name, level(second)) for (metric, name), level in self.levels.items()]
            samples = tuple(Sample(metric, name, value, due) for metric, name, value in read if value is not None)
            if samples:
                polls.append(Poll(self.source, due, due, 1, PollOutcome.OK, None, Answer(samples, (), ())))
            else:
                polls.append(Poll(self.source, due, due, 1, PollOutcome.TIMEOUT, "no answer", NOTHING))
        self.record.put(polls)
        self.elapsed_s += seconds


def evaluator_of(device: Device, *rules: Rule, cpu_s: Callable[[], float] = lambda: 0.0) -> LiveEvaluator:
    """The live judge of it; CPU time does not pass unless the caller says so."""
    with RecordView.open(device.folder) as view:
        metas = view.metas()
    return LiveEvaluator(RunFollower(device.folder, rules, metas), rules, cpu_s)
