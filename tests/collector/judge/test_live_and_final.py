"""The live judge and the final one say the same of the same data: what fails live fails at the end, or is withheld."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from soakwatch.judge.live.evaluator import LiveEvaluator
from soakwatch.judge.live.run_follower import RunFollower
from soakwatch.judge.planned import PLANNED_KEY, planned_text
from soakwatch.judge.record_verdict import judge_record
from soakwatch.plan.rule_plan import planned_rules
from soakwatch.record import Record, RecordView
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.sample import NOTHING, Answer, Poll, PollOutcome, Sample, object_text
from soakwatch_testing.records import SECOND, T0

Floats = NDArray[np.float64]
STEP_S, LENGTH_S, LOOK_POLLS = 10, 7200, 60
RATE = 1e5
BGPD = object_text(process="bgpd", instance="0")
TARGETS = "{fw: {sources: [local]}, tg: {role: generator, sources: [local]}}"
PLAN = f"name: r\nduration: {LENGTH_S // 60}m\ntargets: {TARGETS}\n"


@dataclass(frozen=True, slots=True)
class Night:
    """Two hours of a firewall behind a generator, with what a seed lets happen to both."""

    seed: int
    chance: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        """Raises nothing."""
        object.__setattr__(self, "chance", np.random.default_rng(self.seed))

    def bursts(self, how_many: float, most: float = 1.0) -> Floats:
        """Stretches of up to ten minutes above 0, some of them at their ``most``."""
        value = np.zeros(LENGTH_S // STEP_S)
        for _ in range(self.chance.poisson(how_many)):
            begin = self.chance.integers(0, value.size - 60)
            value[begin : begin + self.chance.integers(1, 60)] = self.chance.uniform(0.2, most)
        return value

    def columns(self) -> dict[str, dict[tuple[str, str], Floats]]:
        """The readings of each target by metric and object."""
        chance, time_s = self.chance, np.arange(0.0, LENGTH_S, STEP_S)
        offered = STEP_S * RATE * np.where(self.bursts(0.5) > 0, 0.3, 1.0)
        lost = np.where(self.bursts(2.0) > 0, 1.0, self.bursts(1.0))
        dropped = offered * lost * (self.seed % 3 == 0)  # else the path lost it
        noise = chance.normal(size=(3, time_s.size))
        memory = 5e8 * (1 + chance.choice([0.0, 0.5]) * time_s / 86400 + 0.002 * noise[0])
        device = {
            ("system.cpu.utilization", ""): np.clip(0.3 + 0.02 * noise[1] + self.bursts(1.5, 0.7), 0, 1),
            ("system.memory.usage", ""): memory,
            ("process.memory.usage", BGPD): 0.3 * memory,
        }
        if self.seed % 4:
            ports = {("e0", "receive"): offered, ("e1", "transmit"): offered - dropped}
            for name, way in (("e0", "receive"), ("e0", "transmit"), ("e1", "receive"), ("e1", "transmit")):
                passed = ports.get((name, way), np.ones(time_s.size))
                device["system.network.packets", object_text(interface=name, direction=way)] = np.cumsum(passed)
            where = object_text(interface="e0", direction="receive")
            device["system.network.packet.dropped", where] = np.cumsum(dropped)
        generator = {
            ("load.tx.packets", ""): np.cumsum(offered),
            ("load.rx.packets", ""): np.cumsum(offered * (1 - lost)),
            ("load.latency", ""): 1e-3 * (1 + 5 * lost + 0.1 * np.abs(noise[2])),
            ("system.cpu.utilization", ""): np.clip(0.2 + self.bursts(1.0, 0.8), 0, 1),
        }
        return {"fw": device, "tg": generator}


def judged_live_and_at_the_end(folder: Path, night: Night) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """What the live judge says when the run ends, and what the final one says then."""
    with Record.create(folder) as record:
        metas = {"plan": PLAN, "run": "r", "start_ns": str(T0), PLANNED_KEY: planned_text(LENGTH_S, ("soak",))}
        for key, text in metas.items():
            record.set_meta(key, text)
        record.begin_span(T0)
        columns, sources = night.columns(), {}
        for name, role in (("fw", "dut"), ("tg", "generator")):
            record.target(name, role)
            sources[name] = record.source(name, "local", "local", STEP_S * SECOND, required=True).id
        record.begin_phase("soak", T0)
        silent = {"fw": night.bursts(1.0 if night.seed % 4 == 0 else 0.0) > 0, "tg": night.bursts(0.2) > 0}
        restart = int(night.chance.integers(100, 600)) if night.chance.random() < 0.3 else -1
        rules = planned_rules(())
        evaluator = LiveEvaluator(RunFollower(folder, rules, metas), rules, lambda: 0.0)
        polls: list[Poll] = []
        for index in range(LENGTH_S // STEP_S):
            due = T0 + index * STEP_S * SECOND
            for name, source in sources.items():
                read = tuple(Sample(*key, float(value[index]), due) for key, value in columns[name].items())
                answered = Poll(source, due, due, 1, PollOutcome.OK, None, Answer(read, (), ()))
                lost = Poll(source, due, due, 1, PollOutcome.TIMEOUT, "no answer", NOTHING)
                polls.append(lost if silent[name][index] else answered)
            if index == restart:
                record.add_event("fw", Event("process.restart", "fw", BGPD, due, due), "probe")
            if (index + 1) % LOOK_POLLS == 0:
                record.put(polls)
                polls = []
                evaluator.evaluate()
        record.end_phase(T0 + LENGTH_S * SECOND)
        evaluator.evaluate()
        with RecordView.open(folder) as view:
            return evaluator.findings, judge_record(view, ended=True).findings


@pytest.mark.parametrize("seed", range(5))
def test_what_fails_live_fails_at_the_end(tmp_path: Path, seed: int) -> None:
    """Or it was withheld: the live failures are a subset of the final ones, by rule, target, metric and object."""
    live, final = judged_live_and_at_the_end(tmp_path / "run", Night(seed))
    failed = {f.name for f in final if f.outcome is Outcome.FAIL}
    assert [f.sentence for f in live if f.outcome is Outcome.FAIL and f.name not in failed] == []
    assert {f.rule for f in live} <= {f.rule for f in final}
    assert all(f.rulings[0].by in {"so far", "role"} for f in live)
