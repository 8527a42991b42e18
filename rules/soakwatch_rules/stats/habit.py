"""Recurrence: what occurs from the start of a run to its end is the device's normal behaviour, not a fault in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from soakwatch_model.series import Floats
from soakwatch_rules.stats.medians import median

_QUARTERS = 4
_OFTEN = 8
_EVEN = 5
_MIN_BEGINS = 3
ALIKE = 0.5
"""Share of a plateau's length from which another one is alike."""
_EVENLY = 0.4  # share of the median distance within which the middle 80 % of the distances lie
_MAX_UNEVEN_GAPS = 0.15  # the same for few distances, within which all of them lie
_LESS_ALIKE = 0.25  # the same as ALIKE for a recurrence that is not sure
_MAX_UNSURE_BEGINS = 24
_NEAR = 1.2  # distances by which the first may be late, and the run go on after the last


@dataclass(frozen=True, slots=True)
class Habit:
    """How many occur from the start of the run to its end, and their distance if it is even (else None); not ``sure``
    if a short run shows few."""

    number: int
    every_s: float | None
    sure: bool


def habit_of(begin_s: Floats, above_s: Floats, lasting_s: float, whole_s: float) -> Habit | None:
    """Whether plateaus of at least half of ``lasting_s`` occur in each quarter of the run.

    ``begin_s`` (from the start of the run) and ``above_s`` are those of all stretches at the maximum. It takes eight,
    in each quarter at least a third of its share; or five at even distances from one end of the run to the other. Three
    such, even of a quarter of the length, are a recurrence that is not sure.

    >>> hourly = 1800 + 3600 * np.arange(24.0)
    >>> habit_of(hourly, np.full(24, 15.0), 15.0, 86400.0)
    Habit(number=24, every_s=3600.0, sure=True)
    >>> habit_of(hourly, np.full(24, 15.0), 40.0, 86400.0) is None
    True
    """
    begin = begin_s[above_s >= ALIKE * lasting_s]
    if begin.size >= _OFTEN:
        quarter = np.minimum((begin / whole_s * _QUARTERS).astype(np.int64), _QUARTERS - 1)
        if bool((np.bincount(quarter, minlength=_QUARTERS) * 3 * _QUARTERS >= begin.size).all()):
            return Habit(int(begin.size), _even(begin), sure=True)
    if begin.size >= _EVEN and (every_s := _throughout(begin, lasting_s, whole_s)):
        return Habit(int(begin.size), every_s, sure=True)
    begin = begin_s[above_s >= _LESS_ALIKE * lasting_s]
    if _MIN_BEGINS <= begin.size < _MAX_UNSURE_BEGINS and (every_s := _throughout(begin, lasting_s, whole_s)):
        return Habit(int(begin.size), every_s, sure=False)
    return None


def _even(begin_s: Floats) -> float | None:
    """The median distance, if (nearly) all distances are close to it; else None."""
    gaps = np.diff(begin_s)
    middle = median(gaps)
    if gaps.size >= _OFTEN:
        low, high = np.quantile(gaps, [0.1, 0.9]).tolist()
        return middle if high - low <= _EVENLY * middle else None
    return middle if float(gaps.max() - gaps.min()) <= _MAX_UNEVEN_GAPS * middle else None


def _throughout(begin_s: Floats, lasting_s: float, whole_s: float) -> float | None:
    """The distance, if the begins are even from one end of the run to the other; else None."""
    every_s = _even(begin_s)
    if every_s is None or begin_s[0] > _NEAR * every_s or whole_s - begin_s[-1] > _NEAR * every_s + lasting_s:
        return None
    return every_s
