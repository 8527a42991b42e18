"""Which doubts hold a verdict up: those that the run could have settled."""

from __future__ import annotations

from dataclasses import replace

import pytest

from soakwatch.judge.pass_requirements import Demand
from soakwatch.judge.verdict import fold
from soakwatch_rules.rule import Finding, InconclusiveReason, Outcome, Window

WINDOW = Window(0, 86_400 * 10**9)
NAMED = Demand(named=frozenset({"growth"}))
INSISTED = Demand(insisted=frozenset({"growth"}))
OPTIONAL = Demand(optional=frozenset({"growth"}))


def doubt(why: InconclusiveReason, rule: str = "growth", **told: object) -> Finding:
    """An inconclusive finding of a series of which every reading was there."""
    made = Finding(rule, 1, Outcome.INCONCLUSIVE, "fw", "m", "", WINDOW, "", "doubt", 24, expected=24, why=why)
    return replace(made, **told)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("finding", "demand", "held_up"),
    [
        (doubt(InconclusiveReason.CADENCE), Demand(), False),
        (doubt(InconclusiveReason.CADENCE), NAMED, False),
        (doubt(InconclusiveReason.CADENCE), INSISTED, True),
        (doubt(InconclusiveReason.TOO_SHORT), Demand(), False),
        (doubt(InconclusiveReason.TOO_SHORT), NAMED, True),
        (doubt(InconclusiveReason.TOO_FEW), Demand(), False),
        (doubt(InconclusiveReason.TOO_FEW, samples=9), Demand(), True),
        (doubt(InconclusiveReason.TOO_FEW, expected=None), Demand(), True),
        (doubt(InconclusiveReason.GAP), Demand(), True),
        (doubt(InconclusiveReason.GAP), OPTIONAL, False),
        (doubt(InconclusiveReason.UNREAD), Demand(), True),
        (doubt(InconclusiveReason.GENERATOR), Demand(), True),
        (doubt(InconclusiveReason.TOO_SHORT, "coverage"), Demand(), True),
        (doubt(InconclusiveReason.NOISE), Demand(), True),
        (doubt(InconclusiveReason.NOISE, measured=1.0, limit=2.0), Demand(), False),
        (doubt(InconclusiveReason.NOISE, measured=3.0, limit=2.0), Demand(), True),
        (doubt(InconclusiveReason.NOISE, measured=-3.0, limit=-2.0), Demand(), True),
        (doubt(InconclusiveReason.NOISE, measured=3.0, limit=2.0, numbers={"probability": 0.16}), Demand(), False),
        (doubt(InconclusiveReason.CYCLE, measured=1.0, limit=2.0, numbers={"probability": 0.7}), Demand(), True),
        (doubt(InconclusiveReason.NOISE, measured=1.0, limit=2.0), INSISTED, True),
    ],
)
def test_a_doubt_holds_up_what_the_run_could_have_shown(finding: Finding, demand: Demand, held_up: bool) -> None:
    passed = replace(finding, outcome=Outcome.PASS, why=None, rule="drops")
    verdict = fold("run", WINDOW, {"fw": "dut"}, [finding, passed], (), (), demand)
    assert verdict.outcome is (Outcome.INCONCLUSIVE if held_up else Outcome.PASS)
    assert {verdict.findings[place].rule for place in verdict.waived} == (set() if held_up else {finding.rule})


def test_a_run_of_which_every_doubt_is_waived_decided_nothing() -> None:
    assert (
        fold("run", WINDOW, {"fw": "dut"}, [doubt(InconclusiveReason.TOO_SHORT)], (), ()).outcome
        is Outcome.INCONCLUSIVE
    )


@pytest.mark.parametrize(("metric", "back", "held_up"), [("m", 2, False), ("m", 1, True), ("queue.depth", 5, True)])
def test_most_series_came_back_from_the_stress(metric: str, back: int, held_up: bool) -> None:
    """One of many that cannot be compared holds nothing up; a queue that was filled has to be seen to drain."""
    odd = doubt(InconclusiveReason.NO_REFERENCE, "recovery", metric=metric)
    well = [
        replace(doubt(InconclusiveReason.NOISE, "recovery", outcome=Outcome.PASS, object=f"{n}"), why=None)
        for n in range(back)
    ]
    verdict = fold("run", WINDOW, {"fw": "dut"}, [odd, *well], (), ())
    assert verdict.outcome is (Outcome.INCONCLUSIVE if held_up else Outcome.PASS)
