"""growth: what grows, what only looks like it, and what cannot be decided."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.rules.draws import each_seed, seeds

from soakwatch_model.case import Case
from soakwatch_model.event import Event
from soakwatch_model.fact import Certainty
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.detectors.growth import Growth
from soakwatch_rules.signals import (
    LEVEL,
    PROCESS,
    counter,
    gappy,
    leak,
    noise,
    quantised,
    readings,
    sawtooth,
    step,
    warm_up,
    wave,
)
from soakwatch_testing.rule_checks import check_complete

S = 10**9
DAY = 86400.0
A_DAY = LEVEL / DAY  # the whole level in a day
T = np.asarray(np.arange(1440) * 60.0, dtype=np.float64)


def judge(
    series: Series,
    seconds: float = DAY,
    *,
    events: tuple[Event, ...] = (),
    load: tuple[Series, ...] = (),
    rule: Growth | None = None,
) -> Finding:
    """The one finding of one series in a window that begins at 0."""
    case = Case("dut", series.object, Window(0, round(seconds * S)), (series,), events=events, load=load)
    finding = (rule or Growth()).judge(case)[0]
    check_complete(rule or Growth(), case, finding)
    return finding


def counts(value: NDArray[np.float64], metric: str = "process.open_files") -> Series:
    """Whole numbers by the minute."""
    return readings(metric, np.asarray(value, dtype=np.float64), 60.0, object=PROCESS)


QUIET = {
    "white": lambda seed: noise(seed, phi=0.0),
    "AR(1) .9": lambda seed: noise(seed, phi=0.9),
    "AR(1) .99": lambda seed: noise(seed, phi=0.99),
    "hourly sawtooth": lambda seed: sawtooth(noise(seed, sd=0.005), 0.2 * LEVEL, 3600, seed),
    "warm-up 1 h": lambda seed: warm_up(noise(seed, phi=0.9), 0.3 * LEVEL, 3600),
    "warm-up 4 h": lambda seed: warm_up(noise(seed, phi=0.9), 0.3 * LEVEL, 4 * 3600),
    "step": lambda seed: step(noise(seed, phi=0.9), 0.1 * LEVEL, 0.6),
    "bump": lambda seed: step(step(noise(seed, phi=0.9), 0.1 * LEVEL, 0.5), -0.1 * LEVEL, 0.6),
    "quantised": lambda seed: quantised(noise(seed), 0.04 * LEVEL),
    "gaps": lambda seed: gappy(noise(seed, phi=0.9), 0.2, (0.4, 0.52), seed),
    "daily wave": lambda seed: wave(noise(seed), 0.05 * LEVEL, seed=seed),
    "falls": lambda seed: leak(noise(seed), -0.2 * A_DAY),
}


@pytest.mark.parametrize("name", QUIET)
@pytest.mark.parametrize("seed", each_seed(1, 6))
def test_what_does_not_grow_never_fails(name: str, seed: int) -> None:
    """No false alarm; what can be decided mostly passes, and of a wave as long as the run the caveat is named."""
    finding = judge(QUIET[name](seed))
    assert finding.outcome in {Outcome.PASS, Outcome.INCONCLUSIVE}
    if name in {"white", "warm-up 1 h", "step", "falls"}:
        assert finding.outcome is Outcome.PASS
        assert finding.smallest_detectable is not None
        assert 0 < finding.smallest_detectable * 24 < 0.2 * LEVEL
    if name == "daily wave":
        assert finding.outcome is Outcome.PASS
        assert "a wave about as long as the run was seen only once" in " ".join(finding.doubts)


LEAKS = {
    "white": lambda seed: leak(noise(seed), 0.08 * A_DAY),
    "AR(1) .9": lambda seed: leak(noise(seed, phi=0.9), 0.1 * A_DAY),
    "under an hourly sawtooth": lambda seed: leak(
        sawtooth(noise(seed, sd=0.005), 0.2 * LEVEL, 3600, seed), 0.12 * A_DAY
    ),
    "after a warm-up": lambda seed: leak(warm_up(noise(seed), 0.3 * LEVEL, 3600), 0.1 * A_DAY),
    "with a step": lambda seed: step(leak(noise(seed), 0.1 * A_DAY), 0.1 * LEVEL, 0.4),
    "late": lambda seed: leak(noise(seed), 0.5 * A_DAY, 0.6),
    "gaps": lambda seed: gappy(leak(noise(seed), 0.12 * A_DAY), 0.2, (0.4, 0.52), seed),
    "coarse": lambda seed: quantised(leak(noise(seed), 0.2 * A_DAY), 0.01 * LEVEL),
}


@pytest.mark.parametrize("name", LEAKS)
@pytest.mark.parametrize("seed", each_seed(1, 4))
def test_what_grows_fails(name: str, seed: int) -> None:
    """Leaks above the tolerance fail, with their rate, and none passes."""
    finding = judge(LEAKS[name](seed))
    assert finding.outcome is Outcome.FAIL, finding.reason
    assert finding.measured is not None
    assert finding.limit is not None
    assert finding.measured > finding.limit
    assert finding.unit == "By/h"
    assert finding.numbers["probability"] >= 0.5


@pytest.mark.parametrize("draws", seeds(5, 30))
def test_the_stated_smallest_growth_is_found(draws: range) -> None:
    """Leaks as fast as a pass says it would have seen fail in at least 80 % of cases, and never pass."""
    outcomes = []
    for seed in draws:
        calm = judge(noise(seed, phi=0.9))
        assert calm.smallest_detectable is not None
        outcomes.append(judge(leak(noise(seed + 100, phi=0.9), calm.smallest_detectable / 3600)).outcome)
    assert outcomes.count(Outcome.FAIL) >= 0.8 * len(draws)
    assert Outcome.PASS not in outcomes


def test_rate_limit_and_interval() -> None:
    """10 % a day of 100 MiB is 426.7 KiB/h; 5 % is allowed, whatever the leak added to the level."""
    finding = judge(leak(noise(1, sd=0.001), 0.1 * A_DAY))
    assert finding.measured == pytest.approx(0.1 * LEVEL / 24, rel=0.01)
    assert finding.limit == pytest.approx(0.05 * LEVEL / 24, rel=0.01)
    assert finding.measured is not None
    assert finding.interval is not None
    assert finding.interval[0] <= finding.measured <= finding.interval[1]
    assert "steady growth" in finding.reason


def test_falling_memory_counts_downwards() -> None:
    """Available memory that falls by 20 % a day fails with a negative rate; used memory that falls passes."""
    falling = 1e9 * (1 - 0.2 * T / DAY + 0.002 * np.random.default_rng(1).standard_normal(T.size))
    finding = judge(readings("system.memory.available", falling, 60.0))
    assert finding.outcome is Outcome.FAIL
    assert finding.measured == pytest.approx(-0.2e9 / 24, rel=0.02)
    assert finding.limit is not None
    assert finding.measured is not None
    assert finding.limit < 0
    assert finding.interval is not None
    assert finding.interval[0] < finding.measured < finding.interval[1]
    assert finding.forecast is not None
    assert finding.forecast.after_s == pytest.approx(4 * DAY, rel=0.02)
    assert judge(readings("system.memory.usage", falling, 60.0)).outcome is Outcome.PASS


def test_forecast() -> None:
    """From 100 MiB a leak of 20 % a day reaches 200 MiB five days after its begin; its interval holds that."""
    base = noise(3)
    roomy = replace(base, trait=replace(base.trait, ceiling=2 * LEVEL))
    finding = judge(leak(roomy, 0.2 * A_DAY))
    assert finding.forecast is not None
    assert finding.forecast.after_s == pytest.approx(4 * DAY, rel=0.05)
    assert finding.forecast.low_s <= 4 * DAY * 1.02
    assert finding.forecast.high_s >= 4 * DAY * 0.98
    assert judge(leak(base, 0.2 * A_DAY)).forecast is None, "without a limit there is nothing to reach"
    assert judge(roomy).forecast is None


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        (np.full(1440, 12.0), Outcome.PASS),
        (5.0 + (T > 43200), Outcome.PASS),
        (np.floor(T / 14400), Outcome.FAIL),
        (100 + np.floor(T / 3600), Outcome.FAIL),
        (1000 + np.floor(T / 3600), Outcome.PASS),
        (np.zeros(1440), Outcome.PASS),
    ],
)
def test_counts(value: NDArray[np.float64], outcome: Outcome) -> None:
    """One descriptor more in a run is nobody's concern; one every four hours from none, or 24 of 100 a day, leak."""
    assert judge(counts(value)).outcome is outcome


