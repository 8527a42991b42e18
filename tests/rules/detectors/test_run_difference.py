"""run_difference: runs compared with runs, how well they repeat, and the change points of a history."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from soakwatch_model.case import Before, Case
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.detectors.run_difference import RunDifference
from soakwatch_rules.signals import PROCESS, noise, readings
from soakwatch_rules.stats.changepoints import best_split, history, probability
from soakwatch_rules.stats.difference import Difference, by_t, runs_needed
from soakwatch_rules.stats.repetitions import repeatability, sd_factor

S = 10**9
METRIC = "process.memory.usage"
Floats = NDArray[np.float64]


def constant(level: float, metric: str = METRIC, n: int = 100) -> Series:
    """A run that stays at one level."""
    series = readings(metric, np.full(n, level), 10.0, object=PROCESS if metric.startswith("process.") else "")
    return replace(series, trait=replace(series.trait, quantum=None, floor=0.0))


def judge(
    old: Sequence[float], new: float, metric: str = METRIC, rule: RunDifference | None = None, n: int = 100
) -> Finding:
    """The finding of a run at one level against runs at others."""
    now = constant(new, metric, n)
    earlier = tuple(constant(level, metric) for level in old)
    case = Case("dut", now.object, Window(0, n * 10 * S), (now,), before=Before(earlier=earlier))
    return (rule or RunDifference()).judge(case)[0]


def difference(old: Sequence[float] | Floats, new: Sequence[float] | Floats) -> Difference | None:
    """New runs against old ones, as the rule compares them."""
    return by_t(new, old, 0.05)


def higher(each: Difference | None) -> bool:
    """Whether the new runs are proven to be higher."""
    assert each is not None
    return each.outcome == "different" and each.rose


def test_worked_example() -> None:
    """98, 100, 102 against 112: s = 2, error = 2·sqrt(4/3), t = 12/2.309 = 5.196 with 2 degrees of freedom."""
    difference_ = difference([98.0, 100.0, 102.0], [112.0])
    assert difference_ is not None
    assert difference_.change == pytest.approx(0.12)
    assert difference_.spread == pytest.approx(0.02)
    assert difference_.p == pytest.approx(0.01755, abs=1e-4)  # t(2) beyond 5.196
    half = 2.91999 * 0.02 * math.sqrt(4 / 3)
    assert difference_.low == pytest.approx(0.12 - half, abs=1e-6)
    assert difference_.high == pytest.approx(0.12 + half, abs=1e-6)
    assert higher(difference_)


def test_several_new_runs_are_pooled() -> None:
    """Two and two: the spread comes from both groups, n + m - 2 degrees of freedom."""
    difference_ = difference([99.0, 101.0], [108.0, 112.0])
    assert difference_ is not None
    assert difference_.spread == pytest.approx(math.sqrt((1 + 1 + 4 + 4) / 2) / 100)
    assert (difference_.n_old, difference_.n_new) == (2, 2)


@pytest.mark.parametrize(
    ("old", "new", "metric", "expected"),
    [
        ([100, 101, 99, 100, 100], 130, METRIC, Outcome.FAIL),
        ([100, 101, 99, 100, 100], 70, METRIC, Outcome.PASS),
        ([100, 101, 99, 100, 100], 100.5, METRIC, Outcome.PASS),
        ([100, 101, 99, 100, 100], 130, "load.request.rate", Outcome.PASS),
        ([100, 101, 99, 100, 100], 70, "load.request.rate", Outcome.FAIL),
        ([100, 101, 99, 100, 100], 93.4, "load.request.rate", Outcome.FAIL),
        ([100, 102, 98, 101, 99], 91.5, "load.request.rate", Outcome.FAIL),
        ([100, 103, 97, 102, 98], 93, "load.request.rate", Outcome.WARN),
        ([100, 101, 99, 100, 100], 130, "load.latency", Outcome.FAIL),
        ([100, 101, 99, 100, 100], 70, "load.latency", Outcome.PASS),
        ([100, 101, 99, 100, 100], 130, "system.cpu.utilization", Outcome.FAIL),
        ([100, 101, 99, 100, 100], 130, "system.cpu.frequency", Outcome.WARN),
        ([100, 101, 99, 100, 100], 70, "system.cpu.frequency", Outcome.WARN),
        ([100, 102, 98, 101, 99], 109, METRIC, Outcome.FAIL),
        ([100, 103, 97, 102, 98], 107, METRIC, Outcome.WARN),
        ([100, 110, 90, 105, 95], 112, METRIC, Outcome.INCONCLUSIVE),
        ([100, 110, 90, 105, 95], 100, METRIC, Outcome.INCONCLUSIVE),
        ([100], 130, METRIC, Outcome.INCONCLUSIVE),
        ([0, 0, 0], 0, METRIC, Outcome.PASS),
        ([0, 0, 0], 50, METRIC, Outcome.WARN),
        ([0], 50, METRIC, Outcome.INCONCLUSIVE),
    ],
)
def test_outcomes(old: list[float], new: float, metric: str, expected: Outcome) -> None:
    """Worse fails where a direction is bad, warns where it is not clear; spread and single runs decide nothing."""
    finding = judge(old, new, metric)
    assert finding.outcome is expected, finding.reason


def test_one_earlier_run_has_no_spread() -> None:
    """The difference is reported, and that nobody knows how runs differ."""
    finding = judge([100], 130)
    assert finding.why is InconclusiveReason.NO_REFERENCE
    assert "+30 %" in finding.reason
    assert finding.measured == pytest.approx(0.3)
    assert "two earlier runs" in finding.settle


def test_noise_between_runs_says_how_many_are_needed() -> None:
    """At a spread of 4 % two runs are too few; the number that would do is reported."""
    finding = judge([97.2, 102.8], 101)
    assert finding.why is InconclusiveReason.NOISE
    needed = runs_needed(0.0396, 0.10)
    assert needed is not None
    assert f"needs {needed} earlier runs" in finding.settle


def test_without_earlier_runs_nothing_is_reported() -> None:
    """A run that is compared with nothing is not judged; earlier runs without readings are nothing to compare with."""
    assert judge([], 100).outcome is Outcome.NOT_APPLICABLE
    now = constant(100)
    empty = replace(now, time_ns=now.time_ns[:3], value=now.value[:3])
    finding = RunDifference().judge(
        Case("dut", PROCESS, Window(0, 1000 * S), (now,), before=Before(earlier=(empty, empty)))
    )[0]
    assert (finding.outcome, finding.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.NO_REFERENCE)


def test_the_begin_of_a_run_does_not_count() -> None:
    """A warm-up in the first fifth is left out; runs of other lengths are doubted."""
    value = np.where(np.arange(100) < 20, 500.0, 100.0)
    now = replace(constant(100), value=value)
    earlier = tuple(constant(level) for level in (100, 100.5, 99.5))
    finding = RunDifference().judge(Case("dut", PROCESS, Window(0, 1000 * S), (now,), before=Before(earlier=earlier)))[
        0
    ]
    assert finding.outcome is Outcome.PASS
    assert finding.measured == pytest.approx(0, abs=1e-9)
    assert any("lasted" in caveat for caveat in judge([100, 100, 101], 100, n=200).doubts)


def test_the_quantum_is_a_spread() -> None:
    """Three runs with exactly 10 descriptors are no proof that 11 is different: one descriptor is nobody's worry."""
    now = readings("process.open_files", np.full(100, 11.0), 10.0, object=PROCESS)
    earlier = tuple(replace(now, value=np.full(100, 10.0)) for _ in range(3))
    case = Case("dut", PROCESS, Window(0, 1000 * S), (now,), before=Before(earlier=earlier))
    assert RunDifference().judge(case)[0].outcome is not Outcome.FAIL
    many = replace(now, value=np.full(100, 20.0))
    assert RunDifference().judge(replace(case, series=(many,)))[0].outcome is Outcome.FAIL


