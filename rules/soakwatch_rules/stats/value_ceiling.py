"""Ceiling: where evenly spaced values reached the highest that they can have, and stayed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from soakwatch_model.series import Floats
from soakwatch_rules.stats.medians import median

_LAST: Final = 6  # parts; the last one gives the level at the end
_AT_IT: Final = 0.9  # share of the values since the first at the ceiling that must be at it


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The level at which values end, and the index from which on they lie at it."""

    level: float
    first: int


def ceiling_of(value: Floats, *, low: float, high: float, band: float) -> Ceiling | None:
    """The ceiling between ``low`` and ``high`` at which evenly spaced values end; None if they end at none.

    Its level is the median of the last sixth. A value is at the ceiling if it lies at most ``band`` below it and nine
    of ten of all later values do too. A warm-up, which approaches its level ever more slowly, is at it when within the
    band.

    >>> busy = np.minimum(np.linspace(0.2, 1.7, 12), 0.98)
    >>> ceiling_of(busy, low=0.9, high=1.0, band=0.05)
    Ceiling(level=0.98, first=6)
    >>> ceiling_of(busy / 2, low=0.9, high=1.0, band=0.05) is None
    True
    """
    if not value.size:
        return None
    level = median(value[-max(1, value.size // _LAST) :])
    if not low <= level <= high:
        return None
    at = value >= level - band
    share = np.cumsum(at[::-1])[::-1] / np.arange(value.size, 0, -1)
    return Ceiling(level, int(np.argmax(at & (share >= _AT_IT))))