def percent(value: NDArray[np.float64]) -> Series:
    """A share of the memory, of which no quantum and no floor is known."""
    series = readings("system.memory.usage", value / 100, 60.0)
    return replace(series, trait=replace(series.trait, unit="1", quantum=None, floor=0.0, high=1.0))


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        (np.full(1440, 25.0), Outcome.PASS),
        (25 + 0.1 * ((T > 36000) & (T < 46800)), Outcome.PASS),
        (25 + 0.1 * (T > 43200), Outcome.PASS),
        (25 + 1.0 * (T > 43200), Outcome.INCONCLUSIVE),
        (np.round(25 + 1.25 * T / DAY), Outcome.INCONCLUSIVE),
        (25 + 2.5 * T / DAY, Outcome.FAIL),
        (25 - 5 * T / DAY, Outcome.PASS),
    ],
)
def test_the_questions_that_were_asked(value: NDArray[np.float64], outcome: Outcome) -> None:
    """25 → 25.1 → 25 % does not fail, nor does ending at 25.1 %; a step of one whole percent cannot be decided."""
    finding = judge(percent(value))
    assert finding.outcome is outcome
    if outcome is Outcome.INCONCLUSIVE:
        assert finding.why is InconclusiveReason.RESOLUTION
        assert "more" in finding.settle