def test_counters_are_compared_as_rates() -> None:
    """Packets per second are compared, however many had been counted before."""

    def sent(rate: float, start: float) -> Series:
        return readings("load.rx.packets", start + rate * 10 * np.arange(100.0), 10.0)

    earlier = tuple(sent(rate, 1e9) for rate in (1000, 1010, 990, 1005))
    case = Case("gen", "", Window(0, 1000 * S), (sent(800, 0),), before=Before(earlier=earlier), role="generator")
    finding = RunDifference().judge(case)[0]
    assert finding.outcome is Outcome.FAIL
    assert finding.numbers["new"] == pytest.approx(800)
    assert "load.rx.packets: 800 packets/s, -20.1 %" in finding.reason


def test_two_readings_of_one_poll_are_no_rate() -> None:
    """A poll was late, and the next one brought its sample too, 2 ns before its own: that is no rate of loss."""
    even = readings("load.lost.packets", np.arange(400) * 722, 10.0)
    times = even.time_ns.copy()
    times[200] = times[201] - 2
    case = Case("dut", "", Window(0, 4000 * S), (replace(even, time_ns=times),), before=Before(earlier=(even,) * 4))
    (finding,) = RunDifference().judge(case)
    assert finding.outcome is Outcome.PASS, finding.reason


