"""memory_growth: worked examples, lives, and signals with a known truth."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from tests.rules.draws import seeds

from soakwatch.judge.adjudicate.memory import one_verdict
from soakwatch_model.case import Case
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.detectors.memory_growth import MemoryGrowth
from soakwatch_rules.signals import (
    LEVEL,
    PROCESS,
    gappy,
    leak,
    noise,
    quantised,
    readings,
    sawtooth,
    step,
    warm_up,
)

S = 10**9
METRIC = "process.memory.usage"


def judge(series: Series, seconds: float | None = None, *events: Event, rule: MemoryGrowth | None = None) -> Finding:
    """The one finding of one series whose window begins at 0."""
    end = seconds if seconds is not None else len(series) * (series.cadence_s or 1.0)
    case = Case("dut", series.object, Window(0, round(end * S)), (series,), events=events)
    return (rule or MemoryGrowth(stage=0)).judge(case)[0]


def staged(first: list[float], middle: list[float], last: list[float], metric: str = METRIC) -> Series:
    """Three stages of equal length, a reading each second."""
    series = readings(metric, np.array(first + middle + last, dtype=np.float64), 1.0, object=PROCESS)
    return replace(series, trait=replace(series.trait, quantum=None))


def test_worked_example_of_growth() -> None:
    """First third 98, 102, ... (mean 100), last 118, 122, ... (mean 120): every number is the hand-computed one."""
    finding = judge(staged([98, 102] * 4, [110] * 8, [118, 122] * 4))
    sd = math.sqrt(8 * 2.0**2 / 7)  # eight deviations of 2, divided by n - 1
    assert finding.outcome is Outcome.FAIL
    assert finding.numbers["mean_first"] == 100.0
    assert finding.numbers["mean_last"] == 120.0
    assert finding.numbers["mean_middle"] == 110.0
    assert finding.numbers["sd_first"] == sd
    assert finding.numbers["sd_last"] == sd
    assert finding.numbers["n_first"] == finding.numbers["n_last"] == 8
    assert finding.numbers["change"] == 0.2
    assert finding.numbers["intervals_cross"] == 0
    assert finding.numbers["rise_per_hour"] == pytest.approx(20 / (16 / 3600), rel=1e-12)  # centres are 16 s apart
    assert finding.measured == 120.0
    assert finding.limit == 105.0
    assert finding.interval == (120.0 - sd, 120.0 + sd)
    assert (finding.samples, finding.expected) == (24, 24)
    assert "grew from 100" in finding.reason


def test_worked_example_of_crossing_intervals() -> None:
    """A mean that rises 10 % within a spread of 8 and 8 passes with a caveat that names the change and the wording."""
    low, high = [92.0, 108.0] * 4, [102.0, 118.0] * 4
    finding = judge(staged(low, [105] * 8, high))
    assert finding.outcome is Outcome.PASS
    assert finding.numbers["intervals_cross"] == 1
    sd = math.sqrt(8 * 8.0**2 / 7)
    by_hand = 2 * sd / math.sqrt(1 - 1 / 12) + 0.84 * math.sqrt(1.5) * math.hypot(sd / math.sqrt(8), sd / math.sqrt(8))
    assert finding.numbers["smallest_rise"] == pytest.approx(by_hand, rel=1e-12)
    assert finding.smallest_detectable == pytest.approx(by_hand / (16 / 3600), rel=1e-12)
    assert finding.detectable_unit == "By/h"
    assert any("10.0 %" in caveat and "literally" in caveat for caveat in finding.doubts)


@pytest.mark.parametrize(
    ("last", "expected"),
    [(104.9, Outcome.PASS), (105.0, Outcome.PASS), (105.1, Outcome.FAIL), (100.0, Outcome.PASS), (80.0, Outcome.PASS)],
)
def test_tolerance_on_readings_without_noise(last: float, expected: Outcome) -> None:
    """More than 5 % is growth, 5 % is not; neither is a constant or a fall."""
    assert judge(staged([100] * 8, [100] * 8, [last] * 8)).outcome is expected


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (0.0, 1.0, Outcome.FAIL),
        (0.0, 0.0, Outcome.PASS),
        (-100.0, -90.0, Outcome.FAIL),
        (-100.0, -97.0, Outcome.PASS),
        (-100.0, -110.0, Outcome.PASS),
    ],
)
def test_zero_and_negative_levels(first: float, last: float, expected: Outcome) -> None:
    """From zero any rise is growth; below zero the tolerance is a share of the size of the level."""
    finding = judge(staged([first] * 8, [first] * 8, [last] * 8))
    assert finding.outcome is expected
    assert ("change" in finding.numbers) == (first != 0)


def test_available_memory_counts_downwards() -> None:
    """Available memory that falls by 20 % is growth, and its rise per hour is negative; one that rises is none."""
    falling = replace(staged([100] * 8, [90] * 8, [80] * 8, "system.memory.available"), object="")
    assert judge(falling).outcome is Outcome.FAIL
    assert judge(falling).numbers["rise_per_hour"] < 0
    assert judge(replace(falling, value=falling.value[::-1].copy())).outcome is Outcome.PASS


def test_the_last_stage_is_the_last() -> None:
    """Growth that comes and goes in the middle third is none; growth in the very last third is."""
    assert judge(staged([100] * 8, [150] * 8, [100] * 8)).outcome is Outcome.PASS
    assert judge(staged([100] * 8, [100] * 8, [150] * 8)).outcome is Outcome.FAIL


def test_stages_are_cut_by_time_not_by_count() -> None:
    """A dense first third does not push the borders: the last third holds exactly the readings of its time."""
    time_ns = np.concatenate([np.arange(0, 100, 0.5), np.arange(100, 300, 5)]).astype(np.float64)
    value = np.where(time_ns < 200, 100.0, 120.0)
    series = Series("dut", METRIC, PROCESS, staged([1], [1], [1]).trait, (time_ns * S).astype(np.int64), value, 5.0)
    finding = judge(series, 300)
    assert (finding.numbers["n_first"], finding.numbers["n_last"]) == (200, 20)
    assert finding.numbers["mean_last"] == 120.0
    assert finding.outcome is Outcome.FAIL


def restart(at_s: float, kind: str = "process.restart", object_name: str = PROCESS) -> Event:
    """An event of a process's life."""
    return Event(kind, "dut", object_name, round(at_s * S), None)


