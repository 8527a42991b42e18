"""Stretches with hysteresis: opened by a high reading, closed by a low one."""

from __future__ import annotations

import numpy as np

from soakwatch_model.series import Floats, Ints


def stretches(value: Floats, enter: float, leave: float) -> Ints:
    """Index pairs [open, close), shape (k, 2): open at a reading >= enter, close at the next reading < leave.

    A stretch that does not close ends with the readings. A plateau that wavers around ``enter`` is one stretch.

    >>> stretches(np.array([0.1, 0.96, 0.9, 0.97, 0.2, 0.99]), 0.95, 0.85).tolist()
    [[1, 4], [5, 6]]
    """
    high, low = np.flatnonzero(value >= enter), np.flatnonzero(value < leave)
    if not high.size:
        return np.empty((0, 2), dtype=np.int64)
    after = np.searchsorted(low, high)
    after, first = np.unique(after, return_index=True)
    close = np.append(low, value.size)[after]
    pairs: Ints = np.stack([high[first], close], axis=1).astype(np.int64)
    return pairs
