"""Robust level, spread and slope: median, scaled median absolute deviation, Theil-Sen."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np

from soakwatch_model.series import Floats, Ints
from soakwatch_rules.stats.medians import median

_SOME: Final = 48  # values through which the robust line is drawn
_PARTS: Final = 400
_LEAST: Final = 3
MAD_TO_SIGMA = 1.4826
"""Ratio of the standard deviation of normal noise to its MAD (F. Hampel, JASA 69, 1974)."""


def robust(value: Floats) -> tuple[float, float]:
    """Median and robust sigma of at least one reading; sigma is 0 if over half are equal.

    >>> robust(np.array([1.0, 2.0, 3.0, 4.0, 1000.0]))
    (3.0, 1.4826)
    """
    middle = median(value)
    return middle, MAD_TO_SIGMA * median(np.abs(value - middle))


@lru_cache(maxsize=4)
def _pairs(number: int) -> tuple[Ints, Ints]:
    """The positions of all pairs of so many values."""
    first, other = np.triu_indices(number, 1)
    return first, other


def level_before_growth(value: Floats) -> float:
    """The level without the growth of the run: the median minus half of the rise of a robust line, at least the lowest
    block. The line is Theil-Sen's on about 48 blocks; without this a leak would raise the level that its tolerance is a
    share of."""
    middle, some = median(value), value[:: max(1, value.size // _SOME)]
    values, other = _pairs(some.size)
    rise = median((some[other] - some[values]) / (other - values)) * some.size
    return min(middle, max(middle - max(rise, 0.0) / 2, float(value.min())))


def net_change(value: Floats) -> float:
    """The change over a series: the median of its last sixteenth minus that of its first."""
    some = max(1, value.size // 16)
    return float(median(value[-some:]) - median(value[:some]))


def robust_slope(seconds: Floats, value: Floats) -> float | None:
    """The median slope of all pairs of readings, per second; None with fewer than three readings.

    More than 400 readings are replaced by the medians of 400 equal parts. Wrong for what grows in steps or falls back:
    for a sawtooth with few teeth it lies between the slope of a tooth and none. References: H. Theil, A rank-invariant
    method of linear and polynomial regression analysis, 1950; P. K. Sen, Estimates of the regression coefficient based
    on Kendall's tau, JASA 63, 1968.

    >>> robust_slope(np.arange(5.0), np.array([0.0, 2.0, 4.0, 600.0, 8.0]))
    2.0
    """
    if value.size > _PARTS:
        places = np.linspace(0, value.size, _PARTS + 1).astype(np.int64)
        pairs = [slice(a, b) for a, b in zip(places[:-1].tolist(), places[1:].tolist(), strict=True)]
        seconds = np.array([median(seconds[part]) for part in pairs])
        value = np.array([median(value[part]) for part in pairs])
    first, other = np.triu_indices(value.size, 1)
    apart = seconds[other] - seconds[first]
    usable = apart > 0
    if value.size < _LEAST or not usable.any():
        return None
    return median((value[other] - value[first])[usable] / apart[usable])
