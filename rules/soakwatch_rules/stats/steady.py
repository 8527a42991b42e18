"""Steady: whether evenly spaced values rise all along, and by how much; cheap enough to be asked of every series."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_THIRD: Final = 1.5  # the distance of the middles of the outer thirds is two thirds of the run
_PARTS: Final = 8
_LATE: Final = 0.25  # of the whole rise, that the second half has at least
_SAME_WAY: Final = 0.8  # of the pairs of parts


@dataclass(frozen=True, slots=True)
class Rise:
    """From ``first`` to ``last``, the ends of the line through the outer thirds; ``steady``: all along, and still.

    ``seen`` are the two, no further than the values themselves went.
    """

    first: float
    last: float
    steady: bool
    seen: tuple[float, float]

    @property
    def height(self) -> float:
        """How far it rose."""
        return self.last - self.first


def rise_of(value: Floats) -> Rise:
    """How far evenly spaced values (nine and more) rise from one end to the other, by the medians of the outer thirds.

    Steady is what goes on in the second half with a quarter of the whole rise, has its highest eighth at the end, and
    rises in four of five pairs of eighths (Kendall). Waves, bumps, and warm-ups that are over are not.

    >>> rise_of(np.linspace(0.0, 10.0, 48)).steady, round(rise_of(np.linspace(0.0, 10.0, 48)).height, 1)
    (True, 10.2)
    >>> rise_of(10.0 * np.sin(np.linspace(0.0, 6.2, 48))).steady
    False
    """
    third, half = value.size // 3, value.size // 2
    low, high = float(np.median(value[:third])), float(np.median(value[-third:]))
    height, middle = _THIRD * (high - low), 0.5 * (low + high)
    late = 2 * float(np.median(value[-(half // 2) :]) - np.median(value[half : half + half // 2]))
    parts = np.array([float(np.median(part)) for part in np.array_split(value, min(_PARTS, value.size))])
    one, two = np.triu_indices(parts.size, 1)
    same = float(np.mean(parts[two] > parts[one]))
    steady = height > 0 and late >= _LATE * height and parts[-1] >= float(parts.max()) and same >= _SAME_WAY
    first, last = middle - height / 2, middle + height / 2
    return Rise(first, last, bool(steady), (max(first, float(value.min())), min(last, float(value.max()))))
