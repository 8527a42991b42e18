"""Level and spread that outliers do not move: median and scaled median absolute deviation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MAD_TO_SIGMA = 1.4826
"""Scale of the MAD of normal noise to its standard deviation (F. Hampel, JASA 69, 1974)."""


def robust(value: NDArray[np.float64]) -> tuple[float, float]:
    """Median and robust sigma of at least one reading, in its unit; sigma is 0 where over half are equal.

    >>> robust(np.array([1.0, 2.0, 3.0, 4.0, 1000.0]))
    (3.0, 1.4826)
    """
    middle = float(np.median(value))
    return middle, MAD_TO_SIGMA * float(np.median(np.abs(value - middle)))
