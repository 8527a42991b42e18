"""Phases that end when their condition comes, and at their longest time when it does not."""

from __future__ import annotations

import numpy as np
import pytest

from soakwatch.core.errors import PlanError
from soakwatch.engine.phases import PhaseChange, PhaseTimeline
from soakwatch.plan import plan_from_text
from soakwatch.plan.phase import PhasePlan
from soakwatch_model.event import Event
from soakwatch_model.sample import Sample

S = 10**9
START = 1_700_000_000 * S


def begin(phasing: PhaseTimeline, at_s: float) -> PhaseChange:
    """The phase that begins at this second."""
    turn = phasing.next_change(START + round(at_s * S))
    assert turn is not None
    phasing.begun()
    return turn


def test_the_soak_begins_when_the_generator_does() -> None:
    """A counter that stands still is no load; the first that grows ends the baseline at that reading."""
    phasing = PhaseTimeline(
        [PhasePlan(name="baseline", seconds=600, until="load"), PhasePlan(name="soak", seconds=3600)], START
    )
    assert begin(phasing, 0).stretch.name == "baseline"
    for second, sent in ((1, 500), (2, 500), (3, 500)):
        phasing.observe("generator", 1, [Sample("load.tx.packets", "", sent, START + second * S)])
        assert phasing.next_change(START + second * S) is None
    phasing.observe("dut", 2, [Sample("load.tx.packets", "", 9, START + 3 * S)])
    assert phasing.next_change(START + 3 * S) is None
    phasing.observe("generator", 1, [Sample("load.tx.packets", "", 900, START + 40 * S)])
    turn = begin(phasing, 41)
    assert (turn.stretch.name, turn.stretch.window.begin_ns) == ("soak", START + 40 * S)
    assert turn.event is not None
    assert turn.event.detail["reason"] == "the generator started sending"
    assert phasing.end_ns == START + 3640 * S  # the soak keeps its length; the run saves what the baseline did not need


def test_a_generator_that_never_sends_does_not_hold_the_run() -> None:
    """The phase ends at its longest time, and the event says that nothing came."""
    phasing = PhaseTimeline(
        [PhasePlan(name="baseline", seconds=60, until="load"), PhasePlan(name="soak", seconds=60)], START
    )
    begin(phasing, 0)
    phasing.observe("generator", 1, [Sample("load.sending", "", 0, START + S)])
    assert phasing.next_change(START + 59 * S) is None
    turn = begin(phasing, 60)
    assert turn.stretch.window.begin_ns == START + 60 * S
    assert turn.event is not None
    assert turn.event.detail["reason"] == "no generator was seen sending within the longest time of baseline"


def test_an_event_ends_a_phase_only_while_it_lasts() -> None:
    """An event of another kind, or from before the phase, ends nothing; one in the future does not end it now."""
    phasing = PhaseTimeline(
        [PhasePlan(name="soak", seconds=600, until="event failover"), PhasePlan(name="recovery", seconds=60)], START
    )
    begin(phasing, 0)
    for kind, begin_s in (("upgrade", 5), ("failover", -5), ("failover", 700)):
        phasing.observe_event(Event(kind, "", "", START + begin_s * S, None))
        assert phasing.next_change(START + 6 * S) is None
    phasing.observe_event(Event("failover", "", "", START + 100 * S, None))
    turn = begin(phasing, 101)
    assert (turn.stretch.name, turn.stretch.window.begin_ns) == ("recovery", START + 100 * S)


def test_the_last_phase_may_end_early_too() -> None:
    """Then the run ends, once, when it is noticed: what was polled until then is of the run."""
    phasing = PhaseTimeline([PhasePlan(name="soak", seconds=86400, until="event stop")], START)
    begin(phasing, 0)
    phasing.observe_event(Event("stop", "", "", START + 100 * S, None))
    for second in (101, 102):
        assert phasing.next_change(START + second * S) is None
        assert phasing.end_ns == START + 101 * S


