"""Level and spread that outliers do not move: median and scaled median absolute deviation."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

_SOME: Final = 48  # values that the robust line is drawn through
MAD_TO_SIGMA = 1.4826
"""Scale of the MAD of normal noise to its standard deviation (F. Hampel, JASA 69, 1974)."""


def robust(value: NDArray[np.float64]) -> tuple[float, float]:
    """Median and robust sigma of at least one reading, in its unit; sigma is 0 where over half are equal.

    >>> robust(np.array([1.0, 2.0, 3.0, 4.0, 1000.0]))
    (3.0, 1.4826)
    """
    middle = float(np.median(value))
    return middle, MAD_TO_SIGMA * float(np.median(np.abs(value - middle)))


def level_before_growth(value: NDArray[np.float64]) -> float:
    """The level without the growth of the run: its median less half of what a robust straight line rises.

    Never below the lowest block. The line is that of Theil and Sen on about 48 blocks; without it a leak would raise
    the level that its tolerance is a share of.
    """
    middle, some = float(np.median(value)), value[:: max(1, value.size // _SOME)]
    values, other = np.triu_indices(some.size, 1)
    rise = float(np.median((some[other] - some[values]) / (other - values))) * some.size
    return min(middle, max(middle - max(rise, 0.0) / 2, float(value.min())))
