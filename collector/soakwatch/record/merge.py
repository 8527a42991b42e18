"""Pieces of one series merged into one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from soakwatch.record.model import Ints, Values
from soakwatch_model.shared_times import strictly_rising


def in_time(times: Ints, values: Values) -> tuple[Ints, Values]:
    """Sort readings by time, and keep the first of several readings at one time."""
    if times.size > 1 and not strictly_rising(times):  # two sources bring it, or polls came late
        times, first = np.unique(times, return_index=True)
        values = values[first]
    return times, values


def between(times: Ints, values: Values, begin_ns: int | None, end_ns: int | None) -> tuple[Ints, Values]:
    """The readings with begin <= time < end, of readings that are sorted by time."""
    low = 0 if begin_ns is None else int(np.searchsorted(times, begin_ns))
    high = times.size if end_ns is None else int(np.searchsorted(times, end_ns))
    return times[low:high], values[low:high]


def unified(parts: Sequence[Values]) -> Values:
    """Join arrays: int64 or uint64 if all are integers and fit into one of the two, else float64."""
    if not parts:
        return np.empty(0, dtype=np.float64)
    kinds = {part.dtype.kind for part in parts}
    if len(parts) == 1:
        return parts[0]
    if "f" not in kinds:
        if kinds == {"i"}:
            return np.concatenate([part.astype(np.int64, copy=False) for part in parts])
        if all(part.dtype.kind == "u" or not part.size or part.min() >= 0 for part in parts):
            return np.concatenate([part.astype(np.uint64, copy=False) for part in parts])
        if all(part.dtype.kind == "i" or not part.size or part.max() < 2**63 for part in parts):
            return np.concatenate([part.astype(np.int64) for part in parts])
    joined: NDArray[np.float64] = np.concatenate([part.astype(np.float64, copy=False) for part in parts])
    return joined
