"""What comes back over a device is the device's doing: the load's latency in the verdict of a whole record."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from soakwatch.judge.cases import CaseBuilder
from soakwatch.judge.judge import RuleUse, judge
from soakwatch.judge.verdict import Verdict
from soakwatch.record import Record, RecordView, SeriesKey
from soakwatch.report.page import open_page
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample
from soakwatch_model.window import Window
from soakwatch_rules.detectors.event_impact import EventImpact
from soakwatch_rules.detectors.generator_health import GeneratorHealth
from soakwatch_rules.detectors.overload_loss import OverloadLoss
from soakwatch_rules.detectors.recovery import Recovery
from soakwatch_rules.rule import Rule

SECOND = 10**9
T0 = 1_700_000_000 * SECOND
APART = 10
PHASES = (("soak", 0, 1800), ("stress", 1800, 2400), ("recovery", 2400, 6000))
LATENCY = "load.latency"


def recorded(
    folder: Path,
    after: float,
    *,
    devices: int = 1,
    generators: int = 1,
    queue_full: int = 0,
    stressed: bool = True,
    events: Sequence[Event] = (),
    carried: float = 1.0,
    quantile: str = "p99",
    own_loss: float | None = None,
) -> RecordView:
    """A run of a hundred minutes: a latency of 1 ms, 5 ms under stress and ``after`` times 1 ms behind it.

    Each generator sends 1000 packets a second, of which the share ``carried`` comes back under stress.
    """
    rng = np.random.default_rng(7)
    count = 6000 // APART
    late = 1e-3 * (1 + 0.02 * rng.standard_normal(count))
    second = APART * np.arange(count)
    above = (second >= 1800) & (second < 2400)
    late[above] *= 5
    late[second >= 2400] *= after
    back = np.cumsum(np.where(above, carried, 1.0) * 1000 * APART)
    with Record.create(folder) as record:
        duts = [f"dut{n}" for n in range(devices)] if devices > 1 else ["dut"]
        names = [f"tg{n}" for n in range(generators)] if generators > 1 else ["tg"]
        for name in duts:
            record.target(name, "dut")
        for name in names:
            record.target(name, "generator")
        sources = {
            name: record.source(name, "local", "local", APART * SECOND, required=True).id for name in (*duts, *names)
        }
        for phase, begin, _ in PHASES if stressed else (("soak", 0, 6000),):
            record.begin_phase(phase, T0 + begin * SECOND)
        polls = []
        for number in range(count):
            due = T0 + number * APART * SECOND
            for name, source in sources.items():
                if name in duts:
                    samples = [Sample("system.cpu.utilization", "", 0.3 + 0.01 * float(rng.standard_normal()), due)]
                else:
                    samples = [
                        Sample(LATENCY, f"quantile={quantile}", float(late[number]), due),
                        Sample("load.tx.packets", "", 1000 * APART * (number + 1), due),
                        Sample("load.rx.packets", "", int(back[number]), due),
                        Sample("load.queue_full", "", queue_full if number > 250 else 0, due),
                    ]
                    if own_loss is not None and not number:
                        samples.append(Sample("load.ceiling.loss", "", own_loss, due))
                polls.append(Poll(source, due, due, 1, PollOutcome.OK, None, Answer(tuple(samples), (), ())))
        record.put(polls)
        record.end_phase(T0 + count * APART * SECOND)
        for event in events:
            record.add_event(event.target, event, "user")
    return RecordView.open(folder)


def judged(view: RecordView, *rules: Rule) -> Verdict:
    """The verdict of a record by some rules, all required."""
    with view:
        return judge(view, "run", [RuleUse(rule, required=True) for rule in rules])


def of_latency(verdict: Verdict) -> list[Finding]:
    """What recovery says of the latency."""
    return [f for f in verdict.findings if f.rule == "recovery" and f.metric == LATENCY]


@pytest.mark.parametrize(("after", "outcome"), [(1.0, Outcome.PASS), (1.6, Outcome.FAIL)])
def test_a_latency_that_does_not_come_back_is_the_devices(tmp_path: Path, after: float, outcome: Outcome) -> None:
    """Between the generator and itself there is one device: what recovery says of the latency counts as its own."""
    verdict = judged(recorded(tmp_path / "run", after), Recovery(), GeneratorHealth())
    (finding,) = of_latency(verdict)
    assert (finding.outcome, finding.target, finding.object) == (outcome, "dut", "quantile=p99")
    assert verdict.outcome is outcome
    assert {t.target: t.outcome for t in verdict.targets} == {"dut": outcome, "tg": Outcome.PASS}
    assert [f.target for f in verdict.findings if f.rule == "generator_health"] == ["tg"]


def test_of_several_devices_nobody_knows_which(tmp_path: Path) -> None:
    """With two devices it is a warning, and says why."""
    verdict = judged(recorded(tmp_path / "run", 1.6, devices=2), Recovery())
    (finding,) = of_latency(verdict)
    assert (finding.outcome, finding.target) == (Outcome.WARN, "tg")
    assert "which of the 2 devices it is due to is not known" in finding.sentence
    assert verdict.outcome is Outcome.PASS


def test_with_a_generator_at_fault_it_is_nobodys(tmp_path: Path) -> None:
    """Its queue was full: its latency tells nothing of the device, and the device's own CPU is judged all the same."""
    verdict = judged(recorded(tmp_path / "run", 1.6, queue_full=9), Recovery(), GeneratorHealth())
    (finding,) = of_latency(verdict)
    assert (finding.outcome, finding.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.GENERATOR)
    assert "its queue was full 9 times" in finding.sentence
    (cpu,) = [f for f in verdict.findings if f.rule == "recovery" and f.metric == "system.cpu.utilization"]
    assert cpu.outcome is Outcome.PASS
    assert verdict.outcome is Outcome.INCONCLUSIVE