def test_too_short_and_too_few() -> None:
    """Under two hours, or under 16 readings, nothing is decided, whatever the readings; the missing time is named."""
    short = judge(leak(noise(1, seconds=3600), A_DAY), 3600)
    assert (short.outcome, short.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.TOO_SHORT)
    assert short.settle == "needs 1 h more without a restart"
    few = judge(leak(noise(1, cadence_s=7200), A_DAY))
    assert (few.outcome, few.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.TOO_FEW)
    assert "4 more samples" in few.settle
    hole = judge(noise(1).between(0, 30000 * S))
    assert (hole.outcome, hole.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.GAP)


def test_a_leak_in_a_short_run_is_named() -> None:
    """87 % a day over 86 minutes is undecided, for two hours were not there; its rate and its certainty are said."""
    seconds, rate = 86 * 60, 0.87 * A_DAY
    fast = judge(leak(noise(1, cadence_s=10, seconds=seconds, sd=0.002), rate), seconds)
    assert (fast.outcome, fast.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.TOO_SHORT)
    assert fast.measured == pytest.approx(rate * 3600, rel=0.2)
    certainty = fast.fact(Certainty)
    assert certainty is not None
    assert certainty.probability >= 0.999
    assert "grows by" in fast.reason
    assert "2 h needed" in fast.reason
    assert fast.settle == "needs 34 min more without a restart"


@pytest.mark.parametrize(
    ("series", "seconds"),
    [
        (noise(1, cadence_s=10, seconds=5160, sd=0.002), 5160),
        (warm_up(noise(1, cadence_s=10, seconds=5160, sd=0.002), 0.3 * LEVEL, 1800), 5160),
        (step(noise(1, cadence_s=10, seconds=5160, sd=0.002), 0.1 * LEVEL, 2000), 5160),
        (
            leak(noise(1, cadence_s=10, seconds=5160, sd=0.002), 0.2 * A_DAY),
            5160,
        ),  # 1.2 % in all: a part of a wave of a day
        (leak(noise(1, cadence_s=10, seconds=3000, sd=0.002), 2 * A_DAY), 3000),
    ],
)
def test_what_is_no_straight_rise_or_shorter_is_not_suspected(series: Series, seconds: int) -> None:
    """A warm-up, a step, a little, and anything in less than half of what is needed."""
    finding = judge(series, seconds)
    assert (finding.outcome, finding.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.TOO_SHORT)
    assert finding.measured is None
    assert finding.facts == ()


