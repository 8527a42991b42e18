"""Stages: a stretch cut into equal parts by time, each with mean and standard deviation, and two of them compared."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from soakwatch_model.series import Floats, Ints

_SIXTHS: Final = 6
_MIN_SAMPLES: Final = 8
_SURE: Final = 0.05


@dataclass(frozen=True, slots=True)
class Stage:
    """One part: ``mean`` and ``sd`` (divisor n - 1) of its readings, None if n is too small."""

    mean: float | None
    sd: float | None
    n: int


def stages(time_ns: Ints, value: Floats, begin_ns: int, end_ns: int, number: int = 3) -> tuple[Stage, ...]:
    """The parts of begin <= t < end, each ``1/number`` of the time, however many readings it has.

    Deviations are taken from the first reading, so that a constant has exactly that mean and a deviation of 0.
    """
    edges = [begin_ns + (end_ns - begin_ns) * part // number for part in range(number + 1)]
    positions = np.searchsorted(time_ns, edges)
    return tuple(_stage(value[positions[i] : positions[i + 1]]) for i in range(number))


def _stage(value: Floats) -> Stage:
    n = int(value.size)
    if n == 0:
        return Stage(None, None, 0)
    first = float(value[0])
    apart = value - first
    return Stage(first + float(apart.mean()), float(apart.std(ddof=1)) if n > 1 else None, n)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The first and the last stage; ``rise`` is positive in the bad direction, all in the readings' unit.

    ``allowed`` is the tolerated rise, ``spread`` the sum of the half widths of both intervals, ``smallest`` the rise
    that would have been found with 80 % power.
    """

    stages: tuple[Stage, Stage, Stage]
    first: float
    last: float
    sds: tuple[float, float]
    rise: float
    allowed: float
    spread: float
    smallest: float

    @property
    def crosses(self) -> bool:
        """Whether the intervals overlap."""
        return abs(self.rise) <= self.spread

    @property
    def grows(self) -> bool:
        """Whether the last lies above the first by more than the spread and what is allowed."""
        return self.rise > self.spread and self.rise > self.allowed


def compare(
    parts: tuple[Stage, ...], *, down: bool, tolerance: float, width: float, quantum: float | None
) -> Comparison | None:
    """Compares the first of three stages with the last; None if one has no spread, or on overflow.

    The smallest rise: a straight rise itself widens the stages, their variance by rise²/48 each, so that intervals of
    width k separate at spread / sqrt(1 - k²/12) in half of the cases; 0.84 standard errors of the difference (of both
    means and both deviations) make it 80 %. Too small for correlated readings, whose standard error is larger.
    """
    first, middle, last = parts
    if first.mean is None or last.mean is None or first.sd is None or last.sd is None:
        return None
    rise = (last.mean - first.mean) * (-1 if down else 1)
    allowed, spread = tolerance * abs(first.mean), width * (first.sd + last.sd)
    error = math.hypot(first.sd / math.sqrt(first.n), last.sd / math.sqrt(last.n)) * math.sqrt(1 + width**2 / 2)
    smallest = max(allowed, spread / math.sqrt(1 - width**2 / 12), quantum or 0.0) + 0.84 * error
    if not all(map(math.isfinite, (rise, allowed, smallest))):
        return None
    return Comparison(
        (first, middle, last), first.mean, last.mean, (first.sd, last.sd), rise, allowed, spread, smallest
    )


def still_rising(parts: tuple[Stage, ...], of: Comparison, *, down: bool) -> float:
    """The rise from the second-last part to the last as a share of the whole rise; NaN if unknown.

    A quarter for the sixths of a straight line, an eighth for its twelfths. With less than eight readings a part, or
    standard errors above a twentieth of the rise, twelfths say too little: NaN.
    """
    before, after = parts[-2:]
    if before.mean is None or after.mean is None or of.rise == 0:
        return math.nan
    if len(parts) > _SIXTHS:
        if before.sd is None or after.sd is None or min(before.n, after.n) < _MIN_SAMPLES:
            return math.nan
        if math.hypot(before.sd / math.sqrt(before.n), after.sd / math.sqrt(after.n)) > _SURE * abs(of.rise):
            return math.nan
    late = after.mean - before.mean
    return (-late if down else late) / of.rise
