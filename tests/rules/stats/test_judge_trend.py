"""The trend engine: shapes with known truth, worked arithmetic, and input that means nothing."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.rules.draws import seeds

from soakwatch_model.finding import InconclusiveReason, Outcome
from soakwatch_rules.stats.ar1 import Slope, hours_more, power, slope
from soakwatch_rules.stats.cycles import cycles
from soakwatch_rules.stats.falls import released
from soakwatch_rules.stats.judge_trend import judge_trend, may_grow
from soakwatch_rules.stats.mixture import mixture
from soakwatch_rules.stats.series_shapes import FAMILIES, RHO, table, whitened
from soakwatch_rules.stats.time_blocks import blocks, how_many, winsorised
from soakwatch_rules.stats.tolerance import Tolerance
from soakwatch_rules.stats.trend_answer import TrendAnswer

Floats = NDArray[np.float64]
DAY = 86400.0
T = np.asarray(np.arange(1440) * 60.0, dtype=np.float64)
FIVE = Tolerance(0.05)


def flat(seed: int, sd: float = 1.0) -> Floats:
    """A day of white noise around 100."""
    result: Floats = 100 + np.random.default_rng(seed).normal(0, sd, T.size)
    return result


def judged(value: Floats, tolerance: float = 0.05, **options: float) -> TrendAnswer:
    """The answer for a day by the minute."""
    return judge_trend(T, value, allowed=Tolerance(tolerance), span_s=(0.0, DAY), **options)  # type: ignore[arg-type]


def test_slope_of_a_worked_example() -> None:
    """0, 2, 1, 3 at 0..3 s: slope 0.8, residual squares 1.8, error sqrt(1.8/2/5); the residuals alternate (rho 0)."""
    fit = slope(np.arange(4.0), np.array([0.0, 2.0, 1.0, 3.0]))
    assert fit.slope == pytest.approx(0.8)
    assert fit.correlation == 0
    assert fit.error == pytest.approx(math.sqrt(1.8 / 2 / 5))
    assert fit.freedom == 2
    assert fit.low() == pytest.approx(0.8 - 2.919986 * fit.error)
    assert fit.above(fit.low()) == pytest.approx(0.95)
    assert fit.detectable() == pytest.approx((2.919986 + 0.841621) * fit.error, rel=1e-4)


def test_slope_error_grows_with_memory() -> None:
    """The stated error holds for AR(1) noise: over 200 series its ratio to the true spread is near 1."""
    rng, fits = np.random.default_rng(3), []
    for _ in range(200):
        value = np.zeros(96)
        for i in range(1, 96):
            value[i] = 0.6 * value[i - 1] + rng.normal()
        fits.append(slope(np.arange(96.0), value))
    spread = float(np.std([fit.slope for fit in fits]))
    assert 0.8 < float(np.median([fit.error for fit in fits])) / spread < 1.25


def test_a_noiseless_line_is_certain() -> None:
    """Without residuals the error is 0 and the probability 0 or 1."""
    fit = slope(np.arange(20.0), np.arange(20.0) * 3)
    assert fit.slope == pytest.approx(3)
    assert fit.above(2.9) == pytest.approx(1)
    assert Slope(3.0, 0.0, 1.0, 0.0).above(3.0) == 0


def test_hours_needed() -> None:
    """The error falls with T^-1.5: 2.83 times the distance needs twice the time; near the limit no time helps."""
    distance = 1.0
    fit = Slope(2.0, 2 * math.sqrt(2) * distance / power(0.05, 10.0), 10.0, 0.0)
    assert hours_more(fit, 1.0, 3600.0 * 5) == pytest.approx(5)
    assert hours_more(Slope(1.2, 0.1, 10.0, 0.0), 1.0, 3600.0) is None
    assert hours_more(Slope(0.0, 0.0, 10.0, 0.0), 0.0, 3600.0) is None
    assert hours_more(Slope(9.0, 0.1, 10.0, 0.0), 1.0, 3600.0) == 0


def test_blocks_of_a_worked_example() -> None:
    """Ten readings in two blocks; each mean leaves out the lowest and the highest."""
    cut = blocks(np.arange(10.0), np.array([1.0, 2, 3, 4, 100, 5, 6, 7, 8, -50]), begin_s=0.0, end_s=10.0, number=2)
    assert cut.value.tolist() == [3.0, 6.0]
    assert cut.time_s.tolist() == [2.5, 7.5]
    lowest = blocks(np.arange(4.0), np.array([4.0, 1, 2, 3]), begin_s=0.0, end_s=4.0, number=2, statistic="min")
    assert lowest.value.tolist() == [1, 2]


def test_missing_blocks_are_bridged_and_counted() -> None:
    """A block without readings takes the value between its neighbours."""
    cut = blocks(np.array([0.5, 1.5, 3.5]), np.array([1.0, 2.0, 4.0]), begin_s=0.0, end_s=4.0, number=4)
    assert cut.value.tolist() == [1, 2, 3, 4]
    assert cut.missing == 0.25


@pytest.mark.parametrize(
    ("readings", "number"), [(16, 16), (96, 96), (97, 48), (200, 64), (47, 47), (95, 88), (384, 96), (10**6, 96)]
)
def test_how_many_blocks(readings: int, number: int) -> None:
    """One reading a block up to 96, then equal shares."""
    assert how_many(readings) == number


def test_winsorised_keeps_the_end() -> None:
    """A bump in the middle is drawn back, the same at the end stays: it may be growth that has just begun."""
    value = np.random.default_rng(1).normal(0, 1, 96)
    value[40], value[94] = 50, 50
    drawn = winsorised(value)
    assert drawn[40] < 8
    assert drawn[94] == 50


@pytest.mark.parametrize("n", [16, 17, 24, 48, 96])
def test_the_shape_table_is_orthonormal(n: int) -> None:
    """Unit vectors of a shape are orthogonal to each other and to the constant, for each correlation."""
    shapes = table(n)
    sizes = np.einsum("rcb,rcb->rc", shapes.basis, shapes.basis)
    assert np.all((np.abs(sizes - 1) < 1e-8) | (sizes == 0))
    assert np.abs(np.einsum("rcb,rb->rc", shapes.basis, shapes.level)).max() < 1e-8
    two = np.flatnonzero(shapes.columns == 2)
    inner = np.einsum("rmb,rmb->rm", shapes.basis[:, shapes.first[two]], shapes.basis[:, shapes.first[two] + 1])
    assert np.abs(inner).max() < 1e-6


def test_one_shape_by_hand() -> None:
    """The slope of the straight line in the table is the generalised least squares one."""
    n = 32
    shapes, rng = table(n), np.random.default_rng(5)
    value, u = rng.normal(0, 1, n), (np.arange(n) + 0.5) / n
    m = int(np.flatnonzero(shapes.family == 1)[0])
    for r, rho in enumerate(RHO.tolist()):
        columns = np.stack([whitened(np.ones(n), rho), whitened(u, rho)], axis=1)
        white = whitened(value, rho)
        expected, *_ = np.linalg.lstsq(columns, white, rcond=None)
        c = shapes.first[m]
        assert shapes.growth[r, c] * (shapes.basis[r, c] @ white) == pytest.approx(expected[1])
        assert shapes.variance[r, m] == pytest.approx(np.linalg.inv(columns.T @ columns)[1, 1])


def _of(name: str) -> Callable[[Floats], Floats]:
    u = np.asarray((np.arange(96) + 0.5) / 96, dtype=np.float64)
    shapes: dict[str, Floats] = {
        "constant": 0 * u,
        "leak": 10 * u,
        "step": np.where(u > 0.4, 10.0, 0.0),
        "warm-up": -10 * np.exp(-u / 0.1),
        "plateau": 10 * np.minimum(u, 0.5),
        "late leak": 20 * np.maximum(u - 0.5, 0),
        "step and leak": 10 * u + 10 * (u > 0.4),
        "cycle": 5 * np.sin(2 * np.pi * u + 1),
    }
    return lambda noise: shapes[name] + noise


@pytest.mark.parametrize(
    "name", ["constant", "leak", "step", "warm-up", "plateau", "late leak", "step and leak", "cycle"]
)
def test_the_shape_is_recognised(name: str) -> None:
    """Each shape with noise of 3 % of its height is named, and weights sum to 1."""
    mixed = mixture(_of(name)(np.random.default_rng(1).normal(0, 0.3, 96)))
    names = mixed.families()
    assert sum(names.values()) == pytest.approx(1)
    heaviest = next(iter(names)).replace("two warm-ups", "warm-up")
    if name == "constant":  # a straight line without a slope says the same
        heaviest = heaviest.replace("leak", "constant")
    assert heaviest == name
    if name in {"step", "late leak", "step and leak"}:
        assert mixed.bend(name) == pytest.approx(0.4 if "step" in name else 0.5, abs=0.06)


@pytest.mark.parametrize("draws", seeds(20, 100))
def test_the_slope_at_the_end_and_its_interval(draws: range) -> None:
    """Of leaks the 5..95 % interval holds the true slope in most cases, and P(slope > truth) is about even."""
    held, above = 0, []
    for seed in draws:
        mixed = mixture(np.random.default_rng(seed).normal(0, 1, 96) + np.arange(96) / 96 * 30)
        low, high = mixed.quantiles(0.05, 0.95)
        held += low <= 30 <= high
        above.append(mixed.above(30.0)[0])
    assert held >= 0.85 * len(draws)
    assert 0.35 < float(np.mean(above)) < 0.65


@pytest.mark.parametrize("growth", [0.0, 2.0, 8.0])
def test_a_sawtooth_is_taken_out(growth: float) -> None:
    """Six ramps from 10 to 20 have five falls of 10, and what is left moves as their floors do, to the very end."""
    rise = growth * T / DAY
    cycle = cycles(T, 10 + 10 * ((T / 14400) % 1.0) + rise, begin_s=0.0, end_s=DAY)
    assert cycle is not None
    assert cycle.falls.tolist() == [14400.0 * i for i in range(1, 6)]
    assert np.allclose(cycle.heights, 10, atol=0.3)
    left = cycle.taken_out(T, 10 + 10 * ((T / 14400) % 1.0) + rise)
    assert np.allclose(left, 10 + rise, atol=0.5 + growth / 6)
    assert cycles(T, flat(1), begin_s=0.0, end_s=DAY) is None


def test_a_sawtooth_that_has_ended_leaves_what_comes_after_it_alone() -> None:
    """Three teeth in the first half, and a straight climb of the same pace for half a day: that is no tooth."""
    value = np.where(T < DAY / 2, 10 + 10 * ((T / 14400) % 1.0), 10 + 10 * (T - DAY / 2) / 14400)
    cycle = cycles(T, value, begin_s=0.0, end_s=DAY)
    assert cycle is not None
    late = DAY / 2 < T
    assert np.array_equal(cycle.taken_out(T, value)[late], value[late])
    assert judged(value + flat(2) - 100).outcome is Outcome.FAIL


def test_a_few_dips_in_what_climbs_are_no_sawtooth() -> None:
    """What the falls took back is less than what remains: growth is judged with them in it."""
    for after in (0.0, 0.6):
        climb = 30 * np.maximum(T / DAY - after, 0) / (1 - after)
        dips = sum(-2.0 * np.maximum(1 - np.abs(T - at * DAY) / 3600, 0) * (at * DAY <= T) for at in (0.2, 0.35, 0.5))
        value = np.asarray(100 + climb + dips, dtype=np.float64)
        assert cycles(T, value, begin_s=0.0, end_s=DAY) is None
        assert judged(value + flat(3, 0.1) - 100).outcome is Outcome.FAIL


@pytest.mark.parametrize("turned", ["upside down", "bumps", "flips"])
def test_what_is_no_sawtooth(turned: str) -> None:
    """Abrupt rises with slow falls, bumps, and levels that flip are judged as they are."""
    teeth = (T / 14400) % 1.0
    turns = {"upside down": -teeth, "bumps": (teeth > 0.9) * 1.0, "flips": (teeth > 0.5) * 1.0}
    value = np.asarray(100 + 10 * turns[turned], dtype=np.float64)
    assert cycles(T, value, begin_s=0.0, end_s=DAY) is None


def test_a_release_is_one_that_lasts_and_was_not_regained() -> None:
    """A lasting fall whose height is not regained is one; a single low block, or a regained peak, is none."""
    u = np.arange(96.0)
    fallen = u - 60 * (u >= 50)
    release = released(fallen)
    assert release is not None
    assert release.index == 50
    assert released(u - 10 * (u >= 30)) is None
    spiked = u.copy()
    spiked[60] -= 60
    assert released(spiked) is None


def test_answers_for_a_day() -> None:
    """White noise passes, a leak of 10 % a day fails at its rate, one of exactly the tolerance is neither."""
    calm = judged(flat(1))
    assert calm.outcome is Outcome.PASS
    assert calm.why is None
    leaking = judged(flat(1) + 10 * T / DAY)
    assert leaking.outcome is Outcome.FAIL
    assert leaking.shape == "leak"
    assert leaking.rate * DAY == pytest.approx(10, abs=0.3)
    assert leaking.rate_low <= leaking.rate <= leaking.rate_high
    assert leaking.allowed * DAY == pytest.approx(5, rel=0.01), "the leak does not raise its own tolerance"
    even = judged(flat(1) + 5 * T / DAY)
    assert even.outcome is Outcome.INCONCLUSIVE
    assert even.why is InconclusiveReason.NOISE


def test_the_line_is_pivoted_at_the_blocks_centre() -> None:
    """The line of a noiseless leak goes through its middle, on the caller's axis of time."""
    trend = judge_trend(T + 1e6, 100 + 10 * T / DAY, allowed=FIVE)
    assert trend.line is not None
    assert trend.line.centre_s == pytest.approx(1e6 + DAY / 2)
    assert trend.line.centre == pytest.approx(105, rel=1e-3)
    assert trend.line.slope * DAY == pytest.approx(10)


