"""Whether a level has settled: the drift across a stretch is proven to be small."""

from __future__ import annotations

from typing import Final

import numpy as np

from soakwatch_model.series import Floats
from soakwatch_rules.stats.ar1 import slope
from soakwatch_rules.stats.medians import median

MIN_SAMPLES: Final = 12
"""Readings needed for a proof."""


def settled(time_s: Floats, value: Floats, tolerance: float, floor: float = 0.0) -> bool:
    """Whether the drift from the first reading to the last lies within ± max(tolerance * level, floor), 95 % each side.

    The drift is the slope of a straight line times the span; its error counts correlated readings as fewer (see
    ``ar1.slope``). Both one-sided tests must pass (TOST, Schuirmann 1987), so that a noisy level is not called settled
    because nothing can be seen in it. Times are seconds, about evenly spaced; ``level`` is the absolute median. Wrong
    for a slow wave that is equally high at both ends: choose a stretch longer than the waves that matter.

    >>> at = np.arange(60.0)
    >>> settled(at, 100 + 0.01 * at, 0.05), settled(at, 100 + 1.0 * at, 0.05)
    (True, False)
    >>> settled(at[:5], at[:5], 0.05)
    False
    """
    seen = np.isfinite(value)
    if int(seen.sum()) < MIN_SAMPLES:
        return False
    time_s, value = time_s[seen], value[seen]
    span = float(time_s[-1] - time_s[0])
    if not span > 0:
        return False
    band = max(tolerance * abs(median(value)), floor)
    fit = slope(time_s, value)
    return fit.low() * span >= -band and fit.high() * span <= band
