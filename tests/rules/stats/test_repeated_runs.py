"""Statistics of repeated runs: what they hold, what they refuse to say, and how seldom they are wrong."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from tests.bench.accuracy.repeated import claims, distributions, held, outcomes
from tests.rules.draws import seeds

from soakwatch_rules.stats.difference import by_parts, by_ranks, by_t, corrected, holm
from soakwatch_rules.stats.repetitions import fewest, median_interval, repetitions_needed, tolerance_proven

KINDS = distributions()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [6, 10, 20])
@pytest.mark.parametrize("draws", seeds(100, 500))
def test_intervals_hold_the_median(draws: range, kind: str, n: int) -> None:
    """At least 93 of 100, of any distribution: the interval promises 95."""
    assert held(KINDS[kind], n, len(draws)) >= 0.93 * len(draws)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("draws", seeds(60, 400))
def test_equal_builds_are_seldom_called_different(draws: range, kind: str) -> None:
    """At most 7 of 100 (5 are promised), and the interval of the ratio holds 1."""
    said = outcomes(KINDS[kind], 8, 1.0, len(draws))
    assert said["significant"] <= 0.07 * len(draws)
    assert said["held"] >= 0.93 * len(draws)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("draws", seeds(60, 400))
def test_a_change_is_found_and_one_of_the_margin_is_seldom_equivalent(draws: range, kind: str) -> None:
    """A tenth less is found by four runs each; a build at the margin passes for equivalent in at most 7 of 100."""
    assert outcomes(KINDS[kind], 4, 0.9, len(draws) // 2)["worse"] >= 0.9 * (len(draws) // 2)
    assert outcomes(KINDS[kind], 8, 0.97, len(draws))["equivalent"] <= 0.07 * len(draws)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("draws", seeds(50, 250))
def test_a_claim_at_its_limit_is_seldom_proven(draws: range, kind: str) -> None:
    """At most 4 of 100 (2.5 are promised), and one that is far off is refuted."""
    assert claims(KINDS[kind], 10, 0.05, len(draws))["proven"] <= 0.04 * len(draws)
    assert claims(KINDS[kind], 10, 0.1, 4 * len(draws) // 5)["refuted"] >= 0.9 * (4 * len(draws) // 5)


def test_fewer_than_six_runs_have_no_interval() -> None:
    """The least are six at 95 %, and what the smallest and largest of five would hold is told."""
    interval = median_interval([5.0, 1.0, 4.0, 2.0, 3.0])
    assert (interval.low, interval.high, interval.half_width) == (None, None, None)
    assert interval.confidence == pytest.approx(0.9375)
    assert fewest(0.95) == 6
    assert median_interval([5.0, 1.0, 4.0, 2.0, 3.0], 0.9).low == 1.0


def test_what_is_no_number_does_not_count_and_nothing_is_an_error() -> None:
    """NaN is no run; without any there is no answer but an error."""
    assert median_interval([math.nan, 2.0]).n == 1
    for call in (
        lambda: median_interval([]),
        lambda: median_interval([1.0], 1.0),
        lambda: repetitions_needed([math.nan], 0.1),
        lambda: repetitions_needed([1.0], 0.0),
        lambda: tolerance_proven([1.0], 0.0, 0.1),
        lambda: by_ranks([], [1.0], 0.1),
        lambda: by_ranks([1.0], [1.0], 0.0),
        lambda: by_parts([1.0] * 5, [1.0] * 5, 0.1),
        lambda: by_parts([1.0] * 6, [1.0] * 7, 0.1),
    ):
        with pytest.raises(ValueError, match=r"\w"):
            call()


def test_repetitions_are_the_mean_over_all_subsets() -> None:
    """What CONFIRM draws at random is the mean over every subset: counted out for eight runs, each subset of six."""
    runs = [100.0, 103.0, 98.0, 101.0, 99.5, 100.5, 97.0, 104.0]
    subsets = list(combinations(sorted(runs), 6))
    middle = float(np.median(runs))
    low, high = (float(np.mean([subset[end] for subset in subsets])) for end in (0, 5))
    width = max(high - middle, middle - low) / middle
    assert repetitions_needed(runs, width * 1.0001) == 6
    assert repetitions_needed(runs, width * 0.999) != 6


def test_what_runs_cannot_tell_is_none() -> None:
    """Two to five runs are an estimate by their coefficient of variation; one run, a median of 0, and more than are
    thought of have no number."""
    assert repetitions_needed([100.0, 101.0, 99.0], 0.01) == 9
    assert repetitions_needed([100.0], 0.01) is None
    assert repetitions_needed([100.0, 150.0, 50.0], 0.05, at_most=50) is None
    assert repetitions_needed([-1.0, 1.0], 0.01) is None
    assert repetitions_needed([7.0] * 6, 0.01) == 6


def test_a_claim_is_proven_refuted_or_open() -> None:
    """Within, outside, across."""
    runs = [98.0, 101.0, 100.0, 102.0, 99.0, 100.5]
    proven = tolerance_proven(runs, 100.0, 0.15)
    assert (proven.verdict, proven.further) == ("proven", None)
    assert tolerance_proven(runs, 130.0, 0.15).verdict == "refuted"
    open_ = tolerance_proven(runs, 100.0, 0.01)
    assert (open_.verdict, open_.further is None) == ("not decided", False)
    assert tolerance_proven([-98.0, -101.0] * 4, -100.0, 0.15).verdict == "proven"


def test_one_run_each_is_undecided_and_says_what_would_prove_it() -> None:
    """Three releases with a number each: no verdict, but how alike runs have to be for four each to prove it."""
    loss = by_ranks([7_414_833.0], [8_029_181.0], 0.02)
    assert (loss.outcome, loss.spread) == ("undecided", None)
    assert loss.change == pytest.approx(0.92348 - 1, abs=1e-5)
    assert "4 each prove it if the coefficient of variation of runs is at most 3.3 %" in loss.reason
    same = by_ranks([7_414_833.0], [7_383_070.0], 0.02)
    assert same.outcome == "undecided"
    assert "4 each prove ± 2 % if the coefficient of variation" in same.reason


def test_the_number_of_runs_given_is_enough_in_four_of_five_cases() -> None:
    """Runs drawn as many times as the reason says find the difference that was seen."""
    asked = by_ranks([0.96 * 0.98, 0.96 * 1.02], [0.98, 1.02], 0.01)
    needed = int(asked.needs.removeprefix("about ").split()[0])
    assert asked.spread == pytest.approx(0.0283, abs=1e-4)
    rng = np.random.default_rng(5)
    found = sum(
        by_ranks(0.96 * rng.normal(1, 0.0283, needed), rng.normal(1, 0.0283, needed), 0.01).judged("higher") == "worse"
        for _ in range(300)
    )
    assert 0.74 * 300 <= found <= 0.95 * 300


def test_the_tests_are_those_of_scipy() -> None:
    """The exact rank test without ties, the permutation test with ties, and the pooled t test: the same p."""
    from scipy import stats

    rng = np.random.default_rng(3)
    for n, m in ((2, 3), (4, 4), (5, 7), (12, 9)):
        x, y = rng.normal(1.0, 0.1, n), rng.normal(1.02, 0.1, m)
        expected = float(stats.mannwhitneyu(x, y, method="exact").pvalue)
        assert by_ranks(x, y, 0.02).p == pytest.approx(expected, rel=1e-9)
        t = by_t(x, y, 0.02)
        assert t is not None
        assert 2 * t.p == pytest.approx(float(stats.ttest_ind(x, y).pvalue), rel=1e-9)
    x, y = np.array([1.0, 2.0, 2.0, 3.0]), np.array([2.0, 3.0, 3.0, 4.0, 4.0])
    ties = stats.mannwhitneyu(x, y, method=stats.PermutationMethod(n_resamples=1000))
    assert by_ranks(x, y, 0.02).p == pytest.approx(float(ties.pvalue), rel=1e-9)


def test_directions_and_zeros() -> None:
    """Less is better for latency and loss; without a direction it is different; nothing against nothing is equal."""
    low, high = [1.0, 1.1, 0.9, 1.05], [2.0, 2.1, 1.9, 2.05]
    assert by_ranks(low, high, 0.05).judged("lower") == "better"
    assert by_ranks(low, high, 0.05).judged("higher") == "worse"
    assert by_ranks(low, high, 0.05).judged("") == "different"
    none = by_ranks([0.0] * 4, [0.0] * 4, 0.05)
    assert (none.judged("lower"), none.change) == ("equivalent", None)
    assert by_ranks(low, [0.0] * 4, 0.05).judged("lower") == "worse"
    assert by_ranks([0.0] * 4, high, 0.05).judged("lower") == "better"
    slopes = by_ranks([-1.0, -2.0, -1.5, -1.2], [-3.0, -4.0, -3.2, -3.1], 0.05)
    assert slopes.judged("higher") == "better"


def test_many_cells_need_more_runs() -> None:
    """Holm: what four runs each prove alone they cannot prove among twelve, and the answer says how many can."""
    cell = by_ranks([92.0, 92.4, 91.8, 92.2], [100.0, 100.3, 99.8, 100.1], 0.02)
    assert cell.outcome == "different"
    among = corrected([cell] * 12)
    assert {each.outcome for each in among} == {"undecided"}
    assert among[0].needs.startswith("about 6 each prove it")
    assert corrected(()) == ()
    assert holm([]) == []
    adjusted = holm([0.04, math.nan, 0.01])
    assert adjusted[0] == pytest.approx(0.04)
    assert math.isnan(adjusted[1])
    assert adjusted[2] == pytest.approx(0.02)