def test_what_is_better_is_reported_and_fails_nothing() -> None:
    """More packets per second than ever pass, and the finding says how sure that is."""
    finding = judge([7.49e6, 7.5e6, 7.48e6, 7.49e6], 8.2e6, "load.rx.packet.rate")
    assert finding.outcome is Outcome.PASS
    assert "8.2 M packets/s, +9.48 % compared with 7.49 M packets/s" in finding.reason
    assert "better by more than runs vary (p = " in finding.reason


def failing(share: float, begin: float = 0.0) -> tuple[Series, Series]:
    """Requests at 1000 a second, and what failed of them: bursts, so that most readings count none."""
    positions = np.arange(100.0)
    failed = np.floor(np.cumsum(np.where(positions % 10 == 5, 10 * 10_000 * share, 0.0)))
    return readings("load.failures", begin + failed, 10.0), readings("load.requests", 10_000 * positions, 10.0)


@pytest.mark.parametrize(("share", "expected"), [(0.0, Outcome.PASS), (0.00005, Outcome.PASS), (0.01, Outcome.FAIL)])
def test_failures_that_no_earlier_run_had(share: float, expected: Outcome) -> None:
    """1 % of failed requests in bursts fails against runs without any; one in 20 000 is nothing to compare runs by."""
    failed, requests = failing(share)
    earlier = tuple(failing(0.0, begin)[0] for begin in (0.0, 5.0, 9.0))
    case = Case("dut", "", Window(0, 1000 * S), (failed,), load=(requests,), before=Before(earlier=earlier))
    finding = RunDifference().judge(case)[0]
    assert finding.outcome is expected, finding.reason
    result = RunDifference().judge(replace(case, before=Before(earlier=earlier[:1])))[0]
    assert result.outcome is (Outcome.INCONCLUSIVE if share > 0.0001 else Outcome.PASS)


def test_failures_are_compared_by_their_mean() -> None:
    """Twice the failures of the runs before fail, though most readings count none; 5 % more of a trickle do not."""
    earlier = tuple(failing(share)[0] for share in (0.01, 0.0101, 0.0099, 0.01))
    for share, expected in ((0.02, Outcome.FAIL), (0.01, Outcome.PASS)):
        failed, requests = failing(share)
        case = Case("dut", "", Window(0, 1000 * S), (failed,), load=(requests,), before=Before(earlier=earlier))
        finding = RunDifference().judge(case)[0]
        assert finding.outcome is expected, finding.reason
        assert "requests/s" in finding.reason


