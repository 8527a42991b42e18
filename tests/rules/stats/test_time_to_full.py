"""Time to full: the bound holds, the time is given only for growth, and waves, falls and coarse sources widen it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from soakwatch_rules.stats.mtbf import proved_mtbf
from soakwatch_rules.stats.time_to_full import FARTHEST_S, TimeToFull, time_to_full

Floats = NDArray[np.float64]
DAY = 86400.0
T: Floats = np.arange(0.0, DAY, 60.0)


def full(value: Floats, unseen: float = 0.0, limit: float = 100.0) -> TimeToFull:
    """A day of readings, each minute."""
    found = time_to_full(T[: value.size], value, limit, span_s=(0.0, value.size * 60.0), unseen=unseen)
    assert found is not None
    return found


def noise(seed: int, tall: float = 0.5, keeps: float = 0.0, n: int = T.size) -> Floats:
    """AR(1) of this deviation."""
    white = np.random.default_rng(seed).standard_normal(n)
    if not keeps:
        return tall * white
    value, last = np.empty(n), float(white[0])
    for place, fresh in enumerate(white):
        last = keeps * last + math.sqrt(1 - keeps * keeps) * float(fresh)
        value[place] = tall * last
    return value


@pytest.mark.parametrize("keeps", [0.0, 0.9, 0.98], ids=["white", "AR .9", "AR .98"])
def test_the_bound_holds_in_19_of_20_lines(keeps: float) -> None:
    """100 lines of known slope under noise: the limit is reached by the line before the bound in at most 8."""
    early = 0
    for seed in range(100):
        truth_s = 59 * DAY  # 40 + 1 a day reaches 100 after 60 days, one of which is the run
        early += full(40 + T / DAY + noise(seed, keeps=keeps)).not_before_s > truth_s
    assert early <= 8


def test_noise_alone_is_never_full_in() -> None:
    """No time is given for a level without growth in 19 of 20; the bound is far, and nearer for more noise."""
    flat = [full(40 + noise(seed, keeps=0.9)) for seed in range(60)]
    assert sum(each.after_s is not None for each in flat) <= 6
    assert float(np.median([full(40 + noise(s, 2.0)).not_before_s for s in range(20)])) < float(
        np.median([full(40 + noise(s, 0.2)).not_before_s for s in range(20)])
    )


def test_a_wave_is_taken_out_and_its_crest_is_what_is_full() -> None:
    """A daily wave hides no growth, and the time is that at which its crest reaches the limit."""
    swing = 5 * np.sin(2 * np.pi * (T / DAY + 0.3))
    found = full(40 + T / DAY + swing + noise(1, 0.1))
    assert found.wave
    assert found.after_s == pytest.approx(54 * DAY, rel=0.03)  # 60 less 5 for the crest, less the run
    assert found.not_before_s <= 54 * DAY


def test_half_of_a_wave_that_falls_may_rise_again() -> None:
    """In half a day a falling level is no proof that nothing fills: the bound is that of as steep a rise."""
    half = T[:720]
    found = time_to_full(half, 50 - 10 * half / DAY, 100.0, span_s=(0.0, DAY / 2))
    assert found is not None
    assert found.not_before_s < 6 * DAY
    assert full(50 - 10 * T / DAY).not_before_s == FARTHEST_S


def test_a_warm_up_is_not_full_in() -> None:
    """What slows down is given a bound and no time."""
    for seed in range(10):
        assert full(40 + 8 * (1 - np.exp(-T / 10_000)) + noise(seed, 0.05)).after_s is None


def test_what_a_coarse_source_cannot_show_is_counted_as_growth() -> None:
    """Constant readings of whole percents may hide a percent a day."""
    assert full(np.full(T.size, 40.0)).not_before_s == FARTHEST_S
    assert full(np.full(T.size, 40.0), unseen=1.0).not_before_s == pytest.approx(59.5 * DAY, rel=0.01)


def test_full_already_and_too_little() -> None:
    """At the limit nothing is left; of a few readings nothing is said."""
    there = full(np.minimum(99.5 + T / DAY, 100.0))
    assert (there.after_s, there.not_before_s) == (0.0, 0.0)
    assert time_to_full(T[:10], T[:10], 100.0, span_s=(0.0, 600.0)) is None
    assert time_to_full(T, T / DAY, 0.0, span_s=(0.0, DAY)) is None


def test_hours_without_a_failure_prove_a_third_of_themselves() -> None:
    """The bound of r failures is not crossed in 95 % of such tests: simulated with the mean at the bound."""
    assert proved_mtbf(72.0, 0) == pytest.approx(72.0 / -math.log(0.05))
    rng = np.random.default_rng(1)
    counts = rng.poisson(100.0 / 33.0, 20_000)  # a true MTBF of 33 h, watched for 100 h
    held = np.mean([proved_mtbf(100.0, int(r)) <= 33.0 for r in counts])
    assert 0.94 <= held <= 0.96


@pytest.mark.parametrize("ends", [0.55, 0.7, 0.8, 0.9, 1.0])
def test_readings_that_end_before_the_window_are_carried_on_from_their_end(ends: float) -> None:
    """A value that is no longer read, and bends before: its last straight part is a quarter of what there is."""
    t = np.arange(0.0, ends * DAY, 60.0)
    bent = 50 - 20 * np.exp(-t / (0.05 * DAY)) + 0.01 * np.random.default_rng(5).standard_normal(t.size)
    found = time_to_full(t, bent, 100.0, span_s=(0.0, DAY))
    assert found is not None
    assert found.not_before_s > DAY
