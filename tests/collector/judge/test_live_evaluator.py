"""Looking at a run that goes on: what is evaluated when, what stays found, what is withdrawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import pytest
from tests.collector.judge.live_device import HOUR, WORKER, Device, evaluator_of

from soakwatch.core.registry import rules as installed
from soakwatch.judge.live.evaluator import LiveEvaluator
from soakwatch.judge.record_verdict import judge_record
from soakwatch.plan.rule_plan import planned_rules
from soakwatch.record import RecordView
from soakwatch_model.case import Case
from soakwatch_model.event import Event
from soakwatch_model.fact import Certainty
from soakwatch_model.finding import Finding, Forecast, InconclusiveReason, Outcome
from soakwatch_rules.detectors.cpu_spike import CpuSpike
from soakwatch_rules.detectors.memory_growth import MemoryGrowth
from soakwatch_rules.finding_draft import draft
from soakwatch_rules.rule import RuleSpec
from soakwatch_testing.records import SECOND, T0


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Device]:
    """A device whose record is closed in the end."""
    device = Device(tmp_path / "run")
    yield device
    device.record.close()


def only(evaluator: LiveEvaluator) -> Finding:
    """The one finding that is said."""
    (finding,) = evaluator.findings
    return finding


@dataclass(frozen=True, slots=True)
class Trending:
    """A trend that is whatever the newest reading says: 2 certain growth, 1 likely growth, 0 none."""

    name: ClassVar[str] = "trending"
    version: ClassVar[int] = 1
    summary: ClassVar[str] = "grows"
    metrics: ClassVar[tuple[str, ...]] = ("system.memory.usage",)
    scope: ClassVar[Literal["object", "metric", "target"]] = "metric"
    phases: ClassVar[tuple[str, ...]] = ("soak",)
    spec: ClassVar[RuleSpec] = RuleSpec("a reading", live="minutes")

    def definition(self) -> str:
        """None to speak of."""
        return "grows if it says so"

    def judge(self, case: Case) -> tuple[Finding, ...]:
        """What the newest reading says."""
        drafted = draft(self, case, case.series[0])
        newest = int(case.series[0].values[-1])
        finding = replace(
            drafted,
            outcome=Outcome.FAIL if newest else Outcome.PASS,
            reason=f"{newest}",
            facts=(Certainty(0.5 + 0.45 * min(newest, 1) + 0.05 * (newest == 2)),),
            forecast=Forecast("the limit", 3600.0, 3000.0, 4000.0),
        )
        return (finding,)


def test_a_trend_is_reported_after_two_evaluations_and_withdrawn_openly(device: Device) -> None:
    """Not before two hours, not after one evaluation; a warning with its forecast; withdrawn when it is over."""
    grows = [2.0]
    device.levels["system.memory.usage", ""] = lambda _: grows[0]
    evaluator = evaluator_of(device, Trending())
    outcomes: list[str] = []
    warned_at: list[int] = []
    for _ in range(24):
        device.run(600)
        grows[0] = 2.0 if device.elapsed_s < 3 * HOUR else 0.0
        evaluator.evaluate()
        device.record.put_findings(evaluator.findings, live=True, judged_ns=T0 + device.elapsed_s * SECOND)
        outcomes.append(",".join(f.outcome.value for f in evaluator.findings))
        if "warn" in outcomes[-1]:
            warned_at.append(device.elapsed_s)
            assert "so far: only the end of the run decides" in only(evaluator).sentence
            assert only(evaluator).forecast is not None
        elif "inconclusive" in outcomes[-1]:
            assert only(evaluator).why is InconclusiveReason.PENDING
            assert only(evaluator).settle
    assert outcomes[:12] == [""] * 12
    assert outcomes[12:14] == ["inconclusive", "warn"]
    assert outcomes[-1] == "pass"
    with RecordView.open(device.folder) as view:
        ((withdrawn_ns, finding),) = view.withdrawn()
    assert finding.outcome is Outcome.WARN
    assert withdrawn_ns > T0 + warned_at[-1] * SECOND


def test_what_happens_is_judged_although_its_rule_rests(tmp_path: Path) -> None:
    """An evaluation that costs much makes its rule rest; an event of the target ends the rest, bookkeeping does not."""
    device = Device(tmp_path / "run", interval_s=10)
    device.levels["system.cpu.utilization", ""] = lambda second: (
        1.0 if 1260 <= second < 1320 else 0.3 + 0.001 * (second % 7)
    )
    device.levels["system.memory.usage", ""] = lambda _: 1e9
    clock = [0.0]

    def cpu_s() -> float:
        clock[0] += 0.005
        return clock[0]

    evaluator = evaluator_of(device, CpuSpike(), cpu_s=cpu_s)
    for _ in range(20):
        device.run(60)
        evaluator.evaluate()
    (subject,) = evaluator._subjects.values()
    device.run(120)
    subject.evaluated_ns, subject.rests_ns = T0 + 1200 * SECOND, T0 + 9999 * SECOND
    device.record.add_event("dut", Event("recorder.window", "dut", "", T0 + 1300 * SECOND, None), "monitor")
    evaluator.evaluate()
    assert only(evaluator).outcome is not Outcome.FAIL
    device.record.add_event("dut", Event("process.restart", "dut", WORKER, T0 + 1310 * SECOND, None), "probe")
    evaluator.evaluate()
    device.record.close()
    assert only(evaluator).outcome is Outcome.FAIL


def test_likely_growth_is_not_reported(device: Device) -> None:
    """With a probability of 0.95 a trend fails at the end; while the run goes on it takes 0.99."""
    device.levels["system.memory.usage", ""] = lambda _: 1.0
    evaluator = evaluator_of(device, Trending())
    for _ in range(18):
        device.run(600)
        evaluator.evaluate()
    assert only(evaluator).outcome is Outcome.INCONCLUSIVE


def test_a_short_run_has_trends_in_its_second_half(tmp_path: Path) -> None:
    """A run of an hour cannot wait for two: memory that grows is warned of after half an hour and two evaluations."""
    device = Device(tmp_path / "run", hours=1)
    device.levels["system.memory.usage", ""] = lambda second: 1e9 + 1e6 * second
    evaluator = evaluator_of(device, MemoryGrowth())
    outcomes = []
    for _ in range(60):
        device.run(60)
        evaluator.evaluate()
        outcomes.append(",".join(f.outcome.value for f in evaluator.findings))
    device.record.close()
    assert set(outcomes[:29]) == {""}
    assert outcomes[-1] == "warn"
    assert "it may be a warm-up" in only(evaluator).sentence


def test_what_was_found_stays_found(tmp_path: Path) -> None:
    """A spike is reported within the minute, and still at the end of four hours, with the marks of all spikes."""
    device = Device(tmp_path / "run", interval_s=5, hours=5)
    spikes = (range(1200, 1230), range(9000, 9040))
    device.levels["system.cpu.utilization", ""] = lambda second: (
        1.0 if any(second in spike for spike in spikes) else 0.3 + 0.01 * (second % 3)
    )
    evaluator = evaluator_of(device, CpuSpike())
    first = None
    for _ in range(240):
        device.run(60)
        evaluator.evaluate()
        if first is None and only(evaluator).outcome is Outcome.FAIL:
            first = device.elapsed_s
    device.record.close()
    assert first == 1260
    finding = only(evaluator)
    assert finding.outcome is Outcome.FAIL
    assert [(mark.begin_ns - T0) // SECOND // 60 for mark in finding.marks] == [19, 149]
    with RecordView.open(device.folder) as view:
        (final,) = judge_record(view, only=["cpu_spike"]).findings
    assert len(finding.marks) == len(final.marks)


def test_another_process_goes_on_where_one_was_killed(tmp_path: Path) -> None:
    """A judge that works its state out from the record says the same, and what has left the hour is remembered."""
    device = Device(tmp_path / "run", interval_s=5, hours=6)
    device.levels["system.cpu.utilization", ""] = lambda second: (
        1.0 if second in range(1200, 1230) else 0.3 + 0.01 * (second % 3)
    )
    device.levels["system.memory.usage", ""] = lambda second: 1e9 + 2e4 * second
    device.levels["process.up", WORKER] = lambda second: float(second not in range(3000, 3010))
    device.levels["process.start_time", WORKER] = lambda second: 1000.0 + 500 * (second > 3000)
    rules = planned_rules(())
    rules = tuple(rule for rule in rules if rule.name in {"cpu_spike", "memory_growth", "process_restart", "coverage"})
    before = evaluator_of(device, *rules)
    for _ in range(240):
        device.run(60)
        before.evaluate()
    device.record.put_findings(before.findings, live=True, judged_ns=T0 + device.elapsed_s * SECOND)
    after = evaluator_of(device, *rules)
    with RecordView.open(device.folder) as view:
        after.remember(view.findings(live=True))
    after.evaluate()
    device.record.close()

    def summary(evaluator: LiveEvaluator) -> list[tuple[object, ...]]:
        return sorted((f.rule, f.metric, f.object, f.outcome, f.marks) for f in evaluator.findings)

    assert summary(after) == summary(before)
    assert {f.outcome for f in after.findings if f.rule == "memory_growth"} == {Outcome.WARN}
    assert {f.outcome for f in after.findings if f.rule == "cpu_spike"} == {Outcome.FAIL}


@pytest.mark.parametrize("back", [True, False])
def test_rules_of_the_whole_run_say_what_the_record_says(tmp_path: Path, back: bool) -> None:
    """Restarts, reboots, crashes and coverage: outcome, number and marks are those of the verdict at that moment."""
    device = Device(tmp_path / "run", hours=4, phases=("baseline", "soak"))
    device.levels |= {
        ("process.up", WORKER): lambda second: float(second not in range(5000, 5200) and (back or second < 9000)),
        ("process.start_time", WORKER): lambda second: (
            None if second in range(5000, 5200) else 1000.0 + 5100 * (second >= 5200)
        ),
        ("process.count", "process=worker"): lambda second: float(
            second not in range(5000, 5200) and (back or second < 9000)
        ),
        ("system.boot.id", ""): lambda second: None if second in range(6000, 6300) else 5.0 + (second > 6100),
        ("system.uptime", ""): lambda second: (
            None if second in range(6000, 6300) else float(second - 6100 * (second > 6100))
        ),
        ("system.memory.oom_kills", ""): lambda second: float(second > 7000),
        ("system.core.files", "folder=/var/crash"): lambda second: float(second > 7000),
    }
    rules = tuple(rule for rule in planned_rules(()) if rule.spec.live == "whole")
    evaluator = evaluator_of(device, *rules)
    for minute in range(180):
        device.run(60)
        evaluator.evaluate()
        if minute == 30:
            device.record.begin_phase("soak", T0 + device.elapsed_s * SECOND)
        if minute % 40 == 39:
            device.record.compact(final=True)
    with RecordView.open(device.folder) as view:
        final = judge_record(view, only=[rule.name for rule in rules]).findings
    device.record.close()

    def summary(findings: Sequence[Finding]) -> list[tuple[object, ...]]:
        return sorted((f.rule, f.target, f.object, f.outcome, f.measured or 0.0, f.marks) for f in findings)

    known = {"process_restart", "reboot", "oom_kill", "core_dump", "coverage"}
    assert summary([f for f in evaluator.findings if f.rule in known]) == summary([f for f in final if f.rule in known])
    alarms = {Outcome.FAIL, Outcome.WARN}  # nothing undoes what happened
    assert all(f.sentence.endswith("(so far)") == (f.outcome not in alarms) for f in evaluator.findings)
    assert {f.rule for f in evaluator.findings if f.outcome is Outcome.FAIL} >= {"process_restart", "reboot"}


def test_an_evaluation_spends_no_more_than_its_share(tmp_path: Path) -> None:
    """Where evaluations cost more than their share, each series is evaluated less often, but every one of them is."""
    device = Device(tmp_path / "run", interval_s=10)
    rng = np.random.default_rng(1)
    for core in range(40):
        device.levels["system.cpu.core.utilization", f"core={core}"] = lambda _: 0.3 + 0.01 * rng.random()
    clock = [0.0]
    seen: dict[str, int] = {}

    @dataclass(frozen=True, slots=True)
    class Slow(CpuSpike):
        def judge(self, case: Case) -> tuple[Finding, ...]:
            clock[0] += 0.008
            seen[case.object] = seen.get(case.object, 0) + 1
            return CpuSpike(self.enter).judge(case)

    evaluator = evaluator_of(device, Slow(), cpu_s=lambda: clock[0])
    for _ in range(60):
        device.run(60)
        evaluator.evaluate()
    device.record.close()
    assert clock[0] <= (60 + 10 + 5) * 0.016 + 0.008
    assert len(seen) == 40
    assert max(seen.values()) - min(seen.values()) <= 2


def test_every_installed_rule_can_judge_a_live_run(tmp_path: Path) -> None:
    """All rules together, over an outage and a restart, raise nothing and say that they judged the run so far."""
    device = Device(tmp_path / "run", hours=3)
    rng = np.random.default_rng(2)
    out = range(4000, 4300)
    device.levels |= {
        ("system.cpu.utilization", ""): lambda second: None if second in out else float(rng.random()),
        ("system.memory.usage", ""): lambda second: None if second in out else 1e9 + 1e5 * second,
        ("process.up", WORKER): lambda second: None if second in out else 1.0,
        ("process.start_time", WORKER): lambda second: None if second in out else 1000.0 + 4200 * (second > 4200),
        ("system.network.packet.dropped", "interface=eth0,direction=receive"): lambda second: (
            None if second in out else float(second // 3000)
        ),
    }
    rules = planned_rules(())
    assert {rule.name for rule in rules} == set(installed())
    evaluator = evaluator_of(device, *rules)
    for _ in range(150):
        device.run(60)
        evaluator.evaluate()
    device.record.close()
    assert {f.rule for f in evaluator.findings} >= {"cpu_spike", "coverage", "process_restart"}
    assert all("so far" in f.sentence or "in the last hour" in f.sentence or f.marks for f in evaluator.findings)