def test_two_generators_have_a_finding_each(tmp_path: Path) -> None:
    """Both of the one device, each by the name of its generator."""
    verdict = judged(recorded(tmp_path / "run", 1.6, generators=2), Recovery())
    findings = of_latency(verdict)
    assert sorted(f.object for f in findings) == ["generator=tg0,quantile=p99", "generator=tg1,quantile=p99"]
    assert {(f.target, f.outcome) for f in findings} == {("dut", Outcome.FAIL)}


def test_an_event_of_the_device_is_one_for_what_comes_back_over_it(tmp_path: Path) -> None:
    """A failover of the device, and no stress at all: the latency that was never as before again is judged after it."""
    failover = Event("failover", "dut", "", T0 + 1800 * SECOND, T0 + 2400 * SECOND)
    verdict = judged(recorded(tmp_path / "run", 1.6, stressed=False, events=(failover,)), Recovery())
    (finding,) = of_latency(verdict)
    assert (finding.outcome, finding.target) == (Outcome.FAIL, "dut")
    assert "after the failover" in finding.sentence or "did not recover" in finding.sentence


def test_a_highest_value_since_the_begin_is_no_level(tmp_path: Path) -> None:
    """The maximum that a generator keeps never falls: that it does not come back says nothing."""
    verdict = judged(running_maximum(tmp_path / "run"), Recovery())
    (finding,) = of_latency(verdict)
    assert finding.outcome is Outcome.NOT_APPLICABLE
    assert "the maximum since the generator started" in finding.sentence
    assert verdict.outcome is Outcome.PASS


def running_maximum(folder: Path) -> RecordView:
    """1 ms, then 5 ms for good, as the highest so far; the device is well."""
    with Record.create(folder) as record:
        record.target("dut", "dut")
        record.target("tg", "generator")
        dut, generator = (record.source(n, "local", "local", APART * SECOND, required=True).id for n in ("dut", "tg"))
        for name, begin, _ in PHASES:
            record.begin_phase(name, T0 + begin * SECOND)
        polls = []
        for number in range(600):
            due = T0 + number * APART * SECOND
            cpu = Sample("system.cpu.utilization", "", 0.3 + 0.001 * (number % 3), due)
            most = Sample(LATENCY, "quantile=max", 1e-3 if number < 200 else 5e-3, due)
            for source, sample in ((dut, cpu), (generator, most)):
                polls.append(Poll(source, due, due, 1, PollOutcome.OK, None, Answer((sample,), (), ())))
        record.put(polls)
        record.end_phase(T0 + 6000 * SECOND)
    return RecordView.open(folder)


def test_event_impact_counts_as_the_devices(tmp_path: Path) -> None:
    """Half of the packets were lost for the ten minutes of a failover: 300 s by loss, over a limit of 5 s."""
    failover = Event("failover", "dut", "", T0 + 1800 * SECOND, T0 + 2400 * SECOND)
    view = recorded(tmp_path / "run", 1.0, stressed=False, events=(failover,), carried=0.5)
    verdict = judged(view, EventImpact(outage=5.0), GeneratorHealth())
    (finding,) = [f for f in verdict.findings if f.rule == "event_impact"]
    assert (finding.outcome, finding.target) == (Outcome.FAIL, "dut")
    assert finding.measured == pytest.approx(300, abs=10)
    assert {t.target: t.outcome for t in verdict.targets}["dut"] is Outcome.FAIL


@pytest.mark.parametrize(
    ("own_loss", "outcome"), [(None, Outcome.FAIL), (0.01, Outcome.FAIL), (0.12, Outcome.INCONCLUSIVE)]
)
def test_a_calibrated_loss_of_the_generator_leaves_an_overload_open(
    tmp_path: Path, own_loss: float | None, outcome: Outcome
) -> None:
    """A tenth of 1000 packets a second lost at a capacity of 1000: a generator that loses 12 % by itself may have."""
    verdict = judged(recorded(tmp_path / "run", 1.0, carried=0.9, own_loss=own_loss), OverloadLoss(capacity=1000.0))
    (finding,) = verdict.findings
    assert finding.outcome is outcome
    assert (finding.why is InconclusiveReason.GENERATOR) == (outcome is Outcome.INCONCLUSIVE)
    assert verdict.outcome is outcome


def test_the_same_series_are_judged_live(tmp_path: Path) -> None:
    """A running judgement names the same subjects and gives them the same case."""
    with recorded(tmp_path / "run", 1.6) as view:
        case_builder = CaseBuilder(view)
        rule = Recovery()
        subjects = [(target, keys) for target, keys in case_builder.subjects(rule) if keys[0].metric == LATENCY]
        ((target, keys),) = subjects
        assert (target, keys[0].target) == ("dut", "tg")
        case = case_builder.case(rule, target, keys, Window(T0, T0 + 6000 * SECOND))
    assert (case.target, case.role, case.object, len(case.series)) == ("dut", "dut", "quantile=p99", 1)


def test_a_plot_belongs_to_what_came_back(tmp_path: Path) -> None:
    """The report draws the generator's series beside a finding on the device, with one generator and with two."""
    for generators, name in ((1, "tg"), (2, "tg1")):
        folder = tmp_path / f"run{generators}"
        verdict = judged(recorded(folder, 1.6, generators=generators), Recovery())
        finding = max(of_latency(verdict), key=lambda f: f.object)
        with RecordView.open(folder) as view:
            page = open_page(view, verdict)
            assert page.judged_by(finding) == (SeriesKey(name, LATENCY, "quantile=p99"),)