def test_inconclusive_names_the_hours() -> None:
    """Six hours of noise with a memory do not decide; what is missing is reported in hours, and is about right."""
    finding = judge(noise(3, seconds=21600, phi=0.9), 21600)
    assert (finding.outcome, finding.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.NOISE)
    assert finding.settle.startswith("needs ")
    assert finding.settle.endswith(" more at this noise level")


def restart(at_s: float) -> Event:
    """A restart of the process."""
    return Event("process.restart", "dut", PROCESS, round(at_s * S), round(at_s * S))


def test_lives_are_judged_each() -> None:
    """A warm-up after a restart is none of the life before it; a leak in one of two lives fails."""
    calm = noise(4)
    halves = np.where(T < DAY / 2, T, T - DAY / 2)
    warm = replace(calm, value=calm.values - 0.3 * LEVEL * np.exp(-halves / 2400))
    finding = judge(warm, events=(restart(DAY / 2),))
    assert finding.outcome is Outcome.PASS
    assert finding.numbers["lives"] == 2
    leaking = replace(calm, value=calm.values + 0.5 * A_DAY * np.where(T < DAY / 2, 0, T - DAY / 2))
    finding = judge(leaking, events=(restart(DAY / 2),))
    assert finding.outcome is Outcome.FAIL
    assert finding.marks[0].begin_ns == round(DAY / 2 * S)


def test_many_short_lives_are_no_pass() -> None:
    """A process that restarts every hour is never judged, so it never passes."""
    finding = judge(noise(4), events=tuple(restart(3600.0 * i) for i in range(1, 24)))
    assert (finding.outcome, finding.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.TOO_SHORT)


def test_growth_after_a_release_is_not_distinguished_from_a_sawtooth() -> None:
    """What fell by a flush and grows since has not exceeded its old peak: inconclusive, as nothing grew before it."""
    late = np.where(T < DAY / 2, 0.0, T - DAY / 2)
    calm = noise(3)
    finding = judge(step(replace(calm, value=calm.values + 0.3 * A_DAY * late), -0.2 * LEVEL, 0.5))
    assert (finding.outcome, finding.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.RELEASE)


def test_what_was_freed_inside_the_run_is_a_warning() -> None:
    """A leak that a flush took back whole, and that goes on at its pace, is a sawtooth seen once; it is reported."""
    finding = judge(step(leak(noise(3), 0.8 * A_DAY), -0.4 * LEVEL, 0.5))
    assert finding.outcome is Outcome.WARN
    assert "released at" in finding.reason
    once = noise(3)
    hump = np.where(T < DAY / 2, 0.6 * LEVEL * T / (DAY / 2), 0.0)
    finding = judge(replace(once, value=once.values + hump))
    assert finding.outcome is Outcome.WARN
    assert "memory of web had grown by" in finding.reason


def loaded(value: NDArray[np.float64]) -> tuple[Series, ...]:
    """A load in connections."""
    return (readings("load.connections", np.asarray(value, dtype=np.float64), 60.0),)


HUMP = 1000 + 500 * np.sin(np.pi * T / DAY)
EACH = 2e-4 * LEVEL  # bytes per connection


def following(load: NDArray[np.float64], seed: int = 5) -> Series:
    """Memory that follows a load."""
    base = noise(seed, phi=0.9)
    return replace(base, value=base.values + EACH * (load - 1000))


def test_memory_that_follows_its_load() -> None:
    """Bytes per connection are reported, and what is left does not grow."""
    rising = 1000 + 400 * np.sin(2 * np.pi * (0.8 * T / DAY - 0.4))
    alone, finding = judge(following(rising)), judge(following(rising), load=loaded(rising))
    assert alone.outcome is not Outcome.PASS
    assert finding.outcome is Outcome.PASS
    assert finding.numbers["per_load"] == pytest.approx(EACH, rel=0.1)
    assert finding.numbers["load_share"] > 0.8
    assert "load.connections" in finding.reason


