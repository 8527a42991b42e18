"""Since when a series grows: right within a hundredth of the run in noise, and silent where it grew from the begin."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from soakwatch_model.series import Floats
from soakwatch_rules.stats import onset
from soakwatch_rules.stats.onset import onset_s

DAY_S = 86_400.0


def night(onset: float, size: float, noise: float, seed: int) -> tuple[Floats, Floats]:
    """A day at a minute that grows by a share of its level from a share of the day on, in noise that remembers."""
    rng = np.random.default_rng(seed)
    at: Floats = np.arange(1440, dtype=np.float64) * 60.0
    remembers = lfilter([0.1], [1, -0.95], rng.normal(size=at.size)) * noise
    grows = size * np.maximum(at - onset * DAY_S, 0) / (DAY_S * (1 - onset))
    return at, np.asarray(100 * (1 + remembers + grows), dtype=np.float64)


@pytest.mark.parametrize("onset", [0.1, 0.3, 0.5, 0.7])
def test_the_begin_of_a_leak_is_known(onset: float) -> None:
    for seed in range(10):
        found = onset_s(*night(onset, 0.3, 0.006, seed))
        assert found is not None
        assert abs(found / DAY_S - onset) < 0.02


def test_what_grows_from_the_begin_has_the_first_reading() -> None:
    for seed in range(10):
        assert onset_s(*night(0.0, 0.3, 0.006, seed)) == 0.0


def test_a_step_has_its_own_moment() -> None:
    at, value = night(0.5, 0.0, 0.002, 1)
    found = onset_s(at, np.where(at >= 0.6 * DAY_S, value * 1.3, value))
    assert found is not None
    assert abs(found / DAY_S - 0.6) < 0.01


def test_falling_is_growing_downwards_and_little_is_not_enough() -> None:
    at, value = night(0.5, 0.3, 0.002, 1)
    assert onset_s(at, -value) == pytest.approx(onset_s(at, value))
    assert onset_s(at[:20], value[:20]) is None
    assert onset_s(at, np.full(at.size, 7.0)) is None


def _searched(time_s: Floats, value: Floats) -> tuple[float, float]:
    """The place of the best bend and of the best step, each the first of the least squares among a fit for each."""
    cuts = np.array_split(np.arange(value.size), 240)
    x = np.array([float(time_s[cut].mean()) for cut in cuts]) / float(time_s[-1])
    y = np.array([float(np.median(value[cut])) for cut in cuts])
    places = np.array([time_s[cut[0]] for cut in cuts]) / float(time_s[-1])
    places = places[(places > 0.02) & (places < 0.97)]
    level = np.ones_like(x)
    bends = [_squares(np.stack([level, x, np.maximum(x - place, 0.0)]), y) for place in places]
    steps = [_squares(np.stack([level, (x > place).astype(np.float64)]), y) for place in places]
    return float(places[int(np.argmin(bends))]), float(places[int(np.argmin(steps))])


def _squares(basis: Floats, y: Floats) -> float:
    rest = y - basis.T @ np.linalg.lstsq(basis.T, y, rcond=None)[0]
    return float(rest @ rest)


@pytest.mark.parametrize("noise", [0.0, 1e-9, 0.002])
def test_the_moment_is_that_of_a_fit_at_every_place(noise: float, monkeypatch: pytest.MonkeyPatch) -> None:
    fits: list[tuple[float, float]] = []
    plain = onset._best

    def best(places: Floats, basis: object, y: Floats) -> onset._Fit:
        found = plain(places, basis, y)  # type: ignore[arg-type]
        fits.append((found.place, float(places.size)))
        return found

    monkeypatch.setattr(onset, "_best", best)
    for seed, level in enumerate((1e-3, 1.0, 1e9)):
        at, value = night(0.2 + 0.2 * seed, 0.3, noise, seed)
        value = level * np.where(at >= 0.8 * DAY_S, 1.05 * value, value)
        fits.clear()
        onset_s(at, value)
        (bend, bends), (step, steps) = fits
        assert (bend, step) == _searched(at, value)
        assert max(bends, steps) <= 12  # of 228 places: a fit each takes a tenth of judging
