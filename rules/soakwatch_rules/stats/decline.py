"""Decline: how far a level fell over a run, with the error that correlated noise causes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from soakwatch_model.series import Floats
from soakwatch_rules.stats.distributions import student_cdf
from soakwatch_rules.stats.robust_level import robust

_MIN_PARTS = 8  # parts before the last
_QUARTER = 4  # blocks that a quarter needs
_COSINES = 3  # for each quarter; fewer if it has less than six blocks
_SIGMAS = 4.0


@dataclass(frozen=True, slots=True)
class Fall:
    """From ``early`` to ``late``, as a ``share`` of ``early``, with its standard ``error``; ``probability`` is that of
    a fall above the allowed one."""

    early: float
    late: float
    share: float
    error: float
    probability: float


def fall(block: Floats, allowed: float) -> Fall | None:
    """The fall from the mean of the first quarter of evenly spaced blocks to that of the last.

    Blocks over four robust sigmas from their quarter's median are limited to there, so that one stop does not decide.
    The error of a mean under correlated noise comes from three cosines a quarter: L_j = sqrt(2/n) sum x_t
    cos(pi j (t - 1/2)/n), error squared = mean of L_j squared / n, with Student's t of as many degrees of freedom
    (E. Lazarus, D. Lewis, J. Stock, M. Watson, HAR inference, JBES 36, 2018, on equal-weighted cosines). Waves shorter
    than a sixth of the run average out and add no error. None for too few blocks, or an early level that is not
    positive.

    >>> found = fall(np.append(np.full(48, 100.0), np.full(48, 80.0)) + np.tile([1.0, -1.0], 48), 0.05)
    >>> round(found.share, 3), found.probability > 0.999
    (0.2, True)
    """
    n = block.size // 4
    if n < _QUARTER:
        return None
    cosines = min(_COSINES, n // 2)
    both = [_drawn_in(block[:n]), _drawn_in(block[-n:])]
    early, late = float(both[0].mean()), float(both[1].mean())
    if not early > 0:
        return None
    waves = np.cos(np.pi * np.outer(np.arange(1, cosines + 1), np.arange(n) + 0.5) / n) * np.sqrt(2 / n)
    power = sum(float(np.sum((waves @ (part / early)) ** 2)) for part in both)
    error = float(np.sqrt(power / cosines / n))
    share = (early - late) / early
    sure = student_cdf(2 * cosines, (share - allowed) / error) if error > 1e-12 else float(share > allowed)
    return Fall(early, late, share, error, float(sure))


def late_fall(block: Floats, allowed: float) -> Fall | None:
    """The fall of the last blocks (a twelfth or a 24th of evenly spaced ones, whichever is more certain) below those
    before. These are cut into parts of that length, whose scatter, waves of the run included, is the error.

    Student's t of a new part against the earlier ones. None if these are fewer than eight, or one of them is as low.

    >>> found = late_fall(np.append(np.tile([100.0, 101.0], 44), np.full(8, 70.0)), 0.05)
    >>> round(found.share, 3), found.probability > 0.999
    (0.303, True)
    """
    best: Fall | None = None
    for size in (block.size // 12, block.size // 24):
        parts = (block.size - size) // size if size > 1 else 0
        if parts < _MIN_PARTS:
            continue
        before = block[block.size - size - parts * size : block.size - size].reshape(parts, size).mean(axis=1)
        early, late = float(before.mean()), float(block[-size:].mean())
        if not early > 0 or late >= float(before.min()):
            continue
        share = (early - late) / early
        error = float(before.std(ddof=1)) / early * (1 + 1 / parts) ** 0.5
        sure = student_cdf(parts - 1, (share - allowed) / error) if error > 1e-12 else float(share > allowed)
        if best is None or sure > best.probability:
            best = Fall(early, late, share, error, float(sure))
    return best


def _drawn_in(part: Floats) -> Floats:
    middle, sigma = robust(part)
    return np.clip(part, middle - _SIGMAS * sigma, middle + _SIGMAS * sigma) if sigma > 0 else part
