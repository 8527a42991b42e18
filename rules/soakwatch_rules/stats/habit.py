"""Habits: what comes again and again from the start of a run to its end is the device's own way, not a fault in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_QUARTERS = 4
_OFTEN = 8
_EVEN = 5
_FEW = 3
ALIKE = 0.5
"""Of the length of a stretch: what lasts so long is alike."""
_EVENLY = 0.4  # of the median distance, between the shortest tenth and the longest
_NEAR = 1.2  # distances that the first may come late, and the run go on after the last


@dataclass(frozen=True, slots=True)
class Habit:
    """How many come from the start of the run to its end, and how far apart where they come evenly (else None).

    It is not ``sure`` where a short run shows few.
    """

    number: int
    every_s: float | None
    sure: bool


def habit(begin_s: Floats, above_s: Floats, lasting_s: float, whole_s: float) -> Habit | None:
    """Whether plateaus of at least half of ``lasting_s`` come in each quarter of the run.

    ``begin_s`` (from the begin of the run) and ``above_s`` are of all stretches at the top. Eight are asked for, each
    quarter with a third of its share; five will do where they come evenly, as by a timer, from one end of the run to
    the other, and three such are a habit that is not sure.

    >>> hourly = 1800 + 3600 * np.arange(24.0)
    >>> habit(hourly, np.full(24, 15.0), 15.0, 86400.0)
    Habit(number=24, every_s=3600.0, sure=True)
    >>> habit(hourly, np.full(24, 15.0), 40.0, 86400.0) is None
    True
    """
    begin = begin_s[above_s >= ALIKE * lasting_s]
    if begin.size < _FEW:
        return None
    gaps = np.diff(begin)
    middle = float(np.median(gaps))
    low, high = np.quantile(gaps, [0.1, 0.9]) if gaps.size >= _OFTEN else (gaps.min(), gaps.max())
    even = bool(high - low <= _EVENLY * middle)
    covers = begin[0] <= _NEAR * middle and whole_s - begin[-1] <= _NEAR * middle + lasting_s
    quarter = np.minimum((begin / whole_s * _QUARTERS).astype(np.int64), _QUARTERS - 1)
    present = np.bincount(quarter, minlength=_QUARTERS) * 3 * _QUARTERS >= begin.size
    every_s = middle if even else None
    if begin.size >= _OFTEN and bool(present.all()):
        return Habit(int(begin.size), every_s, sure=True)
    return Habit(int(begin.size), every_s, sure=begin.size >= _EVEN) if even and covers else None