def test_the_line_of_a_late_leak_begins_where_it_bends() -> None:
    """Growth that begins at half time goes on at its own slope, not at the mean of both halves."""
    trend = judged(flat(2) + 40 * np.maximum(T / DAY - 0.5, 0))
    assert trend.shape == "late leak"
    assert trend.bend_s == pytest.approx(DAY / 2, rel=0.1)
    assert trend.line is not None
    assert trend.line.slope * DAY == pytest.approx(40, rel=0.1)


def test_too_few_readings_and_gaps() -> None:
    """Fewer than 16 readings, or more than half of the blocks empty, are never an answer."""
    few = judge_trend(T[:15], flat(1)[:15] + T[:15], allowed=FIVE)
    assert (few.outcome, few.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.TOO_FEW)
    hole = judge_trend(T[:600], flat(1)[:600], allowed=FIVE, span_s=(0.0, DAY))
    assert (hole.outcome, hole.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.GAP)


@pytest.mark.parametrize(
    ("quantum", "floor", "outcome"),
    [(None, 0.0, "pass"), (1.0, 0.0, "inconclusive"), (1.0, 1.0, "pass"), (0.1, 0.0, "pass")],
)
def test_a_constant_reading_hides_one_quantum(quantum: float | None, floor: float, outcome: str) -> None:
    """A constant of 10 with steps of 1 hides 10 % a day, unless growth of one step a run is nobody's concern."""
    trend = judge_trend(
        T, np.full(T.size, 10.0), allowed=Tolerance(0.05, floor=floor), quantum=quantum, span_s=(0.0, DAY)
    )
    assert trend.outcome == outcome
    assert trend.mode == "constant"
    if outcome == "inconclusive":
        assert trend.why is InconclusiveReason.RESOLUTION
        assert trend.hours_needed == pytest.approx(24), "0.5 a day needs two days for one step"


