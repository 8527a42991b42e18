"""Slowdown: response times as block medians on a log scale, compared with the usual ones at the same load."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from soakwatch_model.series import Floats, Ints, Mask
from soakwatch_rules.stats.medians import median
from soakwatch_rules.stats.robust_level import MAD_TO_SIGMA, robust

_STEEPEST: Final = 3.0  # latency grows at most with the third power of the load; a steeper fit is chance
_APART: Final = 0.1  # difference of log loads below which a pair says nothing about the slope
_MAX_BLOCKS: Final = 240  # blocks from whose pairs the slope is taken
_LIKE: Final = 0.1  # difference of log loads up to which blocks have the same load
_ENOUGH: Final = 3  # blocks with the same load needed to know the usual value there


def block_medians(indices: Ints, value: Floats, number: int, least: int) -> Floats:
    """The median of the readings in each of ``number`` blocks; NaN in a block with fewer than ``least``.

    >>> block_medians(np.array([0, 0, 0, 1, 2, 2]), np.array([1.0, 9.0, 2.0, 5.0, 3.0, 4.0]), 3, 2).tolist()
    [2.0, nan, 3.5]
    """
    order = np.lexsort((value, indices))
    ranked = value[order]
    count = np.bincount(indices, minlength=number)[:number]
    first = np.append(0, np.cumsum(count))[:-1]
    good = count >= max(least, 1)
    low, high = first + np.maximum(count - 1, 0) // 2, first + count // 2
    result = np.full(number, np.nan)
    result[good] = 0.5 * (ranked[low[good]] + ranked[high[good]])
    return result


def load_slope(log_load: Floats, log_value: Floats) -> float:
    """How latency grows with load: the median slope of pairs of blocks (Theil-Sen), limited to 0..3.

    Pairs lie within a quarter of the run, so that few of them span a lasting change. Both are logarithms, so 1 means
    proportional. It is 0 if the load hardly changes, and never negative: a generator that waits for answers sends less
    when they are late, which is no reason for late answers.

    >>> load = np.log(np.linspace(100.0, 300.0, 50))
    >>> round(load_slope(load, 2.0 * load), 6), load_slope(load, -load), load_slope(load * 0.01, load)
    (2.0, 0.0, 0.0)
    """
    known = np.flatnonzero(np.isfinite(log_load) & np.isfinite(log_value))
    if known.size > _MAX_BLOCKS:
        known = known[np.linspace(0, known.size - 1, _MAX_BLOCKS).astype(np.int64)]
    values, two = np.triu_indices(known.size, 1)
    across = log_load[known][two] - log_load[known][values]
    far = (np.abs(across) > _APART) & (two - values <= known.size // 4)
    if int(far.sum()) < max(known.size, 1):
        return 0.0
    up = log_value[known][two] - log_value[known][values]
    return float(np.clip(median(up[far] / across[far]), 0.0, _STEEPEST))


@dataclass(frozen=True, slots=True, eq=False)
class Slowness:
    """Blocks compared with the level: ``off`` is the log of the ratio to the usual value at the block's load.

    ``level`` is the log of the usual value at the reference's median load, ``sigma`` the robust scatter of a block.
    """

    off: Floats
    usual: Floats
    level: float
    slope: float
    sigma: float


def slowness(log_value: Floats, log_load: Floats, reference: Mask, level: float | None = None) -> Slowness:
    """Blocks compared with those of the reference (at least one of them known), or with a given ``level``.

    The scatter is the larger of that of the reference around its level and that between neighbouring blocks, so that
    wander within the reference widens it and a step after it does not.
    """
    slope = load_slope(log_load, log_value)
    about = float(np.nanmedian(log_load[reference])) if np.isfinite(log_load[reference]).any() else 0.0
    with_load = np.where(np.isfinite(log_load), slope * (log_load - about), 0.0)
    even = log_value - with_load
    known = even[reference & np.isfinite(even)]
    middle, sigma = robust(known)
    near = np.diff(even[np.isfinite(even)])
    apart = MAD_TO_SIGMA * median(np.abs(near)) / math.sqrt(2) if near.size else 0.0
    usual = with_load + (middle if level is None else level)
    return Slowness(log_value - usual, usual, middle if level is None else level, slope, max(sigma, apart))


@dataclass(frozen=True, slots=True)
class Alike:
    """A stretch compared with earlier blocks of the same load: the ``share`` of its blocks that have such, how much
    slower it is (log of the ratio, NaN without any), and whether its load is ``above`` any before."""

    share: float
    off: float
    above: bool


def slowness_at_like_load(log_value: Floats, log_load: Floats, begin: int, end: int, usable: Mask) -> Alike:
    """The blocks begin..end compared with earlier ones whose load differs by at most a tenth."""
    before = np.flatnonzero(usable[:begin] & np.isfinite(log_load[:begin]) & np.isfinite(log_value[:begin]))
    inside = np.arange(begin, end)
    inside = inside[np.isfinite(log_load[inside]) & np.isfinite(log_value[inside])]
    if not before.size or not inside.size:
        return Alike(0.0, math.nan, above=False)
    off = []
    for index in inside.tolist():
        same = before[np.abs(log_load[before] - log_load[index]) <= _LIKE]
        if same.size >= _ENOUGH:
            off.append(log_value[index] - median(log_value[same]))
    above = median(log_load[inside]) > float(log_load[before].max()) + 0.5 * _LIKE
    return Alike(len(off) / inside.size, median(off) if off else math.nan, above)
