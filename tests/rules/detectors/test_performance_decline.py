"""performance_decline: falls that last, falls that go on, and throughput that only looks like it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.signal import lfilter
from tests.rules.draws import each_seed

from soakwatch_model.case import Case
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.series import Series
from soakwatch_model.window import Phase, Window
from soakwatch_rules.detectors.performance_decline import PerformanceDecline
from soakwatch_rules.load.throughput import curve, flows
from soakwatch_rules.signals import readings
from soakwatch_rules.stats.decline import fall

S = 10**9
N = 12 * 360  # 12 h at 10 s
PLACE = np.linspace(0, 1, N)


def noisy(shape: NDArray[np.float64] | float = 0.0, seed: int = 1, sd: float = 0.02) -> NDArray[np.float64]:
    """1000 a second, changed by a share, with AR(1) noise of a correlation time of 10 min."""
    rng = np.random.default_rng(seed)
    phi = np.exp(-10 / 600)
    wander, _ = lfilter([1.0], [1.0, -phi], np.sqrt(1 - phi**2) * rng.standard_normal(N), zi=[rng.standard_normal()])
    result: NDArray[np.float64] = 1000 * (1 + np.broadcast_to(shape, N) + sd * wander)
    return result


def run(value: NDArray[np.float64], *more: Series, devices: int = 1) -> Case:
    """A run whose generator reports this rate."""
    load = (readings("load.request.rate", value, 10.0), *more)
    return Case("dut", "", Window(0, N * 10 * S), load=load, devices=devices)


def judge(case: Case) -> Finding:
    """The first finding."""
    return PerformanceDecline().judge(case)[0]


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (0.0 * PLACE, {Outcome.PASS}),
        (0.1 * np.sin(2 * np.pi * PLACE * 40), {Outcome.PASS}),  # checkpoints each 18 min
        (-0.6 * np.exp(-PLACE * 24), {Outcome.PASS}),  # warm-up of half an hour
        (0.2 * PLACE, {Outcome.PASS}),
        (-0.2 * PLACE, {Outcome.FAIL}),
        (-0.15 * PLACE**2, {Outcome.FAIL}),
        (-0.4 * np.clip(PLACE - 0.7, 0, 1), {Outcome.FAIL}),
        (-0.15 * (PLACE > 0.4), {Outcome.FAIL}),
        (-0.15 * np.clip(PLACE * 3 - 0.75, 0, 1), {Outcome.FAIL}),  # came to an end
        (-0.04 * (PLACE > 0.4), {Outcome.PASS, Outcome.INCONCLUSIVE}),
        (-0.07 * PLACE, {Outcome.PASS, Outcome.INCONCLUSIVE, Outcome.FAIL}),
    ],
)
@pytest.mark.parametrize("seed", each_seed(1, 3))
def test_shapes(seed: int, shape: NDArray[np.float64], expected: set[Outcome]) -> None:
    """Steady, wavy, warming up and rising throughput pass; whatever lost a tenth fails, however it lost it."""
    finding = judge(run(noisy(shape, seed)))
    assert finding.outcome in expected, finding.reason
    if finding.outcome is Outcome.PASS:
        assert finding.smallest_detectable is not None
        assert finding.smallest_detectable >= 0.05


def test_a_stop_is_no_decline() -> None:
    """A stop of ten minutes in the last quarter does not decide."""
    value = noisy()
    value[4000:4060] = 0
    assert judge(run(value)).outcome is Outcome.PASS


def test_throughput_is_held_against_what_was_offered() -> None:
    """Half the load halves the throughput and is no decline; unknown load is a caveat; the ratio finds a hidden one."""
    reported = np.where(PLACE < 0.5, 1000.0, 500.0)
    offered = readings("load.offered.rate", reported, 10.0)
    assert judge(run(noisy() * reported / 1000, offered)).outcome is Outcome.PASS
    blind = judge(run(noisy() * reported / 1000))
    assert blind.outcome is Outcome.FAIL
    assert any("offered load is not known" in caveat for caveat in blind.doubts)
    rising = readings("load.offered.rate", 1000 * (1 + 0.3 * PLACE), 10.0)
    assert judge(run(noisy(0.05 * PLACE), rising)).outcome is Outcome.FAIL


def test_packets_against_packets_sent() -> None:
    """Received over sent; where both fall, the ratio is steady and the finding says what it cannot tell."""
    sent = np.cumsum(10 * noisy(-0.2 * PLACE))
    lossless = (readings("load.tx.packets", sent, 10.0), readings("load.rx.packets", sent, 10.0))
    finding = judge(Case("dut", "", Window(0, N * 10 * S), load=lossless))
    assert finding.outcome is Outcome.PASS
    assert any("waits for a slower device" in caveat for caveat in finding.doubts)
    lossy = (
        lossless[0],
        readings("load.rx.packets", np.cumsum(10 * noisy(-0.2 * PLACE) * (1 - 0.2 * PLACE), dtype=np.float64), 10.0),
    )
    assert judge(Case("dut", "", Window(0, N * 10 * S), load=lossy)).outcome is Outcome.FAIL


def test_several_devices_only_warn() -> None:
    """Nobody knows which of two devices declined."""
    assert judge(run(noisy(-0.3 * PLACE), devices=2)).outcome is Outcome.WARN


def test_where_it_does_not_apply_or_is_too_short() -> None:
    """Not on generators, not without throughput; two hours and 16 readings are the least."""
    case = run(noisy(-0.3 * PLACE))
    assert PerformanceDecline().judge(replace(case, role="generator")) == ()
    assert judge(replace(case, load=())).outcome is Outcome.NOT_APPLICABLE
    short = judge(replace(case, window=Window(0, 3600 * S)))
    assert (short.outcome, short.why, short.settle) == (
        Outcome.INCONCLUSIVE,
        InconclusiveReason.TOO_SHORT,
        "needs 1 h more",
    )
    few = judge(replace(case, load=(case.load[0].between(0, 100 * S),)))
    assert (few.outcome, few.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.TOO_FEW)
    dead = judge(run(np.zeros(N)))
    assert (dead.outcome, dead.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.NO_REFERENCE)


def test_outcomes_do_not_depend_on_the_unit() -> None:
    """A thousand times the rate gives the same ratios."""
    for shape in (0.0, -0.2):
        finding, other = judge(run(noisy(shape * PLACE))), judge(run(1000 * noisy(shape * PLACE)))
        assert finding.outcome is other.outcome
        assert finding.measured == pytest.approx(other.measured, rel=1e-6, abs=1e-9)


def test_fall_by_hand() -> None:
    """Means of the outer quarters; white noise of sd 1 % over 24 blocks leaves an error of 0.29 % for both."""
    fallen = fall(np.append(np.full(50, 100.0), np.full(46, 90.0)), 0.05)
    assert fallen is not None
    assert (fallen.early, fallen.late, fallen.share, fallen.probability) == (100.0, 90.0, 0.1, 1.0)
    assert fallen.error < 1e-15
    rng = np.random.default_rng(3)
    errors = [f.error for f in (fall(100 + rng.standard_normal(96), 0.05) for _ in range(200)) if f is not None]
    assert np.mean(np.square(errors)) ** 0.5 == pytest.approx(0.01 * (2 / 24) ** 0.5, rel=0.15)
    assert fall(np.ones(15), 0.05) is None
    assert fall(-np.ones(96), 0.05) is None


def test_flows_and_their_curves() -> None:
    """Counters come before rates; a commanded rate that jumps takes two readings with it; idle ones are left out."""
    reported = readings("load.offered.rate", np.array([10.0, 10, 20, 20, 0, 0, 20, 20]), 1.0)
    rate = readings("load.request.rate", np.full(8, 10.0), 1.0)
    requests = readings("load.requests", np.arange(0.0, 80.0, 10.0), 1.0)
    case = Case("dut", "", Window(0, 8 * S), load=(reported, rate, requests))
    (flow,) = flows(case)
    assert flow.series.metric == "load.requests"
    assert flow.commanded[0].metric == "load.offered.rate"
    shown = curve(rate).per(reported)
    assert shown is not None
    assert (shown.end_ns // S).tolist() == [0, 1]
    assert curve(requests).rate.tolist() == [10.0] * 7
    assert curve(rate).per(replace(reported, value=np.zeros(8))) is None


@pytest.mark.parametrize(("name", "value"), [("tolerance", 0.0), ("tolerance", 1.0), ("shortest", float("nan"))])
def test_parameters_are_refused(name: str, value: float) -> None:
    """A tolerance is a share."""
    with pytest.raises(ValueError, match="performance_decline"):
        replace(PerformanceDecline(), **{name: value})


def test_a_daily_wave_without_an_offered_load_is_no_decline() -> None:
    """It may be what was asked for; a step as deep is a decline."""
    turn = 2 * np.pi * (np.arange(1440) / 1440 + 0.1)
    wave = 1000 * (1 + 0.2 * np.sin(turn)) + np.random.default_rng(2).normal(0, 5, 1440)
    for rate, outcome in ((wave, Outcome.INCONCLUSIVE), (np.where(np.arange(1440) < 500, 1000.0, 800.0), Outcome.FAIL)):
        load = (readings("load.request.rate", rate, 60.0),)
        case = Case("dut", "", Window(0, 86400 * S), load=load, phases=(Phase("soak", Window(0, 86400 * S)),))
        assert PerformanceDecline().judge(case)[0].outcome is outcome


OUTCOMES = """
throughput                   | performance_decline
steady                       | PI
checkpoint waves             | PI
comes up                     | PI
one stop of a minute         | PI
offered load halves          | PI
declines 15 % a day          | FI
declines 40 % a day          | F
declines faster and faster   | F
falls by half                | PIFW
declines 40 % a day in waves | FI
"""