def test_coarse_readings() -> None:
    """Whole percents of a rise from 25 to 26.25 % tell nothing at 5 % a day; a rise to 35 % fails."""
    coarse = judged(np.round(25 + 1.25 * T / DAY))
    assert (coarse.outcome, coarse.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.RESOLUTION)
    assert judged(np.round(25 + 10 * T / DAY)).outcome is Outcome.FAIL


def test_a_cycle_as_long_as_the_run_is_reported() -> None:
    """A daily wave in one day passes with a caveat at any phase, as it ended where it began; a part of a longer one is
    inconclusive, never growth; over four days it passes."""
    for phase in np.arange(0, 1, 0.125).tolist():
        trend = judged(flat(3) + 5 * np.sin(2 * np.pi * (T / DAY + phase)))
        assert (trend.outcome, trend.waived) == (Outcome.PASS, "wave")
        assert judged(flat(3) + 5 * np.sin(2 * np.pi * (T / DAY / 1.25 + phase))).outcome is not Outcome.FAIL
        longer = np.asarray(np.arange(5760) * 60.0, dtype=np.float64)
        value = 100 + np.random.default_rng(1).normal(0, 1, 5760) + 5 * np.sin(2 * np.pi * (longer / DAY + phase))
        assert judge_trend(longer, value, allowed=FIVE).outcome is Outcome.PASS


