"""Daily cycles: whether a series moves like one sine of a day."""

from __future__ import annotations

from typing import Final

import numpy as np

from soakwatch_model.series import Floats

DAY_S: Final = 86400.0
_MIN_BLOCKS_OF_A_DAY: Final = 16
_UNEXPLAINED: Final = 0.1  # share of the variance
_BENDS: Final = 9


def is_daily_sine(seconds: Floats, value: Floats) -> bool:
    """Whether a sine of one day explains nearly all of the variance, clearly more than a straight line, and at least as
    much as a line with one bend or a parabola (with as many parameters): growth that begins mid-run, or accelerates,
    resembles part of a sine too."""
    if value.size < _MIN_BLOCKS_OF_A_DAY:
        return False
    turn = 2 * np.pi * seconds / DAY_S
    ones, whole = np.ones(value.size), float(np.sum((value - value.mean()) ** 2))

    def left(*columns: Floats) -> float:
        basis = np.stack([ones, *columns], axis=1)
        return float(np.sum((value - basis @ np.linalg.lstsq(basis, value, rcond=None)[0]) ** 2))

    sine = left(np.sin(turn), np.cos(turn))
    if not whole > 0 or sine >= _UNEXPLAINED * whole or sine >= left(seconds) / 2:
        return False
    bends = np.linspace(seconds[0], seconds[-1], _BENDS + 2)[1:-1]
    return sine <= left(seconds, seconds**2) and sine <= min(
        left(seconds, np.maximum(seconds - index, 0.0)) for index in bends.tolist()
    )
