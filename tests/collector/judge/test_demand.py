"""Which inconclusive findings block a verdict: those that the run could have settled."""

from __future__ import annotations

from dataclasses import replace

import pytest

from soakwatch.judge.pass_requirements import Demand
from soakwatch.judge.verdict import fold
from soakwatch_model.fact import Certainty
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.window import Window

WINDOW = Window(0, 86_400 * 10**9)
NAMED = Demand(named=frozenset({"growth"}))
INSISTED = Demand(insisted=frozenset({"growth"}))
OPTIONAL = Demand(optional=frozenset({"growth"}))


def open_finding(why: InconclusiveReason, rule: str = "growth", **changes: object) -> Finding:
    """An inconclusive finding of a series of which every reading was there."""
    finding = Finding(rule, 1, Outcome.INCONCLUSIVE, "fw", "m", "", WINDOW, "", "doubt", 24, expected=24, why=why)
    return replace(finding, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("finding", "demand", "held_up"),
    [
        (open_finding(InconclusiveReason.CADENCE), Demand(), False),
        (open_finding(InconclusiveReason.CADENCE), NAMED, False),
        (open_finding(InconclusiveReason.CADENCE), INSISTED, True),
        (open_finding(InconclusiveReason.TOO_SHORT), Demand(), False),
        (open_finding(InconclusiveReason.TOO_SHORT), NAMED, True),
        (open_finding(InconclusiveReason.TOO_FEW), Demand(), False),
        (open_finding(InconclusiveReason.TOO_FEW, samples=9), Demand(), True),
        (open_finding(InconclusiveReason.TOO_FEW, expected=None), Demand(), True),
        (open_finding(InconclusiveReason.GAP), Demand(), True),
        (open_finding(InconclusiveReason.GAP), OPTIONAL, False),
        (open_finding(InconclusiveReason.UNREAD), Demand(), True),
        (open_finding(InconclusiveReason.GENERATOR), Demand(), True),
        (open_finding(InconclusiveReason.TOO_SHORT, "coverage"), Demand(), True),
        (open_finding(InconclusiveReason.NOISE), Demand(), True),
        (open_finding(InconclusiveReason.NOISE, measured=1.0, limit=2.0), Demand(), False),
        (open_finding(InconclusiveReason.NOISE, measured=3.0, limit=2.0), Demand(), True),
        (open_finding(InconclusiveReason.NOISE, measured=-3.0, limit=-2.0), Demand(), True),
        (
            open_finding(InconclusiveReason.NOISE, measured=3.0, limit=2.0, facts=(Certainty(0.16),)),
            Demand(),
            False,
        ),
        (open_finding(InconclusiveReason.CYCLE, measured=1.0, limit=2.0, facts=(Certainty(0.7),)), Demand(), True),
        (open_finding(InconclusiveReason.NOISE, measured=1.0, limit=2.0), INSISTED, True),
        (open_finding(InconclusiveReason.TOO_SHORT, "growth", facts=(Certainty(0.999),)), OPTIONAL, True),
        (open_finding(InconclusiveReason.TOO_SHORT, "growth", facts=(Certainty(0.998),)), OPTIONAL, False),
        (open_finding(InconclusiveReason.TOO_SHORT, "performance_decline", facts=(Certainty(1.0),)), Demand(), False),
    ],
)
def test_an_inconclusive_finding_blocks_what_the_run_could_have_shown(
    finding: Finding, demand: Demand, held_up: bool
) -> None:
    passed = replace(finding, outcome=Outcome.PASS, why=None, rule="drops")
    verdict = fold("run", WINDOW, {"fw": "dut"}, [finding, passed], (), (), demand)
    assert verdict.outcome is (Outcome.INCONCLUSIVE if held_up else Outcome.PASS)
    assert {verdict.findings[index].rule for index in verdict.waived} == (set() if held_up else {finding.rule})


def test_a_run_of_which_every_inconclusive_finding_is_waived_decided_nothing() -> None:
    assert (
        fold("run", WINDOW, {"fw": "dut"}, [open_finding(InconclusiveReason.TOO_SHORT)], (), ()).outcome
        is Outcome.INCONCLUSIVE
    )


@pytest.mark.parametrize(("metric", "back", "held_up"), [("m", 2, False), ("m", 1, True), ("queue.depth", 5, True)])
def test_most_series_came_back_from_the_stress(metric: str, back: int, held_up: bool) -> None:
    """One of many that cannot be compared holds nothing up; a queue that was filled has to be seen to drain."""
    odd = open_finding(InconclusiveReason.NO_REFERENCE, "recovery", metric=metric)
    well = [
        replace(open_finding(InconclusiveReason.NOISE, "recovery", outcome=Outcome.PASS, object=f"{n}"), why=None)
        for n in range(back)
    ]
    verdict = fold("run", WINDOW, {"fw": "dut"}, [odd, *well], (), ())
    assert verdict.outcome is (Outcome.INCONCLUSIVE if held_up else Outcome.PASS)