def test_few_cycles_of_a_sawtooth() -> None:
    """Two long ramps pass where nothing grows beneath them; what grows beneath them fails; so with eight."""
    for period, phase in ((32000, 0.0), (10800, 0.5)):
        teeth = flat(4, 0.3) + 20 * ((T / period + phase) % 1.0)
        assert judged(teeth).outcome is Outcome.PASS
        assert (judged(teeth).mode, judged(teeth + 20 * T / DAY).mode) == ("sawtooth", "sawtooth")
        assert judged(teeth + 20 * T / DAY).outcome is Outcome.FAIL
        assert judged(teeth + 30 * np.maximum(T / DAY - 0.6, 0)).outcome is not Outcome.PASS


def test_the_last_climb_of_a_sawtooth_proves_no_growth() -> None:
    """It has not fallen yet: up to the usual peak it is nothing, a little above it a doubt that says what is needed."""
    period = DAY / 5
    for faster, outcome in ((1.0, Outcome.PASS), (1.05, Outcome.PASS), (1.4, Outcome.INCONCLUSIVE)):
        pace = np.where(4 * period <= T, faster, 1.0)
        trend = judged(flat(4, 0.2) + 20 * pace * ((T / period) % 1.0))
        assert trend.outcome is outcome, faster
        assert trend.climbing is (outcome is Outcome.INCONCLUSIVE)
    assert trend.hours_needed == pytest.approx(period / 3600, rel=0.02)


