"""Finds impossible values of a metric, and clips shares slightly outside 0 to 100 %."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from soakwatch.record.model import Values
from soakwatch_model.metric import BY_NAME, slack_of


def possible(metric: str, value: Values) -> tuple[Values, NDArray[np.bool_], int]:
    """Returns the readings, with shares slightly out of range clipped; which are possible; how many were clipped.

    >>> value, good, clipped = possible("system.cpu.utilization", np.array([0.5, 1.012, 1.2, -0.1]))
    >>> value.tolist(), good.tolist(), clipped
    ([0.5, 1.0, 1.2, -0.1], [True, True, False, False], 1)
    >>> possible("system.memory.usage", np.array([-1.0, 1e9]))[1].tolist()
    [False, True]
    """
    entry, slack = BY_NAME.get(metric), slack_of(metric)
    good: NDArray[np.bool_] = np.isfinite(value)
    if entry is None:
        return value, good, 0
    outside = np.zeros(value.shape, dtype=bool)
    if entry.low is not None:
        good &= value >= entry.low - slack
        outside |= value < entry.low
    if entry.high is not None:
        good &= value <= entry.high + slack
        outside |= value > entry.high
    outside &= good
    if not bool(outside.any()):
        return value, good, 0
    return np.where(outside, np.clip(value, entry.low, entry.high), value), good, int(outside.sum())
