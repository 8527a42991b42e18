"""Who saw a fault of a drill: the findings whose moments lie within it, and nothing else."""

from __future__ import annotations

from dataclasses import replace

from soakwatch.engine.drill.faults import LiveFault
from soakwatch.engine.drill.live import InjectedFault, Pace, detections_of
from soakwatch_model.finding import Finding, Mark, Outcome
from soakwatch_model.window import Window

S = 10**9
FAULT = LiveFault("kill", "dut", "bgpd", "kill it", "true", "", 0.0)
MADE = InjectedFault(FAULT, 100 * S, 110 * S)
DIED = Finding(
    rule="process_restart",
    version=1,
    outcome=Outcome.FAIL,
    target="dut",
    metric="process.up",
    object="process=bgpd,instance=0",
    window=Window(0, 600 * S),
    definition="",
    reason="bgpd exited",
    samples=600,
    marks=(Mark(104 * S, None, "exit"),),
)


def test_a_finding_at_the_moment_of_the_fault_has_seen_it() -> None:
    """With the time after which it points, and after which the running judge said so."""
    noticed = {("process_restart", "dut", "process.up", "process=bgpd,instance=0"): 125 * S}
    (seen,) = detections_of(MADE, [DIED], noticed, rest_s=30)
    assert (seen.rule, seen.outcome, seen.after_s, seen.live_after_s) == ("process_restart", Outcome.FAIL, 4.0, 25.0)
    (late,) = detections_of(MADE, [DIED], {}, rest_s=30)
    assert late.live_after_s is None


def test_what_is_elsewhere_or_no_moment_has_not() -> None:
    """Another target, a pass, a moment behind the rest, a mark as long as the run, a moment of the fault before."""
    others = [
        replace(DIED, target="tg"),
        replace(DIED, outcome=Outcome.PASS),
        replace(DIED, marks=(Mark(141 * S, None, "exit"),)),
        replace(DIED, marks=(Mark(99 * S, 600 * S, "where it looked"),)),
        replace(DIED, marks=(Mark(90 * S, 95 * S, "exit"),)),
        replace(DIED, marks=()),
    ]
    assert detections_of(MADE, others, {}, rest_s=30) == ()


def test_the_rests_are_counted() -> None:
    lasting = replace(FAULT, lasts_s=60.0)
    assert Pace(30.0).total_s([FAULT, lasting]) == 2 * 30 + 30 + 90