def test_no_window_crosses_a_restart() -> None:
    """Memory that steps up at a restart is two flat lives; without the event it is growth, with a gap as well."""
    series = staged([100] * 30, [100] * 30, [130] * 30)
    assert judge(series).outcome is Outcome.FAIL
    finding = judge(series, 90, restart(60))
    assert finding.outcome is Outcome.PASS
    assert finding.numbers["lives"] == finding.numbers["lives_judged"] == 2
    assert judge(series, 90, restart(60, "gap")).outcome is Outcome.FAIL
    assert judge(series, 90, restart(60, object_name="process=other,instance=0")).outcome is Outcome.FAIL
    assert judge(series, 90, restart(60, "reboot", "")).outcome is Outcome.PASS


def test_the_worst_life_decides() -> None:
    """A leak in the second of two lives fails, names that life and marks it."""
    leaking = np.concatenate([np.full(60, 100.0), 100 + np.arange(60.0)])
    finding = judge(readings(METRIC, leaking, 1.0, object=PROCESS), 120, restart(60))
    assert finding.outcome is Outcome.FAIL
    assert "1970-01-01 00:01:00 UTC" in finding.reason
    assert finding.marks[0].begin_ns == 60 * S


def test_lives_too_short_are_reported_and_never_pass() -> None:
    """One life long enough passes and tells of the others; if all are too short nothing is decided."""
    series = readings(METRIC, np.full(100, 100.0), 1.0, object=PROCESS)
    some = judge(series, 100, restart(90))
    assert some.outcome is Outcome.PASS
    assert any("too short" in caveat for caveat in some.doubts)
    flapping = judge(series, 100, *[restart(t) for t in range(10, 100, 10)])
    assert flapping.outcome is Outcome.INCONCLUSIVE
    assert "14 s more" in flapping.settle
    mostly = judge(series, 100, *[restart(t) for t in range(30, 100, 5)])
    assert mostly.outcome is Outcome.INCONCLUSIVE, "30 of 100 readings lie in a life that can be judged"


@pytest.mark.parametrize(("n", "expected"), [(23, Outcome.INCONCLUSIVE), (24, Outcome.PASS)])
def test_eight_readings_a_stage(n: int, expected: Outcome) -> None:
    """Eight readings in the first and the last third are enough, seven are not."""
    assert judge(readings(METRIC, np.full(n, 100.0), 1.0, object=PROCESS)).outcome is expected


