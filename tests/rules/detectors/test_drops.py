"""drops: what counts as a drop, against what it is held, and what cannot be decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from soakwatch_model.case import Case
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.series import Series
from soakwatch_model.window import Phase, Window
from soakwatch_rules.detectors.drops import Drops
from soakwatch_rules.load.offered import windows_by_phase
from soakwatch_rules.signals import counter, gappy, readings
from soakwatch_rules.stats.counted_amounts import amount, amounts, binned, restarts, steps

S = 10**9
METRIC = "system.network.packet.dropped"


def dropped(steps_at: dict[int, int], n: int = 600, start: int = 7, bits: int = 64) -> Series:
    """A counter, one reading a second, that rises by so much at these seconds."""
    count = np.zeros(n - 1, dtype=np.int64)
    for index, number in steps_at.items():
        count[index - 1] = number
    return counter(METRIC, count, 1.0, start=start, bits=bits)


def sent(rate: float = 1000.0, n: int = 600) -> Series:
    """A generator's counter."""
    return readings("load.tx.packets", rate * np.arange(n, dtype=np.float64), 1.0)


def phase(name: str, begin_s: float, end_s: float) -> Phase:
    """A phase in seconds."""
    return Phase(name, Window(round(begin_s * S), round(end_s * S)))


def judge(
    series: Series, *phases: Phase, load: tuple[Series, ...] = (), ratio: float = 0.0, seconds: float = 600
) -> Finding:
    """The one finding of a counter."""
    case = Case("dut", series.object, Window(0, round(seconds * S)), (series,), phases, load=load)
    return Drops(ratio=ratio).judge(case)[0]


def test_one_drop_fails_and_is_marked() -> None:
    """A single drop fails, with or without a load; its mark spans the two readings around it."""
    for load in ((), (sent(),)):
        finding = judge(dropped({100: 1}), load=load)
        assert finding.outcome is Outcome.FAIL
        assert [(m.begin_ns, m.end_ns) for m in finding.marks] == [(99 * S, 100 * S)]
    assert finding.measured == pytest.approx(1 / 599_000)


def test_a_pass_tells_what_it_could_have_seen() -> None:
    """Nothing dropped of 599,000: 1.61/N with 80 % power, at most 3/N at 95 %; per second where N is not known."""
    finding = judge(dropped({}), load=(sent(),))
    assert finding.outcome is Outcome.PASS
    assert finding.smallest_detectable == pytest.approx(1.6094 / 599_000, rel=1e-4)
    assert finding.interval is not None
    assert finding.interval[1] == pytest.approx(2.9957 / 599_000, rel=1e-4)
    alone = judge(dropped({}))
    assert (alone.outcome, alone.detectable_unit) == (Outcome.PASS, "{packet}/s")
    assert alone.smallest_detectable == pytest.approx(1.6094 / 599, rel=1e-4)


@pytest.mark.parametrize("name", ["stress", "spike"])
def test_planned_overload_does_not_fail(name: str) -> None:
    """Drops in an overload phase and 5 s after it are reported; one 7 s after it fails."""
    during = judge(dropped({250: 90, 304: 9}), phase(name, 200, 300), load=(sent(),))
    assert during.outcome is Outcome.PASS
    assert during.numbers["planned"] == 99
    assert "99 in planned overload" in during.reason
    after = judge(dropped({250: 90, 307: 1}), phase(name, 200, 300), load=(sent(),))
    assert after.outcome is Outcome.FAIL
    assert after.numbers["dropped"] == 1


def test_wraps_and_restarts() -> None:
    """A wrap of 32 bits counts what was counted; a counter that begins again counts what it shows; a glitch nothing."""
    wrapped = judge(dropped({100: 10}, start=2**32 - 4, bits=32))
    assert wrapped.numbers["dropped"] == 10
    value = np.full(600, 500.0)
    value[300:] = 0
    again = judge(readings(METRIC, value, 1.0))
    assert again.outcome is Outcome.PASS
    assert any("was reset 1 time" in caveat for caveat in again.doubts)
    value[300:] = 3
    assert judge(readings(METRIC, value, 1.0)).numbers["dropped"] == 3
    value[300:] = 499
    assert judge(readings(METRIC, value, 1.0)).numbers["dropped"] == 0