@pytest.mark.parametrize(
    ("spread", "old", "new", "least"), [(0.02, 5, 1, 0.93), (0.02, 3, 1, 0.78), (0.05, 10, 3, 0.80)]
)
def test_regressions_of_ten_percent_are_found(spread: float, old: int, new: int, least: float) -> None:
    """10 % worse is found as often as stated, and no change is called one in at most 6 %."""
    rng = np.random.default_rng(11)
    count = wrong = 0
    for _ in range(500):
        before, after = 1 + spread * rng.standard_normal(old), 1 + spread * rng.standard_normal(new)
        worse, same = difference(before, 1.1 * after), difference(before, after)
        count, wrong = count + higher(worse), wrong + higher(same)
    assert count >= least * 500
    assert wrong <= 0.06 * 500


def test_smallest_detectable_is_found_in_four_of_five() -> None:
    """A change as large as stated on average is found in 70 to 95 % of comparisons."""
    rng = np.random.default_rng(5)
    result = [difference(1 + 0.05 * rng.standard_normal(10), 1 + 0.05 * rng.standard_normal(3)) for _ in range(200)]
    size = 1 + float(np.mean([d.smallest for d in result if d is not None and d.smallest is not None]))
    difference_s = [
        difference(1 + 0.05 * rng.standard_normal(10), size * (1 + 0.05 * rng.standard_normal(3))) for _ in range(500)
    ]
    assert 0.70 <= np.mean([higher(d) for d in difference_s]) <= 0.95


@pytest.mark.parametrize(
    ("old", "new"), [([], [1.0]), ([1.0], []), ([math.nan], [1.0]), ([0.0], [1.0]), ([1e-320], [1e308])]
)
def test_what_cannot_be_compared_is_none(old: list[float], new: list[float]) -> None:
    """Nothing, no number, zero, and what overflows give no difference."""
    assert difference(old, new) is None


def test_difference_does_not_depend_on_the_unit() -> None:
    """Bytes or gigabytes: the same ratios, also for huge numbers."""
    old, new = np.array([98.0, 100.0, 102.0]), np.array([112.0])
    difference_, two = difference(old, new), difference(old * 1e300, new * 1e300)
    assert difference_ is not None
    assert two is not None
    assert difference_.p == pytest.approx(two.p)
    assert difference_.spread == pytest.approx(two.spread)


def test_repeatability_states_what_few_runs_prove() -> None:
    """Three runs within ±15 % bound the standard deviation only by 4.4 times what was seen."""
    result = repeatability([100.0, 110.0, 95.0])
    assert result is not None
    assert (result.n, result.median, result.within) == (3, 100.0, True)
    assert result.worst == pytest.approx(0.1)
    assert result.sd_upper == pytest.approx(4.4154 * (result.sd or 0), rel=1e-3)
    assert [round(sd_factor(n), 2) for n in (2, 3, 5, 10)] == [15.95, 4.42, 2.37, 1.65]
    single = repeatability([5.0])
    assert single is not None
    assert (single.sd, single.sd_upper) == (None, None)
    assert repeatability([]) is None
    assert repeatability([0.0, 0.0]) is None
    wide = repeatability([100.0, 120.0, 100.0])
    assert wide is not None
    assert not wide.within


def test_history_dates_changes() -> None:
    """A rise at 15 and a fall at 40 are dated exactly, with their sizes; an odd run among them is none."""
    value = np.concatenate([np.full(15, 100.0), np.full(25, 112.0), np.full(20, 100.0)])
    value = value + np.random.default_rng(1).normal(0, 1, value.size)
    value[10] = 60.0
    matches = history(value)
    assert [p.index for p in matches] == [15, 40]
    assert [round(p.change, 2) for p in matches] == [0.12, -0.11]