def test_half_of_the_expected_readings() -> None:
    """A series with fewer than half of its readings, or none in the last third, is inconclusive."""
    series = readings(METRIC, np.full(300, 100.0), 1.0, object=PROCESS)
    sparse = replace(series, time_ns=series.time_ns[::3], value=series.value[::3])
    assert judge(sparse, 300).outcome is Outcome.INCONCLUSIVE
    silent = judge(series.between(0, 190 * S), 300)
    assert silent.outcome is Outcome.INCONCLUSIVE
    assert "last third" in silent.settle


def day(seed: int, phi: float = 0.0) -> Series:
    """24 h of readings a minute with 1 % noise."""
    return noise(seed, METRIC, phi=phi)


SIGNALS: dict[str, tuple[Callable[[int], Series], Outcome]] = {
    "white noise": (day, Outcome.PASS),
    "AR(1) .9": (lambda seed: day(seed, 0.9), Outcome.PASS),
    "one outlier": (lambda seed: step(step(day(seed), 9 * LEVEL, 0.9), -9 * LEVEL, 0.901), Outcome.PASS),
    "sawtooth": (lambda seed: sawtooth(day(seed), 0.2 * LEVEL, 3600, seed), Outcome.PASS),
    "coarse steps": (lambda seed: quantised(day(seed), 0.04 * LEVEL), Outcome.PASS),
    "gaps": (lambda seed: gappy(day(seed), 0.2, (0.4, 0.5), seed), Outcome.PASS),
    "leak 5 %": (lambda seed: leak(day(seed), 0.05 * LEVEL / 86400), Outcome.PASS),
    "leak 12 %": (lambda seed: leak(day(seed), 0.12 * LEVEL / 86400), Outcome.FAIL),
    "leak with gaps": (lambda seed: gappy(leak(day(seed), 0.2 * LEVEL / 86400), 0.2, (0.4, 0.5), seed), Outcome.FAIL),
    "late leak": (lambda seed: leak(day(seed), 0.8 * LEVEL / 86400, 0.6), Outcome.FAIL),
    "step 10 %": (lambda seed: step(day(seed), 0.1 * LEVEL), Outcome.FAIL),  # known weakness
    "short warm-up": (lambda seed: warm_up(day(seed), 0.3 * LEVEL, 600), Outcome.PASS),
    "warm-up of 4 h": (lambda seed: warm_up(day(seed), 0.6 * LEVEL, 4 * 3600), Outcome.FAIL),  # known weakness
}


@pytest.mark.parametrize(("name", "seed"), list(product(SIGNALS, range(3))))
def test_signals_of_known_truth(name: str, seed: int) -> None:
    """Each signal gets the outcome that the method's definition gives it, weaknesses included."""
    make, expected = SIGNALS[name]
    assert judge(make(seed), 86400).outcome is expected


def test_smallest_detectable_is_seen_in_four_of_five() -> None:
    """A leak of the stated smallest slope is found in 70 to 95 of 100 runs, one of half of it in few."""
    rule = MemoryGrowth(tolerance=0.001, stage=0)
    stated = [judge(noise(seed, METRIC, 7200, 10.0), 7200, rule=rule).smallest_detectable or 0 for seed in range(50)]
    rate = float(np.mean(stated)) / 3600
    outcomes = [judge(leak(noise(seed, METRIC, 7200, 10.0), rate), 7200, rule=rule).outcome for seed in range(100)]
    assert 70 <= outcomes.count(Outcome.FAIL) <= 95
    missed = [judge(leak(noise(s, METRIC, 7200, 10.0), rate / 2), 7200, rule=rule).outcome for s in range(100)]
    assert missed.count(Outcome.FAIL) <= 5


def test_seconds_are_no_soak() -> None:
    """However many readings it has, a life of under half a minute is not judged, and says what is missing."""
    case = Case("dut", "", Window(0, 20 * 10**9), (noise(1, METRIC, 20, 0.2),))
    finding = MemoryGrowth().judge(case)[0]
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "10 s more" in finding.settle


@pytest.mark.parametrize("bad", [{"tolerance": -0.1}, {"tolerance": math.nan}, {"width": 0.0}, {"least": 1.0}])
def test_parameters_that_mean_nothing_are_refused(bad: dict[str, float]) -> None:
    """Nonsense is refused with a sentence that names the rule."""
    with pytest.raises(ValueError, match="memory_growth"):
        MemoryGrowth(**bad)


