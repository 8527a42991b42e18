"""Rises: when one began, whether it was given back at the end, and whether it is too large for a start-up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from soakwatch_model.series import Floats, Ints

_PARTS: Final = 48
_A_PART: Final = 2  # readings in a part
_LAST: Final = 3  # a release lies in the last third
_EARLY: Final = 1 / 12  # share of a life: a start-up rises from the first reading on
DOUBLED: Final = 1.8
_MANIFOLD: Final = 2.5


@dataclass(frozen=True, slots=True)
class Rise:
    """The rise of a life: when half of it was reached, whether a tenth of it was reached within the first twelfth
    (``early``), and when it was given back (None: it was not)."""

    half_ns: int
    early: bool
    released_ns: int | None


def rise_of(time_ns: Ints, value: Floats, begin_ns: int, end_ns: int, *, down: bool) -> Rise | None:
    """The rise from the first to the highest of up to 48 parts of begin <= t < end, by means of at least two readings
    each; None with fewer than 16 readings, or if nothing rises.

    It was given back if less than half is left in the last part and the highest part lies in the last third: a leak
    that ends with its program. ``early`` is wrong if the noise is as large as a tenth of the rise.
    """
    number = min(_PARTS, int(value.size) // _A_PART)
    if number < _PARTS // 6:
        return None
    edges = begin_ns + ((end_ns - begin_ns) * np.arange(number + 1)) // number
    places = np.searchsorted(time_ns, edges)
    filled = np.flatnonzero(np.diff(places) > 0)
    if filled.size < _PARTS // 6:
        return None
    sign = -1.0 if down else 1.0
    means = sign * np.array([value[places[i] : places[i + 1]].mean() for i in filled])
    top = int(np.argmax(means))
    rise = float(means[top] - means[0])
    if not (math.isfinite(rise) and rise > 0):
        return None
    share = (means - means[0]) / rise
    half = int(filled[int(np.argmax(share >= 0.5))])
    tenth = int(filled[int(np.argmax(share >= 0.1))])
    given_back = bool(share[-1] < 0.5) and filled[top] * _LAST >= (_LAST - 1) * number
    released_ns = int(edges[filled[top] + 1]) if given_back else None
    return Rise(int(edges[half]), tenth <= number * _EARLY, released_ns)


def exceeds_start_up(first: float, last: float, rise: Rise, *, down: bool) -> bool:
    """Whether the mean of the last third lies too far above that of the first for a start-up.

    A program that warms up with a time constant of a sixth of its life has most of its rise within the first third, so
    the means differ by less than 1.76 times, however much it rises. A later rise counts from 1.8 times on; one from the
    first readings on (a cache may fill evenly until .6 of a life) from 2.5 times.
    """
    high, low = (first, last) if down else (last, first)
    return low >= 0 and high > 0 and high >= (_MANIFOLD if rise.early else DOUBLED) * low