def test_may_grow_is_on_the_safe_side() -> None:
    """Every series that fails would be searched; a flat one with a wide tolerance would not."""
    centres = np.asarray((np.arange(96) + 0.5) * 900, dtype=np.float64)
    for seed in range(20):
        noise = np.random.default_rng(seed).normal(100, 0.2, 96)
        assert may_grow(centres, noise + 8 * centres / DAY, 5 / DAY)
        assert may_grow(centres, noise + 60 * np.maximum(centres / DAY - 0.8, 0), 5 / DAY)
        assert not may_grow(centres, noise, 5 / DAY)
    assert not may_grow(centres[:10], centres[:10], 1e-9)


def test_shift_and_scale_change_nothing() -> None:
    """Another origin of time and another unit give the same answer."""
    value = flat(6) + 6 * T / DAY
    trend = judged(value)
    for factor in (2.0**-30, 1 / 1024, 1000.0, 1e290):
        other = judge_trend(T + 1.7e9, value * factor, allowed=FIVE, span_s=(1.7e9, 1.7e9 + DAY))
        assert other.outcome is trend.outcome
        assert other.probability == pytest.approx(trend.probability, abs=1e-6)
        assert other.rate == pytest.approx(trend.rate * factor, rel=1e-6)


@settings(max_examples=150, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    value=st.lists(
        st.one_of(
            st.floats(allow_nan=False, allow_infinity=False),
            st.sampled_from([0.0, 1.0, -1.0, 1e308, -1e308, 5e-324, 4096.0]),
        ),
        max_size=120,
    ),
    allowed=st.sampled_from([0.0, 1e-12, 1.0, 1e300]),
    statistic=st.sampled_from(["mean", "min", "median"]),
    quantum=st.sampled_from([None, 0.0, 1.0, 1e308]),
)
def test_any_numbers_give_an_answer(value: list[float], allowed: float, statistic: str, quantum: float | None) -> None:
    """No finite numbers raise or warn; all that is reported is finite; input stays as it was."""
    readings = np.array(value, dtype=np.float64)
    before, times = readings.copy(), np.arange(len(value)) * 600.0
    trend = judge_trend(times, readings, allowed=allowed, statistic=statistic, quantum=quantum)  # type: ignore[arg-type]
    assert np.array_equal(readings, before)
    reported = (
        trend.probability,
        trend.rate,
        trend.rate_low,
        trend.rate_high,
        trend.level,
        trend.weight,
        trend.correlation,
    )
    assert all(math.isfinite(x) for x in (*reported, trend.allowed, trend.smallest_detectable or 0.0))
    assert 0 <= trend.probability <= 1
    assert (trend.outcome is Outcome.INCONCLUSIVE) == (trend.why is not None)
    if len(value) < 16:
        assert trend.why is InconclusiveReason.TOO_FEW


def test_families_are_named_once() -> None:
    """Names of shapes are unique, and growing ones are those that can have a slope at the end."""
    names = [family.name for family in FAMILIES]
    assert len(names) == len(set(names))
    assert {family.name for family in FAMILIES if family.free} == {name for name in names if "leak" in name} | {
        "two slopes"
    }


def test_a_warm_up_that_is_not_over_is_no_leak() -> None:
    """A stretched warm-up still moves by 1.1 % a day at its end: at 1 % a day allowed a straight line is no witness."""
    for seed in range(6):
        warm = flat(seed) - 30 * np.exp(-np.sqrt(T / 5400))
        assert judged(warm, 0.01).outcome is Outcome.INCONCLUSIVE