@pytest.mark.parametrize(("rise_per_s", "settles"), [(0.0, True), (0.0005, False)])
def test_a_ramp_ends_when_the_levels_have_settled(rise_per_s: float, *, settles: bool) -> None:
    """CPU that goes on rising by 3 points a minute has not settled; one that only scatters has."""
    rng = np.random.default_rng(4)
    phasing = PhaseTimeline(
        [PhasePlan(name="ramp", seconds=600, until="settled"), PhasePlan(name="soak", seconds=60)], START
    )
    begin(phasing, 0)
    ended_s = None
    for second in range(300):
        level = 0.2 + (0.3 if second > 20 else second * 0.015) + rise_per_s * second + 0.01 * rng.standard_normal()
        phasing.observe("dut", 1, [Sample("system.cpu.utilization", "", level, START + second * S)])
        turn = phasing.next_change(START + second * S)
        if turn is not None:
            ended_s = second
            break
    assert (ended_s is not None) == settles
    if ended_s is not None:
        assert 75 <= ended_s <= 110  # a minute after the rise of the first 20 s, not at once and not never


def test_a_resumed_run_goes_on_in_its_phase() -> None:
    """The times of phases that had begun come from the record: a cut that an earlier life saw stays."""
    plan = [
        PhasePlan(name="baseline", seconds=600, until="load"),
        PhasePlan(name="soak", seconds=3600),
        PhasePlan(name="recovery", seconds=60),
    ]
    phasing = PhaseTimeline(plan, START, [START, START + 40 * S])
    assert phasing.now is not None
    assert (phasing.now.name, phasing.end_ns) == ("soak", START + 3700 * S)
    assert phasing.due_ns() == (START + 3640 * S,)


def test_the_load_of_a_phase_holds_until_another_names_one() -> None:
    """Before the first phase with a level no level is set; a plan that names none means the full load all along."""
    phasing = PhaseTimeline(
        [
            PhasePlan(name="baseline", seconds=10),
            PhasePlan(name="soak", seconds=10, load=0.8),
            PhasePlan(name="recovery", seconds=10),
        ],
        START,
    )
    seen = [phasing.load]
    for at_s in (0, 10, 20):
        begin(phasing, at_s)
        seen.append(phasing.load)
    assert seen == [None, None, 0.8, 0.8]
    plain = PhaseTimeline([PhasePlan(name="soak", seconds=10)], START)
    assert plain.load is None
    begin(plain, 0)
    assert plain.load == 1.0


def plan(phases: str, drive: str = "") -> str:
    """A plan with these phases."""
    return (
        f"phases: {phases}\ntargets:\n  dut: {{sources: [local]}}\n"
        f"  tg: {{role: generator, sources: [{{command: {{run: [x]{drive}}}}}]}}\n"
    )


@pytest.mark.parametrize(
    ("phases", "problem"),
    [
        ("[{soak: {for: 1h, lod: 80%}}]", "unknown key 'lod'; did you mean 'load'?"),
        ("[{soak: {load: 80%}}]", "the phase 'soak' has no duration: write soak: {for: 30m}"),
        (
            "[{soak: {for: 1h, load: -1}}]",
            "load: -1 is not a share of the full load: write 80%, 120%, or 0 for no load",
        ),
        ("[{soak: {for: 1h, until: later}}]", "until: 'later' cannot end a phase"),
        ("[{soak: {for: 1h, until: event}}]", "until: 'event' cannot end a phase"),
        ("[{soak: {for: 1h, load: 80%}}]", "no generator is driven"),
    ],
)
def test_bad_phases_are_refused(phases: str, problem: str) -> None:
    """With one sentence and its place."""
    with pytest.raises(PlanError, match=r"p\.yaml:1:") as refused:
        plan_from_text(plan(phases), "p.yaml")
    assert problem in str(refused.value)


def test_a_plan_without_a_generator_cannot_wait_for_load() -> None:
    """It would wait for nothing."""
    with pytest.raises(PlanError, match="no target has role: generator"):
        plan_from_text("phases: [{baseline: {for: 1m, until: load}}]\ntargets: {dut: {sources: [local]}}\n", "p.yaml")


def test_a_stretched_plan_keeps_its_conditions() -> None:
    """``--duration`` changes the length of the soak and nothing else."""
    text = plan("[{baseline: {for: 10m, until: load}}, {soak: {for: 1h, until: event stop}}]")
    stretched = plan_from_text(text, "p.yaml").lasting("30m")
    assert stretched.phases == (
        PhasePlan(name="baseline", seconds=600.0, until="load"),
        PhasePlan(name="soak", seconds=1200.0, until="event stop"),
    )
    assert plan_from_text(stretched.text, "again.yaml").phases == stretched.phases