def test_ratio_needs_packets_and_a_load() -> None:
    """With a ratio the share decides; too few packets or no load are inconclusive; the worst phase decides."""
    load = (sent(),)
    assert judge(dropped({100: 5}), load=load, ratio=1e-5).outcome is Outcome.PASS
    assert judge(dropped({100: 6}), load=load, ratio=1e-5).outcome is Outcome.FAIL
    few = judge(dropped({}), load=load, ratio=1e-6)
    assert (few.outcome, few.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.TOO_SHORT)
    assert few.settle == "offer 401,000 more packets"
    blind = judge(dropped({100: 1}), ratio=1e-6)
    assert (blind.outcome, blind.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.NO_REFERENCE)
    soaked = judge(dropped({550: 4}), phase("soak", 0, 400), phase("recovery", 400, 600), load=load, ratio=1e-5)
    assert soaked.outcome is Outcome.FAIL
    assert "recovery" in soaked.reason


def test_drops_while_idle_are_background() -> None:
    """As many drops a second with idle generators as with busy ones warn; ten times as many under load fail."""
    tx = readings("load.tx.packets", np.clip(np.arange(600.0) - 200, 0, None) * 1000, 1.0)
    phases = (phase("baseline", 0, 200), phase("soak", 200, 600))
    every_20 = dict.fromkeys(range(10, 600, 20), 1)
    same = judge(dropped(every_20), *phases, load=(tx,))
    assert same.outcome is Outcome.WARN
    assert "idle" in same.reason
    more = every_20 | dict.fromkeys(range(201, 600, 2), 1)
    assert judge(dropped(more), *phases, load=(tx,)).outcome is Outcome.FAIL


def test_blind_ends_never_pass() -> None:
    """What was not read at the end may hide drops; a gap inside the window hides none."""
    late = judge(dropped({}), seconds=900)
    assert (late.outcome, late.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.GAP)
    holed = gappy(dropped({300: 2}), 0.0, (0.4, 0.6))
    finding = judge(holed)
    assert finding.outcome is Outcome.FAIL
    assert any("gap" in caveat for caveat in finding.doubts)
    result = judge(dropped({}, n=2).between(0, S))
    assert (result.outcome, result.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.TOO_FEW)


def test_two_generators_are_added_up() -> None:
    """What two generators offered is the sum of both."""
    other = replace(sent(3000.0), target="second")
    assert judge(dropped({}), load=(sent(), other)).numbers["offered"] == pytest.approx(4000 * 599)


def test_flow_by_hand() -> None:
    """Steps, shares at edges, rates times time, and bins that were not seen."""
    series = readings("load.tx.packets", np.array([0.0, 10, 30, 5, 9]), 2.0)
    assert steps(series).count.tolist() == [10, 20, 5, 4]
    assert restarts(series) == 1
    assert amount([series], 1 * S, 3 * S) == pytest.approx((5 + 10, 2.0))
    rate = readings("load.offered.packet.rate", np.array([7.0, 10, 20]), 2.0)
    assert amount([rate], 0, 4 * S) == pytest.approx((60, 4.0))
    assert amount([], 0, 4 * S) == (0.0, 0.0)
    assert amounts([series, rate], np.array([1, 3, 9]) * S).tolist() == pytest.approx([15 + 30, 19 + 20])
    assert np.isnan(binned([series], np.array([6, 8, 10]) * S)).tolist() == [False, True]
    assert binned([series], np.array([0, 4]) * S).tolist() == [30.0]


def test_parts_of_a_window() -> None:
    """The window is cut at phases; the later phase names what two share; what lies outside has no name."""
    case = Case("dut", "", Window(0, 100), phases=(Phase("soak", Window(10, 80)), Phase("spike", Window(40, 50))))
    assert [(p.name, p.window.begin_ns, p.window.end_ns) for p in windows_by_phase(case)] == [
        ("", 0, 10),
        ("soak", 10, 40),
        ("spike", 40, 50),
        ("soak", 50, 80),
        ("", 80, 100),
    ]


@pytest.mark.parametrize("ratio", [-0.1, 1.0, float("nan")])
def test_parameters_are_refused(ratio: float) -> None:
    """A ratio is a share of packets."""
    with pytest.raises(ValueError, match="use a share"):
        Drops(ratio=ratio)


