"""The slope of key figures: what it says of noise, outliers, teeth, many readings and too few."""

from __future__ import annotations

import numpy as np
import pytest

from soakwatch_rules.stats.robust_level import robust_slope


def test_outliers_and_noise_do_not_move_it() -> None:
    """A third of the readings is far off, the rest lies on a line with noise; gaps in time do not matter."""
    chance = np.random.default_rng(4)
    seconds = np.sort(chance.uniform(0, 1000, 300))
    value = 3.0 * seconds + chance.normal(0, 5, 300)
    value[::3] += chance.uniform(0, 1e6, 100) * chance.choice([-1, 1], 100)
    assert robust_slope(seconds, value) == pytest.approx(3.0, rel=0.05)


def test_many_readings_are_medians_of_parts() -> None:
    """A day of seconds has the slope of its line; of a saw of many teeth, which does not rise, it is none."""
    seconds = np.arange(86_400.0)
    assert robust_slope(seconds, 2.0 * seconds) == pytest.approx(2.0)
    assert robust_slope(seconds[:400], seconds[:400] % 10) == pytest.approx(0.0, abs=0.01)


def test_too_few_readings_have_none() -> None:
    """Two readings are no trend, nor are three at the same time."""
    assert robust_slope(np.array([0.0, 1.0]), np.array([0.0, 1.0])) is None
    assert robust_slope(np.zeros(3), np.arange(3.0)) is None
    assert robust_slope(np.arange(3.0), np.full(3, 7.0)) == 0.0
