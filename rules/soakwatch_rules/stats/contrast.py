"""Contrast: how much higher a value is while a condition holds than just before and after."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from soakwatch_model.series import Floats, Mask
from soakwatch_rules.stats.ar1 import power
from soakwatch_rules.stats.distributions import student_quantile

_LEAST: Final = 3  # values needed on each side
_NEAR: Final = 6  # values beside a stretch that are compared at least
_MAX_RHO: Final = 0.95
_BETWEEN: Final = 3  # stretches from which their own spread counts


@dataclass(frozen=True, slots=True)
class Contrast:
    """The mean effect of some stretches, its standard error, and that error's degrees of freedom.

    ``calm`` and ``raised`` are the mean levels; ``before`` and ``after`` the mean effects compared with one side only,
    None if no stretch had that side.
    """

    effect: float
    error: float
    freedom: float
    stretches: int
    values: int
    calm: float
    raised: float
    before: float | None
    after: float | None

    def low(self, risk: float) -> float:
        """The bound that lies above the true effect with probability ``risk``."""
        return self.effect - self._half(risk)

    def high(self, risk: float) -> float:
        """The bound that lies below the true effect with probability ``risk``."""
        return self.effect + self._half(risk)

    def detectable(self, risk: float) -> float:
        """The effect beyond a limit that is found with 80 % power at this risk."""
        return power(risk, self.freedom) * self.error if self.error > 0 else 0.0

    def _half(self, risk: float) -> float:
        return student_quantile(self.freedom, 1 - risk) * self.error if self.error > 0 else 0.0


def stretches(raised: Mask, calm: Mask) -> list[tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]]:
    """The indexes of each stretch of raised bins, and of the calm bins before and after it: as many as the stretch has,
    at least six. Bins that are neither do not interrupt a stretch.

    >>> [tuple(part.tolist() for part in parts) for parts in stretches(np.array([0, 0, 1, 1, 0]) > 0,
    ...                                                               np.array([1, 1, 0, 0, 1]) > 0)]
    [([0, 1], [2, 3], [4])]
    """
    known = np.flatnonzero(raised | calm)
    high = raised[known]
    edges = [0, *(np.flatnonzero(high[1:] != high[:-1]) + 1).tolist(), known.size]
    parts = [known[begin:end] for begin, end in pairwise(edges) if begin < end]
    empty = known[:0]
    result = []
    for i, part in enumerate(parts):
        if raised[part[0]]:
            near = max(part.size, _NEAR)
            before = parts[i - 1][-near:] if i else empty
            after = parts[i + 1][:near] if i + 1 < len(parts) else empty
            result.append((before, part, after))
    return result


def contrast(value: Floats, raised: Mask, calm: Mask) -> Contrast | None:
    """The effect of being raised on evenly spaced values, ignoring NaN; None without three values on both sides.

    Each stretch is compared with the mean of the calm values before and after it, so a straight trend cancels. Errors
    are AR(1)-correlated within a stretch (lag-1 correlation with the bias (1 + 4 rho)/n of Marriott and Pope, 1954),
    with separate variances for both sides. From three stretches on, the spread between them counts if it is larger,
    with its own degrees of freedom.
    """
    good = np.isfinite(value)
    sides = [
        parts
        for parts in stretches(raised & good, calm & good)
        if parts[1].size and parts[0].size + parts[2].size >= _LEAST
    ]
    number = sum(parts[1].size for parts in sides)
    if number < _LEAST:
        return None
    factor, variance = _memory(value, sides)
    effects, befores, afters, calms, highs = [], [], [], [], []
    spread = 0.0
    # Each stretch is compared with the calm values beside it.
    for before, part, after in sides:
        level = float(value[part].mean())
        near = [group for group in (before, after) if group.size >= min(_LEAST, before.size + after.size)]
        means = [float(value[group].mean()) for group in near]
        effects.append(level - float(np.mean(means)))
        calms.append(float(np.mean(means)))
        highs.append(level)
        befores += [level - float(value[before].mean())] if before.size >= _LEAST else []
        afters += [level - float(value[after].mean())] if after.size >= _LEAST else []
        spread += variance[1] / part.size + sum(variance[0] / group.size for group in near) / len(near) ** 2
    count = len(sides)
    error = math.sqrt(factor * spread) / count
    total = sum(part.size for parts in sides for part in parts)
    freedom = max(total / factor - 3 * count, 2.0)
    # The stretches may differ by more than the noise within them.
    if count >= _BETWEEN and (between := float(np.std(effects, ddof=1)) / math.sqrt(count)) > error:
        error, freedom = between, float(count - 1)
    return Contrast(
        float(np.mean(effects)),
        error,
        freedom,
        count,
        total,
        float(np.mean(calms)),
        float(np.mean(highs)),
        float(np.mean(befores)) if befores else None,
        float(np.mean(afters)) if afters else None,
    )


def _memory(
    value: Floats, sides: list[tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]]
) -> tuple[float, tuple[float, float]]:
    """How many values equal one independent value, and the variances of the calm and of the raised ones."""
    products, squares, pairs, total = 0.0, 0.0, 0, 0
    sums, freedom = [0.0, 0.0], [0, 0]
    for parts in sides:
        for place, part in enumerate(parts):
            if part.size < 2:
                continue
            rest = value[part] - value[part].mean()
            products += float(rest[1:] @ rest[:-1])
            squares += float(rest @ rest)
            pairs += part.size - 1
            total += part.size
            sums[place == 1] += float(rest @ rest)
            freedom[place == 1] += part.size - 1
    both = sum(sums) / max(sum(freedom), 1)
    variance = tuple(sums[i] / freedom[i] if freedom[i] >= _LEAST else both for i in (0, 1))
    rho = 0.0
    if squares > 0 and pairs:
        seen = products / squares * total / pairs
        rho = min(max(seen + (1 + 4 * max(seen, 0.0)) / total, 0.0), _MAX_RHO)
    return (1 + rho) / (1 - rho), (variance[0], variance[1])