@pytest.mark.parametrize(("sd", "most"), [(0.01, 0), (0.03, 12), (0.05, 22)])
@pytest.mark.parametrize("seconds", [30, 45, 60])
@pytest.mark.parametrize("draws", seeds(20, 200))
def test_short_lives_fail_on_noise_no_more_often_than_stated(draws: range, seconds: int, sd: float, most: int) -> None:
    """In percent of the seeds, for noise whose level wanders with time constants around a third of the life."""
    for time_constant in (5.0, 20.0, 60.0):
        phi = math.exp(-1.0 / time_constant)
        outcomes = [
            judge(noise(seed=seed, metric=METRIC, seconds=seconds, cadence_s=1.0, sd=sd, phi=phi)).outcome
            for seed in draws
        ]
        assert outcomes.count(Outcome.FAIL) <= most * len(draws) / 100


def test_a_straight_leak_did_not_come_before_the_last_third() -> None:
    """That nearly all of a rise came early is said of a cache that filled, not of a leak, half of which came late."""
    hours = np.arange(1440) / 60
    for value, early in ((100 + 10 * hours / 24, False), (100 + 20 * np.minimum(hours / 9.6, 1), True)):
        series = readings("process.memory.usage", np.asarray(value * 2**20, dtype=np.float64), 60.0)
        (finding,) = MemoryGrowth().judge(Case("dut", "", Window(0, 86400 * 10**9), (series,)))
        assert finding.outcome is Outcome.FAIL
        assert ("nearly all of the growth came before the last third" in " ".join(finding.doubts)) is early


def test_a_life_that_restarts_cut_out_of_a_run_warns() -> None:
    """A life of minutes between restarts that rises warns, as the whole of a run it fails."""
    rising = 100 + 10 * np.arange(120) / 120
    whole = judge(readings(METRIC, rising, 1.0, object=PROCESS), 120)
    started = judge(
        readings(METRIC, np.concatenate([np.full(60, 100.0), rising]), 1.0, object=PROCESS), 180, restart(60)
    )
    assert [whole.outcome, started.outcome] == [Outcome.FAIL, Outcome.FAIL]
    assert one_verdict([whole])[0].outcome is Outcome.FAIL
    finding = one_verdict([started])[0]
    assert finding.outcome is Outcome.WARN
    assert "only the time between two restarts" in finding.sentence


def test_a_rise_in_every_life_is_a_leak_that_restarts_interrupt() -> None:
    """What grows in one life may be a part of a sawtooth; what grows again after the restart fails."""
    rising = 20 + 40 * np.arange(80) / 80
    series = readings(METRIC, np.concatenate([rising[:60], rising]), 1.0, object=PROCESS)
    finding = judge(series, 140, restart(60))
    assert one_verdict([finding])[0].outcome is Outcome.FAIL
    warm = 20 + 40 * np.minimum(np.arange(80) / 45, 1)
    series = readings(METRIC, np.concatenate([warm, warm]), 1.0, object=PROCESS)
    assert one_verdict([judge(series, 160, restart(80))])[0].outcome is Outcome.WARN


def test_one_step_within_the_last_third_is_no_growth_at_the_end() -> None:
    """10 % more at three quarters of half a minute, level before and after: it warns; a straight rise fails."""
    noise_ = np.random.default_rng(3).normal(0, 0.4, 150)
    step_ = 100 + 10.0 * (np.arange(150) >= 112) + noise_
    rising = 100 + 10 * np.arange(150) / 150 + noise_ / 4
    finding = one_verdict([judge(readings(METRIC, step_, 0.2, object=PROCESS))])[0]
    assert finding.outcome is Outcome.WARN
    assert "hardly rises any more" in finding.sentence
    assert one_verdict([judge(readings(METRIC, rising, 0.2, object=PROCESS))])[0].outcome is Outcome.FAIL