def test_history_is_rarely_wrong() -> None:
    """Of 100 histories of 60 runs without a change at most 3 have a change point (spread 2 and 5 %)."""
    for spread in (0.02, 0.05):
        wrong = [bool(history(1 + spread * np.random.default_rng(seed).standard_normal(60))) for seed in range(100)]
        assert sum(wrong) <= 3


def test_history_sees_a_step_after_three_runs() -> None:
    """10 % at a spread of 2 % is dated to within a run in 95 of 100 histories of 30 runs and 3 new ones."""
    count = 0
    for seed in range(100):
        value = 1 + 0.02 * np.random.default_rng(seed).standard_normal(33)
        value[30:] *= 1.1
        count += any(abs(p.index - 30) <= 1 for p in history(value))
    assert count >= 95


@pytest.mark.parametrize(
    "values", [[], [1.0], [1.0, 2.0, 3.0], [0.0] * 20, [5.0] * 20, [math.nan] * 20, [1e308, -1e308] * 10]
)
def test_histories_without_a_change(values: list[float]) -> None:
    """Nothing, too little, constants, no numbers and huge ones have no change points and raise nothing."""
    assert history(values) == ()


def test_history_keeps_the_places_of_what_is_missing() -> None:
    """Runs without a number are left out; the index counts them."""
    value = [10.0, 10.1, math.nan, 9.9, 10.0, 10.05, math.nan, 12.0, 12.1, 11.9, 12.0, 12.05]
    assert [p.index for p in history(value)] == [7]


def test_long_histories_are_searched_in_pieces() -> None:
    """Changes in a history of 400 runs are found across the borders of pieces."""
    value = 1 + 0.01 * np.random.default_rng(2).standard_normal(400)
    for index in (50, 125, 250, 301):
        value[index:] *= 1.2
    assert [p.index for p in history(value)] == [50, 125, 250, 301]


def test_the_energy_statistic_by_hand() -> None:
    """Of 0, 0, 1, 1 the middle is the best split; its t test is certain, that of equals says nothing."""
    assert best_split(np.array([0.0, 0.0, 1.0, 1.0])) == 2
    assert probability(np.zeros(2), np.ones(2)) == 0.0
    assert probability(np.ones(2), np.ones(2)) == 1.0
    assert probability(np.array([1.0, 3.0]), np.array([2.0, 4.0])) == pytest.approx(0.5528, abs=1e-4)  # t = 0.7071, 2


def test_noise_within_runs_does_not_count() -> None:
    """Runs of correlated noise about one level are equal: the unit is the run."""
    result = [noise(seed, METRIC, 7200, 10.0, sd=0.02, phi=0.9) for seed in range(6)]
    case = Case("dut", PROCESS, Window(0, 7200 * S), (result[0],), before=Before(earlier=tuple(result[1:])))
    assert RunDifference().judge(case)[0].outcome is Outcome.PASS


@pytest.mark.parametrize(
    "bad", [{"settle": 1.0}, {"alpha": 0.5}, {"sure": 0.1}, {"tolerance": 0.2}, {"band": 0.0}, {"worth": math.nan}]
)
def test_parameters_that_mean_nothing_are_refused(bad: dict[str, float]) -> None:
    """Nonsense is refused with a sentence that names the rule."""
    with pytest.raises(ValueError, match="run_difference"):
        RunDifference(**bad)


OUTCOMES = """
runs                            | run_difference
no earlier run                  | N
one earlier run                 | I
five earlier, spread 2 %, same  | PIw
five earlier, spread 2 %, +10 % | FWI
five earlier, spread 2 %, -10 % | PWI
five earlier, spread 5 %, same  | PIw
five earlier, spread 5 %, +10 % | FWPI
five earlier, spread 5 %, +30 % | FWI
ten earlier, spread 2 %, same   | PIw
ten earlier, spread 2 %, +10 %  | FWI
"""
