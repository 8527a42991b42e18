"""latency: block medians against what is usual at their load, limits of percentiles, and what is not judged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from soakwatch_model.case import Before, Case
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.series import Series
from soakwatch_model.window import Phase, Window
from soakwatch_rules.detectors.latency import Latency
from soakwatch_rules.signals import readings
from soakwatch_rules.stats.slowdown import block_medians, load_slope, slowness, slowness_at_like_load

S = 10**9
N = 1440
Floats = NDArray[np.float64]


def calm(seed: int = 1, usual: float = 0.02, n: int = N) -> Floats:
    """Latencies of a device that is well, with heavy tails."""
    rng = np.random.default_rng(seed)
    value: Floats = usual * np.exp(0.3 * rng.standard_normal(n)) * np.where(rng.random(n) < 0.01, 8.0, 1.0)
    return value


def times(value: Floats, factor: float, begin: float, end: float = 1.0) -> Floats:
    """Slower by a factor in a part of the run."""
    indices = np.arange(value.size) / value.size
    return np.where((indices >= begin) & (indices < end), factor * value, value)


def judge(
    value: Floats,
    rule: Latency | None = None,
    *,
    metric: str = "load.latency",
    object_name: str = "quantile=p99",
    load: Floats | None = None,
    **more: object,
) -> Finding:
    """The finding of a run of a reading a minute."""
    window = Window(0, value.size * 60 * S)
    known: tuple[Series, ...] = () if load is None else (readings("load.offered.rate", load, 60.0),)
    case = Case("dut", object_name, window, (readings(metric, value, 60.0, object=object_name),), load=known)
    return (rule or Latency()).judge(replace(case, **more))[0]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("factor", "begin", "end", "expected"),
    [
        (1.0, 0.5, 1.0, Outcome.PASS),
        (1.3, 0.8, 1.0, Outcome.PASS),
        (2.0, 0.8, 1.0, Outcome.FAIL),
        (2.0, 0.3, 0.6, Outcome.FAIL),
        (2.0, 0.5, 0.57, Outcome.WARN),
        (20.0, 0.5, 0.51, Outcome.FAIL),
        (20.0, 0.8, 1.0, Outcome.FAIL),
    ],
)
def test_slow_answers(factor: float, begin: float, end: float, expected: Outcome) -> None:
    """Twice as slow for a share of the soak or to its end fails, shorter it warns; twenty times fails at once."""
    for seed in range(5):
        finding = judge(times(calm(seed), factor, begin, end))
        assert finding.outcome is expected, finding.reason


def test_the_reason_names_the_level_before_and_after() -> None:
    """A person reads the percentile, how much slower, since when, how long, and against what."""
    finding = judge(times(calm(), 20.0, 0.75))
    assert (
        "p99 latency was 20 times the usual value from 1970-01-01 18:00:00 UTC to the end of the run" in finding.reason
    )
    assert "ms instead of" in finding.reason
    assert "(the early run)" in finding.reason
    assert finding.marks[0].begin_ns == 18 * 3600 * S
    assert finding.limit is not None
    assert finding.measured is not None
    assert finding.measured > finding.limit


def test_single_slow_answers_are_no_fault() -> None:
    """One reading in fifty a thousand times as slow moves no median."""
    value = calm()
    value[::50] = 20.0
    assert judge(value).outcome is Outcome.PASS


def test_a_load_that_grows_explains_its_latency() -> None:
    """What follows the load passes; the same latency without that load fails, and so does twice that at the same."""
    load = 1000 * (1 + 0.6 * np.sin(2 * np.pi * np.arange(N) / N))
    value = calm() * (load / 1000) ** 1.5
    assert judge(value, load=load).outcome is Outcome.PASS
    assert judge(times(value, 2.0, 0.7), load=load).outcome is Outcome.FAIL
    slow = judge(times(calm(), 2.0, 0.7), load=np.full(N, 1000.0))
    assert slow.outcome is Outcome.FAIL


def test_a_generator_that_waits_explains_nothing() -> None:
    """Half as many requests because each takes twice as long: the load that falls is the effect."""
    value = times(calm(), 2.0, 0.6)
    assert judge(value, load=np.where(np.arange(N) < 0.6 * N, 1000.0, 500.0)).outcome is Outcome.FAIL


def test_the_round_trip_on_a_network_of_ones_own() -> None:
    """0.3 ms that become 0.7 ms are nothing, 6 ms are."""
    object_name = "peer=gw,protocol=icmp"
    slight = judge(times(calm(1, 0.0003), 2.3, 0.5), metric="reach.round_trip", object_name=object_name)
    assert slight.outcome is Outcome.PASS
    finding = judge(times(calm(1, 0.0003), 20.0, 0.5), metric="reach.round_trip", object_name=object_name)
    assert finding.outcome is Outcome.FAIL
    assert finding.reason.startswith("round trip to gw (icmp) was 20 times the usual value")


def test_stress_and_what_was_announced_are_not_judged() -> None:
    """A phase of stress, the way back from it, and a planned upgrade may be slow; the soak beside them may not."""
    shares = (("baseline", 0.0, 0.2), ("soak", 0.2, 0.6), ("stress", 0.6, 0.8), ("recovery", 0.8, 1.0))
    phases = tuple(Phase(name, Window(round(a * N * 60 * S), round(b * N * 60 * S))) for name, a, b in shares)
    assert judge(times(calm(), 20.0, 0.6, 0.85), phases=phases).outcome is Outcome.PASS
    assert judge(times(calm(), 2.0, 0.2, 0.6), phases=phases).outcome is Outcome.FAIL
    upgrade = Event("upgrade", "dut", "", N * 30 * S, N * 33 * S, expect={"outage": 1})
    value = times(calm(), 20.0, 0.5, 0.55)
    assert judge(value, events=(upgrade,)).outcome is Outcome.PASS
    assert judge(value, events=(replace(upgrade, expect={}),)).outcome is Outcome.FAIL


def test_an_earlier_baseline_is_what_is_usual() -> None:
    """Slow from the begin on: nothing in the run tells, the baseline of an earlier run does, and that is said."""
    value = calm(2, 0.05)
    assert judge(value).outcome is Outcome.PASS
    before = readings("load.latency", calm(3), 60.0, object="quantile=p99", begin_ns=-2 * N * 60 * S)
    finding = judge(value, before=Before(baseline=(before,)))
    assert finding.outcome is Outcome.FAIL
    assert "(the baseline of an earlier run)" in finding.reason
    assert finding.doubts


def test_limits_of_percentiles() -> None:
    """A limit in the plan decides: above it for a minute fails, slower answers below it only warn."""
    value = times(calm(), 2.0, 0.7)
    assert judge(value, Latency(p99=0.1)).outcome is Outcome.WARN
    assert judge(calm(), Latency(p99=0.1)).outcome is Outcome.PASS
    finding = judge(value, Latency(p99=0.03))
    assert finding.outcome is Outcome.FAIL
    assert "exceeded the limit of 30 ms" in finding.reason
    assert judge(value, Latency(p50=0.001, round_trip=0.001)).outcome is Outcome.FAIL, "other limits are not its own"


def test_a_gradual_rise_without_a_known_load() -> None:
    """It may be a wave of the load, or a device that slows down: inconclusive; with the load known it fails."""
    value = calm() * 3.0 ** (np.arange(N) / N)
    finding = judge(value)
    assert (finding.outcome, finding.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.CYCLE)
    assert "load.offered.rate" in finding.settle
    assert judge(value, load=np.full(N, 1000.0)).outcome is Outcome.FAIL


@pytest.mark.parametrize(("n", "why"), [(5, InconclusiveReason.TOO_FEW), (19, InconclusiveReason.TOO_SHORT)])
def test_too_little_decides_nothing(n: int, why: InconclusiveReason) -> None:
    """A few readings are no level; to resolve is said."""
    finding = judge(calm()[:n])
    assert (finding.outcome, finding.why) == (Outcome.INCONCLUSIVE, why)
    assert finding.settle


@pytest.mark.parametrize("seconds", [120, 1800])
def test_short_runs_have_short_blocks(seconds: int) -> None:
    """A tenth of a short run is what is sustained in it."""
    value = calm(n=seconds)
    for factor, expected in ((1.0, Outcome.PASS), (20.0, Outcome.FAIL), (2.0, Outcome.FAIL)):
        series = readings("load.latency", times(value, factor, 0.7), 1.0, object="quantile=p99")
        case = Case("dut", "", Window(0, seconds * S), (series,))
        assert Latency().judge(case)[0].outcome is expected


@pytest.mark.parametrize(
    "bad", [{"factor": 1.0}, {"gross": 1.2}, {"share": 1.0}, {"ending": 0.0}, {"lasting": 0.0}, {"p99": -1.0}]
)
def test_parameters_that_mean_nothing_are_refused(bad: dict[str, float]) -> None:
    """Nonsense is refused with a sentence that names the rule."""
    with pytest.raises(ValueError, match="latency"):
        Latency(**bad)


def test_the_arithmetic_by_hand() -> None:
    """Medians of blocks, a slope of two, and blocks of the same load that were as slow before."""
    indices = np.array([0, 0, 0, 2, 2])
    assert np.array_equal(
        block_medians(indices, np.array([3.0, 1.0, 2.0, 5.0, 7.0]), 3, 1), [2.0, np.nan, 6.0], equal_nan=True
    )
    load = np.log(1 + np.arange(40.0))
    assert load_slope(load, 2 * load + 1) == pytest.approx(2.0)
    assert load_slope(np.full(40, np.nan), load) == 0.0
    first = np.arange(40) < 20
    off = slowness(np.where(first, 0.0, np.log(3.0)), np.full(40, np.nan), first).off
    assert off[-1] == pytest.approx(np.log(3.0))
    same = slowness_at_like_load(np.where(first, 0.0, 1.0), np.zeros(40), 20, 40, np.ones(40, dtype=bool))
    assert same.off == pytest.approx(1.0)
    assert (same.share, same.above) == (1.0, False)


OUTCOMES = """
latency                                | latency
heavy tails                            | P
follows a load that halves and doubles | P
follows the square of the load         | PW
a wave of its own, load unknown        | PWI
cold caches                            | PW
a job doubles it for an hour           | PW
twenty times under stress              | P
ping of 0.3 ms, doubled                | P
doubled to the end                     | F
doubled from .3 on                     | F
doubled to the end, load wave          | F
doubled for 5 h                        | F
doubled after the baseline             | F
twenty times to the end                | F
twenty times for 15 min                | F
ping twenty times to the end           | F
"""