OUTCOMES = """
growth                    | memory_growth
constant                  | P
white                     | P
AR .9                     | P
AR .99                    | P
AR .999                   | P
pink .4                   | P
pink .45, sd 2            | P
heavy tails               | P
slow noise 3 h            | P
outliers 1 %              | P
variance doubles          | P
quantised 4 %             | P
quantised 4 %, quiet      | P
quantised 1 %             | P
gaps 20 % and 3 h         | P
over half missing         | I
twelve readings           | I
level flips 2 h           | P
level flips 30 min        | P
bump 10 % for 2 h         | P
bump back at .9           | P
dip 15 % for 3 h          | P
five bumps                | P
batch job each 6 h        | P
batch job each 3 h        | P
sawtooth 20 min           | P
sawtooth 1 h              | P
sawtooth 3 h              | P
sawtooth 6 h              | P
sawtooth 8 h              | Pf
wave 4 h                  | P
wave of a day             | Pf
half a wave               | Pf
sawtooth of a day         | Pf
warm-up 30 min            | P
warm-up 1 h               | P
warm-up 4 h               | Pf
warm-up in two stages     | Pf
warm-up stretched         | P
warm-up, then a step      | Pf
warm-up with bumps        | Pf
warm-up at .2, untold     | Pf
overshoot, then settled   | P
cache full at .4          | Pf
cache full at .65         | Pf
cache stairs              | Pf
plateau by a sigmoid      | Pf
step +10 %                | Pf
step +10 % late           | Pf
step +20 %                | Pf
step +25 % at .9          | Pf
step -10 %                | P
two steps +4 %            | Pf
three steps +4 %          | Pf
falls 5 % a day           | P
falls, then flat          | P
step at an event          | Pf
restart, warm-up again    | Pf
load in steps of 3 %      | Pf
load hump 6 %             | P
logarithmic 3 %           | PF
cache stairs, slow        | F
leak at tolerance         | PF
leak 5, daily wave        | PF
leak 6 after a release    | PF
leak 5, sawtooth 8 h      | PF
leak 10                   | F
leak 10, AR .9            | F
leak 20, AR .99           | F
leak 15, pink .4          | F
leak 15, heavy tails      | F
leak 15, sd 3             | F
leak 15, outliers         | F
leak 15, gaps             | F
leak 20, quantised 4 %    | F
leak 15, sawtooth 20 min  | Fp
leak 15, sawtooth 1 h     | Fp
leak 15, sawtooth 3 h     | Fp
leak 15 after warm-up     | F
leak 15 with a step       | F
leak 15 with batch jobs   | F
leak 20 after a release   | F
leak 8 now and then       | Fp
leak 12 in steps          | F
leak 10 in big steps      | F
leak doubling each 8 h    | F
leak accelerating         | F
leak 20 from .6           | Fp
leak 40 from .8           | Fp
leak 20 over a restart    | Fp
leak 15 under a load hump | F
"""


def watched(minutes: float, mb_per_hour: float, *events: Event, warm_mb: float = 100.0) -> Finding:
    """The memory of a monitor that fills its caches in the first hour, and may leak."""
    seconds = np.arange(0, minutes * 60, 5.0)
    since = seconds - max([0.0, *(float(event.end_ns or 0) / S for event in events)])
    since = np.where(since < 0, seconds, since)
    values = 1e6 * (140 + warm_mb * np.minimum(since / 3600, 1.0) + mb_per_hour * since / 3600)
    series = readings("monitor.memory.usage", values, 5.0)
    for gap in events:
        kept = (series.time_ns < gap.begin_ns) | (series.time_ns >= (gap.end_ns or 0))
        series = replace(series, time_ns=series.time_ns[kept], value=series.value[kept])
    case = Case("monitor", "", Window(0, round(minutes * 60 * S)), (series,), events=events, role="monitor")
    return MemoryGrowth().judge(case)[0]


@pytest.mark.parametrize("minutes", [3, 12, 45, 60])
def test_the_warm_up_of_the_monitor_is_no_growth(minutes: int) -> None:
    """Its first hour is not judged; the same memory of a process grows."""
    finding = watched(minutes, 0)
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert finding.reason == "the first 1 h of the monitor is its warm-up, which is not judged"
    seconds = np.arange(0, minutes * 60, 5.0)
    of_a_process = readings(METRIC, 1e6 * (140 + 100 * np.minimum(seconds / 3600, 1)), 5.0, object=PROCESS)
    assert judge(of_a_process).outcome is (Outcome.PASS if minutes < 12 else Outcome.FAIL)


@pytest.mark.parametrize("minutes", [75, 90, 300])
def test_a_leak_of_the_monitor_is_growth_after_its_warm_up(minutes: int) -> None:
    """A flat hour after the warm-up passes, a leak fails, however long the run."""
    flat, leaking = watched(minutes, 0), watched(minutes, 200)
    assert flat.outcome is Outcome.PASS
    assert flat.samples == flat.expected == (minutes - 60) * 12
    assert leaking.outcome is Outcome.FAIL
    assert "first 1 h" in leaking.definition
    assert [one_verdict([f])[0].outcome for f in (flat, leaking)] == [Outcome.PASS, Outcome.FAIL]


def test_a_resumed_monitor_warms_up_again() -> None:
    """After the time in which it did not run its first hour is left out once more, and a leak is still found."""
    gap = Event("gap", "", "", 7200 * S, 7300 * S, {"cause": "the monitor was not running"})
    assert watched(240, 0, gap).outcome is Outcome.PASS
    assert watched(240, 200, gap).outcome is Outcome.FAIL