def calibrated(share: float) -> Series:
    """What the generator loses by itself, reported once."""
    return readings("load.ceiling.loss", np.array([share]), 1.0)


@pytest.mark.parametrize(
    ("metric", "share", "expected"),
    [
        ("system.network.errors", 0.001, Outcome.INCONCLUSIVE),
        ("system.network.errors", 0.00001, Outcome.FAIL),
        ("system.network.packet.dropped", 0.001, Outcome.FAIL),
        ("queue.dropped", 0.001, Outcome.FAIL),
    ],
)
def test_broken_frames_may_be_the_generators_and_drops_are_not(metric: str, share: float, expected: Outcome) -> None:
    """50 of 599,000: as frames that arrived broken they may be the generator's own loss, if that is as large; what the
    device dropped it had received whole."""
    series = replace(dropped({100: 30, 400: 20}), metric=metric)
    finding = judge(series, load=(sent(), calibrated(share)))
    assert finding.outcome is expected
    if expected is Outcome.INCONCLUSIVE:
        assert finding.why is InconclusiveReason.GENERATOR
        assert "the generator itself loses up to 0.1 % (calibrated), which explains it" in finding.reason
    else:
        assert "explains" not in finding.reason


def test_a_burst_of_broken_frames_in_one_phase_is_not_diluted() -> None:
    """0.1 % of all that was sent, but 1 % of a short phase: more than the generator loses by itself."""
    series = replace(dropped({100: 500}), metric="system.network.errors")
    cut = (phase("soak", 0, 90), phase("ramp", 90, 140), phase("recovery", 140, 600))
    assert judge(series, *cut, load=(sent(), calibrated(0.002))).outcome is Outcome.FAIL


OUTCOMES = """
drops                    | drops
no drop                  | P
three drops              | F
a trickle of 1 ppm       | F
drops under stress only  | P
counter of 32 bits wraps | F
counter begins anew      | P
"""


def _tested(lost: float = 0.0) -> tuple[Series, ...]:
    """1000 packets a second for an hour from the tenth second on, all of which come back but for ``lost``."""
    sent = 1000.0 * np.clip(np.arange(3600, dtype=np.float64) - 10, 0, None)
    return (
        readings("load.tx.packets", sent, 1.0),
        readings("load.rx.packets", sent - np.where(np.arange(3600) > 12, lost, 0.0), 1.0),
    )


def _dropped(*at: float) -> Series:
    """A counter of drops that rises by one at some seconds."""
    count = np.zeros(3600, dtype=np.int64)
    for second in at:
        count[int(second) :] += 1
    return counter("system.network.packet.dropped", np.diff(count), 1.0)


@pytest.mark.parametrize(
    ("at", "lost", "outcome"),
    [
        ((12,), 0.0, Outcome.WARN),  # two seconds after the load began
        ((3, 8, 40), 0.0, Outcome.WARN),
        ((12,), 1.0, Outcome.FAIL),  # a packet of the test
        ((12, 1800), 0.0, Outcome.FAIL),
        ((1800,), 0.0, Outcome.FAIL),  # whose it was is not known
        (range(17, 3600, 30), 0.0, Outcome.WARN),  # a neighbour greets
        (range(17, 3600, 30), 3.0, Outcome.FAIL),
        ([*range(1700, 1790)], 0.0, Outcome.FAIL),  # a burst
    ],
)
def test_what_is_no_traffic_of_the_test_only_warns(at: Sequence[float], lost: float, outcome: Outcome) -> None:
    """Address resolution, link-layer greetings and warm-up: where the generator says that nothing was lost."""
    (finding,) = Drops().judge(Case("dut", "", Window(0, 3600 * S), (_dropped(*at),), load=_tested(lost)))
    assert finding.outcome is outcome, finding.reason
    assert ("none was of the test" in finding.reason) is (outcome is Outcome.WARN)


def test_requests_that_were_all_answered_say_nothing_of_packets() -> None:
    """TCP sends again what was dropped."""
    load = (
        readings("load.requests", 10.0 * np.arange(3600, dtype=np.float64), 1.0),
        readings("load.failures", np.zeros(3600), 1.0),
    )
    (finding,) = Drops().judge(Case("dut", "", Window(0, 3600 * S), (_dropped(12),), load=load))
    assert finding.outcome is Outcome.FAIL
