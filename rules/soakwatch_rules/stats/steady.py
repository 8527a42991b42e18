"""Steady rises: whether evenly spaced values rise throughout, and by how much; cheap enough for every series."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from soakwatch_model.series import Floats
from soakwatch_rules.stats.medians import median

_THIRD: Final = 1.5  # the middles of the outer thirds are two thirds of the run apart
_PARTS: Final = 8
_LATE: Final = 0.25  # least share of the rise in the second half
_SAME_WAY: Final = 0.8  # share of the pairs of parts that must rise


@dataclass(frozen=True, slots=True)
class Rise:
    """From ``first`` to ``last``, the ends of the line through the outer thirds; ``steady``: throughout, and still.

    ``seen`` are the two limited to the range of the values; ``late`` is the share of the rise in the second half (half
    for a straight line).
    """

    first: float
    last: float
    steady: bool
    seen: tuple[float, float]
    late: float

    @property
    def height(self) -> float:
        return self.last - self.first


def rise_of(value: Floats) -> Rise:
    """How far evenly spaced values (at least nine) rise from one end to the other, by the medians of the outer thirds.

    It is steady if at least a quarter of the rise falls in the second half, the highest eighth is the last, and four of
    five pairs of eighths rise (Kendall). Waves, bumps, and finished warm-ups are not.

    >>> rise_of(np.linspace(0.0, 10.0, 48)).steady, round(rise_of(np.linspace(0.0, 10.0, 48)).height, 1)
    (True, 10.2)
    >>> rise_of(10.0 * np.sin(np.linspace(0.0, 6.2, 48))).steady
    False
    """
    third, half = value.size // 3, value.size // 2
    low, high = median(value[:third]), median(value[-third:])
    height, middle = _THIRD * (high - low), 0.5 * (low + high)
    late = 2 * float(median(value[-(half // 2) :]) - median(value[half : half + half // 2]))
    parts = np.array([median(part) for part in np.array_split(value, min(_PARTS, value.size))])
    one, two = np.triu_indices(parts.size, 1)
    same = float(np.mean(parts[two] > parts[one]))
    steady = height > 0 and late >= _LATE * height and parts[-1] >= float(parts.max()) and same >= _SAME_WAY
    first, last = middle - height / 2, middle + height / 2
    seen = max(first, float(value.min())), min(last, float(value.max()))
    return Rise(first, last, bool(steady), seen, late / height if height > 0 else 0.0)


def rises_throughout(value: Floats, risk: float) -> bool:
    """Whether each part of evenly spaced values has a higher median than the one before. There are at least eight
    parts, so many that chance orders them so with at most ``risk``: one in the factorial of their number, the exact
    extreme of Kendall's test. Noise that is correlated over more than a part does so more often.

    >>> rises_throughout(np.linspace(0.0, 1.0, 48), 1e-6), rises_throughout(np.sin(np.linspace(0.0, 3.1, 48)), 1e-6)
    (True, False)
    """
    parts = _PARTS
    while math.factorial(parts) * risk < 1 and parts < value.size:
        parts += 1
    if math.factorial(parts) * risk < 1 or parts > value.size:
        return False
    return bool(np.all(np.diff([median(part) for part in np.array_split(value, parts)]) > 0))
