"""observer_cost where polls paused: the mean difference of the CPU, how sure it is, and when it is not known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from soakwatch_model.case import Case
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.series import Series
from soakwatch_model.window import Phase, Window
from soakwatch_rules.detectors.observer_cost import COST, ObserverCost
from soakwatch_rules.management.poll_pauses import REST
from soakwatch_rules.signals import readings

S = 10**9
FIRST = (True, False, False, True, True, False, True, False, False, True)
"""Whether the pause of each pair comes first."""


def rests(pairs: int, length_s: float = 60.0, **detail: str) -> tuple[Event, ...]:
    """The pauses of so many pairs, behind one window with polls."""
    events = []
    for pair in range(pairs):
        begin_s = length_s * (1 + 2 * pair + (not FIRST[pair % 10]))
        told = {
            "pair": f"{pair + 1} of {pairs}",
            "seconds": f"{length_s:g}",
            "not compared": f"{length_s / 3:g}",
            "polled": "after" if FIRST[pair % 10] else "before",
            **detail,
        }
        events.append(Event(REST, "dut", "", round(begin_s * S), round((begin_s + length_s) * S), told))
    return tuple(events)


def cpu(
    cost: float,
    events: tuple[Event, ...],
    *,
    noise: float = 0.01,
    drift: float = 0.0,
    seed: int = 0,
    whole: bool = False,
) -> Series:
    """A device that is busy by 20 %, by ``cost`` more where it is polled, and by ``drift`` more at the end."""
    end_ns = max(event.end_ns or 0 for event in events) + 61 * S
    n = end_ns // S
    time = np.arange(n)
    polled = np.ones(n, dtype=bool)
    for event in events:
        polled[event.begin_ns // S : (event.end_ns or 0) // S] = False
    busy = 0.2 + cost * polled + drift * time / n + noise * np.random.default_rng(seed).standard_normal(n)
    return readings("system.cpu.utilization", np.round(busy, 2) if whole else busy, 1.0)


def judged(events: tuple[Event, ...], *series: Series, rule: ObserverCost | None = None) -> Finding:
    """The finding of a device with these pauses."""
    window = Window(0, max(int(each.time_ns[-1]) for each in series) + 1)
    return (rule or ObserverCost()).judge(Case("dut", "", window, series, events=events))[0]


@pytest.mark.parametrize(
    ("cost", "outcome"), [(0.0, "pass"), (0.003, "pass"), (0.03, "warn"), (0.3, "warn"), (0.0101, "inconclusive")]
)
def test_the_interval_decides(cost: float, outcome: str) -> None:
    """All of it within the limit passes, all of it beyond warns, and what holds the limit is open."""
    events = rests(5)
    finding = judged(events, cpu(cost, events))
    assert finding.outcome.value == outcome
    assert finding.interval is not None
    assert finding.interval[0] < cost < finding.interval[1]
    assert finding.measured == pytest.approx(cost, abs=0.005)
    if outcome == "inconclusive":
        assert finding.why is InconclusiveReason.NOISE
        assert "pairs" in finding.settle or "longer pauses" in finding.settle
    failing = judged(events, cpu(0.3, events), rule=ObserverCost(fail=0.05))
    assert (failing.outcome, failing.limit) == (Outcome.FAIL, 0.05)


def test_a_trend_cancels_and_noise_widens() -> None:
    """A drift of 10 points over the run moves 3 % by less than its interval; 20 points of noise leave it open."""
    events = rests(10)
    drifting = judged(events, cpu(0.03, events, drift=0.1))
    assert drifting.interval is not None
    assert drifting.interval[0] < 0.03 < drifting.interval[1]
    assert judged(events, cpu(0.012, events, noise=0.2)).outcome is Outcome.INCONCLUSIVE


def test_the_interval_holds_what_it_promises() -> None:
    """In 300 runs without any cost at most 5 % of the intervals leave out 0, within chance."""
    events = rests(5)
    missed = 0
    for seed in range(300):
        finding = judged(events, cpu(0.0, events, noise=0.03, seed=seed))
        assert finding.interval is not None
        missed += not finding.interval[0] < 0 < finding.interval[1]
    assert missed <= 25


def test_whole_percents_that_do_not_move_are_no_certainty() -> None:
    """20 % in all windows may hide nearly a point: the interval holds it, and a doubt says so."""
    events = rests(5)
    finding = judged(events, cpu(0.004, events, noise=0.0, whole=True))
    assert finding.interval == pytest.approx((-0.01, 0.01))
    assert "whole percents" in finding.doubts[0]


def test_what_cannot_be_compared_is_said() -> None:
    """A CPU that is renewed each minute; a monitor that was dead; a run that ended early; another target's pauses."""
    slow = rests(5, renewal="60")
    finding = judged(slow, cpu(0.03, slow))
    assert (finding.outcome, finding.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.CADENCE)
    assert finding.settle == "observer: {probe: 180s}"
    events = rests(5)
    gap = Event("gap", "", "", 200 * S, 500 * S)
    assert judged((*events, gap), cpu(0.03, events)).why is InconclusiveReason.TOO_FEW
    early = judged(events, cpu(0.03, events).between(0, 250 * S))
    assert early.why is InconclusiveReason.TOO_FEW
    assert "of 5 pauses" in early.reason
    turns = tuple(Phase("soak", Window(begin_s * S, 800 * S)) for begin_s in (100, 330, 600))
    case = Case("dut", "", Window(0, 800 * S), (cpu(0.03, events),), turns, events)
    assert ObserverCost().judge(case)[0].why is InconclusiveReason.TOO_FEW  # another load in three of the pairs
    others = tuple(replace(event, target="other") for event in events)
    assert judged(others, cpu(0.03, events)).outcome is Outcome.NOT_APPLICABLE


def test_a_count_decides_and_the_pauses_are_told_with_it() -> None:
    """Where an agent counts 0.5 % and the pauses show 3 %, both are there."""
    events = rests(5)
    n = 700
    counted = readings(COST, 0.02 * np.arange(n, dtype=np.float64), 1.0, object="source=agent")
    cores = readings("system.cpu.logical.count", np.full(n, 4.0), 1.0)
    finding = judged(events, counted, cores, cpu(0.03, events))
    assert finding.outcome is Outcome.PASS
    assert finding.measured == pytest.approx(0.005, rel=0.05)
    assert "; by pauses of its polls 3" in finding.reason
    assert finding.numbers["paused_difference"] == pytest.approx(0.03, abs=0.01)
