"""Medians, the same as numpy's, bit for bit, in a tenth of the time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from soakwatch_model.series import Floats

_FEW: Final = 256  # values that are sorted as fast as they are divided


def median(values: NDArray[np.floating | np.integer] | Sequence[float]) -> float:
    """The median of numbers, in their unit; NaN if there are none, or one of them is NaN.

    numpy's own asks its partition for two or three places at once, which takes a slow path: one place is found with the
    vector instructions of the processor.

    >>> median([3.0, 1.0, 2.0]), median([4, 1, 3, 2]), median([])
    (2.0, 2.5, nan)
    """
    ordered = np.array(values).reshape(-1)
    size = ordered.size
    if not size:
        return math.nan
    half = size // 2
    if size <= _FEW:
        ordered.sort()
        last, low = ordered[-1], ordered[half - 1 + size % 2]
    else:
        ordered.partition(half)
        last = ordered[half:].max()
        low = ordered[half] if size % 2 else ordered[:half].max()
    return math.nan if last != last else (float(low) + float(ordered[half])) / 2  # noqa: PLR0124 - only NaN differs


def row_medians(rows: Floats) -> Floats:
    """The median of each row; a row with NaN has none (NaN). Rows have at least one value.

    >>> row_medians(np.array([[3.0, 1.0, 2.0], [5.0, np.nan, 4.0]])).tolist()
    [2.0, nan]
    """
    ordered = np.array(rows)
    size = ordered.shape[1]
    half = size // 2
    if size <= _FEW:
        ordered.sort(axis=1)
        last, low = ordered[:, -1], ordered[:, half - 1 + size % 2]
    else:
        ordered.partition(half, axis=1)
        last = ordered[:, half:].max(axis=1)
        low = ordered[:, half] if size % 2 else ordered[:, :half].max(axis=1)
    result: Floats = np.where(np.isnan(last), np.nan, (low + ordered[:, half]) / 2)
    return result