def test_a_leak_under_a_load_hump_is_found() -> None:
    """The fall of the load hides the leak; beside the load it fails at its own rate."""
    hidden = leak(following(HUMP), 0.12 * A_DAY)
    finding = judge(hidden, load=loaded(HUMP))
    assert finding.outcome is Outcome.FAIL
    assert finding.measured == pytest.approx(0.12 * LEVEL / 24, rel=0.15)


def test_a_counter_is_a_load_too() -> None:
    """Packets sent, even in 32 bits, explain memory by their rate."""
    load = 1000 + 400 * np.sin(2 * np.pi * 1.3 * T / DAY) + 200 * np.sin(2 * np.pi * 5 * T / DAY)
    packets = counter("load.tx.packets", (load[:-1] * 60).astype(np.int64), 60.0, bits=32)
    finding = judge(following(load), load=(packets,))
    assert finding.outcome is Outcome.PASS
    assert finding.numbers["per_load"] == pytest.approx(EACH, rel=0.1)


def test_a_load_that_only_rises_explains_nothing_for_sure() -> None:
    """A leak beside a ramp of the load is inconclusive; beside a ramp that is too small to explain it, it fails."""
    ramp, slight = 1000 + 400 * T / DAY, 1000 + 100 * T / DAY
    finding = judge(leak(noise(1), 0.2 * A_DAY), load=loaded(ramp))
    assert (finding.outcome, finding.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.NO_REFERENCE)
    assert "load" in finding.settle
    assert judge(leak(noise(1), 0.2 * A_DAY), load=loaded(slight)).outcome is Outcome.FAIL


def test_a_steady_or_unrelated_load_changes_nothing() -> None:
    """A load that does not vary, or that the memory does not follow, leaves the answer as it was."""
    leaking = leak(noise(2), 0.1 * A_DAY)
    for load in (np.full(1440, 1000.0), HUMP, np.zeros(1440), np.full(1440, math.nan)):
        finding, alone = judge(leaking, load=loaded(load)), judge(leaking)
        assert finding.outcome is alone.outcome
        assert finding.measured == alone.measured


@settings(max_examples=60, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    value=st.lists(st.one_of(st.floats(width=64), st.sampled_from([0.0, 1.0, 1e308, -1e308, 4096.0])), max_size=60),
    load=st.lists(st.one_of(st.floats(width=64), st.sampled_from([0.0, 1.0, 1e308])), max_size=60),
    cut=st.integers(0, 86400),
    metric=st.sampled_from(["process.memory.usage", "system.memory.available", "process.open_files"]),
    ceiling=st.sampled_from([None, 0.0, 1e308]),
)
def test_any_numbers_give_a_complete_finding(
    value: list[float], load: list[float], cut: int, metric: str, ceiling: float | None
) -> None:
    """A day of anything, with any load and a restart anywhere, gives a complete finding and no warning."""
    samples = readings(metric, np.array(value, dtype=np.float64), DAY / max(len(value), 1), object=PROCESS)
    samples = replace(samples, trait=replace(samples.trait, ceiling=ceiling))
    series = readings("load.connections", np.array(load, dtype=np.float64), DAY / max(len(load), 1))
    judge(samples, events=(restart(float(cut)),), load=(series,))


@pytest.mark.parametrize(
    "bad",
    [
        {"tolerance": 0.0},
        {"horizon": 0.0},
        {"fail": 1.0},
        {"clear": 0.8},
        {"free": 0.0},
        {"follow": 2.0},
        {"shortest": math.inf},
        {"tolerance": math.nan},
    ],
)
def test_parameters_that_mean_nothing_are_refused(bad: dict[str, float]) -> None:
    """Nonsense is refused with a sentence that names the rule."""
    with pytest.raises(ValueError, match="growth"):
        Growth(**bad)


def test_what_is_missing_is_one_sentence() -> None:
    """How many readings, how long that takes, and at which distance."""
    few = judge(leak(noise(1, cadence_s=7200), A_DAY))
    assert few.settle == "needs 4 more samples without a restart: 8 h more at a sample every 2 h"


def test_small_rates_of_shares_are_distinguished() -> None:
    """What grows by little more than is allowed an hour does not grow by 0.1 %/h of 0.1 %/h."""
    hours = np.arange(1440) / 60
    value = np.asarray(0.5 + 0.0014 * hours, dtype=np.float64)
    finding = judge(
        readings("system.memory.utilization", value + np.random.default_rng(1).normal(0, 0.0004, 1440), 60.0)
    )
    assert finding.outcome is Outcome.FAIL
    assert "0.14 %/h" in finding.reason
    assert "allowed 0.104 %/h" in finding.reason


OUTCOMES = """
growth                    | growth
constant                  | P
white                     | PI
AR .9                     | PI
AR .99                    | PI
AR .999                   | PI
pink .4                   | PI
pink .45, sd 2            | PI
heavy tails               | PI
slow noise 3 h            | PI
outliers 1 %              | PI
variance doubles          | PI
quantised 4 %             | PI
quantised 4 %, quiet      | PI
quantised 1 %             | PI
gaps 20 % and 3 h         | PI
over half missing         | I
twelve readings           | I
level flips 2 h           | PI
level flips 30 min        | PI
bump 10 % for 2 h         | PI
bump back at .9           | PI
dip 15 % for 3 h          | PI
five bumps                | PI
batch job each 6 h        | PI
batch job each 3 h        | PI
sawtooth 20 min           | PI
sawtooth 1 h              | PI
sawtooth 3 h              | PI
sawtooth 6 h              | PI
sawtooth 8 h              | PI
wave 4 h                  | PI
wave of a day             | PI
half a wave               | PIf
sawtooth of a day         | PIf
warm-up 30 min            | PI
warm-up 1 h               | PI
warm-up 4 h               | PI
warm-up in two stages     | PI
warm-up stretched         | PI
warm-up, then a step      | PI
warm-up with bumps        | PI
warm-up at .2, untold     | PI
overshoot, then settled   | PI
cache full at .4          | PI
cache full at .65         | PI
cache stairs              | PIf
plateau by a sigmoid      | PI
step +10 %                | PI
step +10 % late           | PI
step +20 %                | PI
step +25 % at .9          | PI
step -10 %                | PI
two steps +4 %            | PI
three steps +4 %          | PIf
falls 5 % a day           | PI
falls, then flat          | PI
step at an event          | PI
restart, warm-up again    | PI
load in steps of 3 %      | PI
load hump 6 %             | PI
logarithmic 3 %           | PIF
cache stairs, slow        | PIF
leak at tolerance         | PIF
leak 5, daily wave        | PIF
leak 6 after a release    | PIF
leak 5, sawtooth 8 h      | PIF
leak 10                   | F
leak 10, AR .9            | FI
leak 20, AR .99           | FI
leak 15, pink .4          | FI
leak 15, heavy tails      | FI
leak 15, sd 3             | FI
leak 15, outliers         | FI
leak 15, gaps             | FI
leak 20, quantised 4 %    | FI
leak 15, sawtooth 20 min  | FI
leak 15, sawtooth 1 h     | FI
leak 15, sawtooth 3 h     | FI
leak 15 after warm-up     | FI
leak 15 with a step       | FI
leak 15 with batch jobs   | FI
leak 20 after a release   | FI
leak 8 now and then       | FI
leak 12 in steps          | F
leak 10 in big steps      | FI
leak doubling each 8 h    | F
leak accelerating         | FI
leak 20 from .6           | FI
leak 40 from .8           | FI
leak 20 over a restart    | FI
leak 15 under a load hump | FI

counts                            | growth
descriptors stand                 | P
descriptors come and go           | PI
one descriptor more, late         | PI
pool of threads grows to its size | PI
descriptors leak one an hour      | F
descriptors leak ten an hour      | F
table of connections fills        | F
free memory stands                | PI
free memory falls 10 % a day      | FI
"""
