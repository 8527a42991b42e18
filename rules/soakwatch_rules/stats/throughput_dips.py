"""Pauses: dips of a throughput, and whether the times of any events keep a period.

``rhythm`` works on any list of times (pauses in a garbage collector's log, silences of a source).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from soakwatch_model.series import Floats, Mask
from soakwatch_rules.stats.distributions import gamma_cdf
from soakwatch_rules.stats.hysteresis import true_runs
from soakwatch_rules.stats.medians import median, row_medians
from soakwatch_rules.stats.robust_level import MAD_TO_SIGMA

MIN_INTERVALS = 8
"""Intervals that a rhythm needs."""
MIN_EVEN = 4
"""Intervals needed by a rhythm so even that chance makes it with less than ``SURELY``."""
SURELY = 0.0001
_FINE = 20  # reading distances in an interval: coarser intervals look even anyway
REGULAR = 0.6
"""Interquartile range / median of the intervals below which events are periodic; Poisson events have 1.58."""
CHANCE = 0.01
"""Probability below which intervals are too even for independent events."""
_MAX_INTERVAL = 3.0  # medians: longer intervals (a gap, a missed event) are cut to this
_PER_MEDIAN = 1.2533  # standard error of a median in those of a mean, sqrt(pi / 2)
_NORMAL_97 = 1.96
_LEVEL_BLOCKS = 5  # a pause of up to two blocks does not become the level
_LEVEL_BLOCK_S = 900.0
_LEVEL_READINGS = 16
STILL = 0.05
"""Share of the level up to which a reading stands still."""
_STAYS = 0.5  # probability that noise which came this low is there at the next reading too; a third for AR(1) .9


@dataclass(frozen=True, slots=True)
class Rhythm:
    """Intervals between events: their median, its 95 % interval, and IQR / median as ``spread``."""

    intervals: int
    period_s: float
    low_s: float
    high_s: float
    spread: float
    periodic: bool


@dataclass(frozen=True, slots=True)
class Dip:
    """Readings [open, close) below the level; ``lost_s`` is the carried traffic missing, in seconds at the level."""

    open: int
    close: int
    lost_s: float
    depth: float


def rhythm(at_s: Floats, *, apart_s: float | None = None) -> Rhythm | None:
    """The rhythm of events at these times (any order; equal times are one event); None with under two of them.

    Periodic if there are 8 intervals, their interquartile range is below 0.6 medians, and independent events
    (exponential intervals) would be as even in less than 1 %. The range alone calls 7 % of nine Poisson events
    periodic, both together 0.9 % (4000 seeds); jitter of 10 % is still always found. If the times are known to
    ``apart_s``, 4 intervals of at least 20 such steps suffice that chance makes as even in less than 0.01 %.

    >>> made = rhythm(np.array([0.0, 61, 119, 180, 241, 300, 362, 420, 480]))
    >>> made.periodic, made.period_s
    (True, 60.5)
    """
    times = np.unique(at_s[np.isfinite(at_s)])
    if times.size < 2:
        return None
    apart = np.diff(times)
    low, middle, high = (float(q) for q in np.quantile(apart, (0.25, 0.5, 0.75)))
    spread = (high - low) / middle
    error = _PER_MEDIAN * MAD_TO_SIGMA * median(np.abs(apart - middle)) / apart.size**0.5
    few = apart_s is not None and apart.size >= MIN_EVEN and middle >= _FINE * apart_s
    chance = CHANCE if apart.size >= MIN_INTERVALS else SURELY if few else 0.0
    periodic = spread < REGULAR and chance > 0 and by_chance(apart) < chance
    wide = _NORMAL_97 * error
    return Rhythm(int(apart.size), middle, max(0.0, middle - wide), middle + wide, spread, periodic)


def by_chance(apart: Floats) -> float:
    """The probability that intervals (two or more, positive) of independent events are as even as these.

    Moran's statistic, the log of the mean minus the mean of the logs, by Bartlett's chi-square (P. Moran, The random
    division of an interval II, JRSS B 13, 1951). Intervals over three medians count as three, so that one gap does not
    hide a rhythm.
    """
    kept, n = np.minimum(apart / median(apart), _MAX_INTERVAL), apart.size
    uneven = max(0.0, float(np.log(np.mean(kept)) - np.mean(np.log(kept))))
    return float(gamma_cdf((n - 1) / 2, n * uneven / (1 + (n + 1) / (6 * n)))) if n > 1 else 1.0


def running_level(value: Floats, apart_s: float) -> Floats:
    """The level at each reading: the median of the medians of five blocks of 15 min (at least 16 readings) around it.

    It follows a daily wave but no pause under half an hour. Within half an hour of either end it lags such a wave.
    """
    size = max(_LEVEL_READINGS, round(_LEVEL_BLOCK_S / apart_s) if apart_s > 0 else _LEVEL_READINGS)
    number = value.size // size
    if number < _LEVEL_BLOCKS:
        return np.full(value.size, median(value) if value.size else 0.0)
    middles = row_medians(value[: number * size].reshape(number, size))
    # At the edges the nearest five blocks are used: mirrored ones would count a slump there twice and make it the
    # level.
    first = np.clip(np.arange(number) - _LEVEL_BLOCKS // 2, 0, number - _LEVEL_BLOCKS)
    smooth = row_medians(np.lib.stride_tricks.sliding_window_view(middles, _LEVEL_BLOCKS)[first])
    level: Floats = np.interp(np.arange(value.size), (np.arange(number) + 0.5) * size, smooth)
    return level


def level_without(rate: Floats, apart_s: float, without: Mask) -> Floats:
    """The running level at each reading, computed without the readings left out; 0 if all are."""
    kept = np.flatnonzero(~without)
    if kept.size == rate.size or not kept.size:
        return running_level(rate, apart_s) if kept.size else np.zeros(rate.size)
    level: Floats = np.interp(np.arange(rate.size), kept, running_level(rate[kept], apart_s))
    return level


def standstills(rate: Floats, apart_s: float) -> Mask:
    """Which readings belong to a standstill: a run of readings of at most ``STILL`` of the level.

    However much a throughput scatters, it does not stand still for long by chance. Of n readings a run of k counts if
    n·p·q^(k-1) < 1 %, where p is the share of still readings outside of such runs (found iteratively, starting with all
    runs) and q the larger of p and one half. It takes at least eight readings; a throughput with a request now and then
    (p near 1) has none.

    >>> standstills(np.array([9.0, 14, 4, 8, 15, 3] * 5 + [0.0] * 20 + [5, 12.0]), 1.0).nonzero()[0][[0, -1]].tolist()
    [30, 49]
    """
    matches = np.zeros(rate.size, dtype=np.bool_)
    level = level_without(rate, apart_s, rate <= 0)
    still = (rate <= STILL * level) & (level > 0)
    edge = true_runs(still)
    while edge.size:
        n = int(np.count_nonzero(~matches))
        share = (int(np.sum(edge[:, 1] - edge[:, 0])) + 1) / (n + 2)
        rare = rate.size * share * max(share, _STAYS) ** (edge[:, 1] - edge[:, 0] - 1.0) < CHANCE
        if not rare.any():
            break
        for begin, end in edge[rare].tolist():
            matches[begin:end] = True
        edge = edge[~rare]
    return matches


def dips(below: Floats, cover_s: Floats, deep: float, sigma: float) -> tuple[Dip, ...]:
    """Runs of readings at least ``deep`` below the level; ``below`` is 1 - value / level.

    A run ends with the first reading less than half as deep. The readings at both sides, in which a pause may have
    begun or ended, add to the loss if they lie over three sigmas below.

    >>> [(d.open, d.close, d.lost_s) for d in dips(np.array([0, 0, 0.5, 1, 1, 0.25, 0]), np.ones(7), 0.4, 0.01)]
    [(2, 5, 2.75)]
    """
    deepish = below >= deep / 2
    result: list[Dip] = []
    for begin, end in true_runs(deepish).tolist():
        hit = np.flatnonzero(below[begin:end] >= deep)
        if not hit.size:
            continue
        first, last = begin + int(hit[0]), begin + int(hit[-1]) + 1
        around = np.arange(max(first - 1, 0), min(last + 1, below.size))
        inside = (around >= first) & (around < last)
        part = np.where(inside | (below[around] > 3 * sigma), below[around], 0.0)
        lost = float(np.sum(np.clip(part, 0, 1) * cover_s[around]))
        result.append(Dip(first, last, lost, float(below[first:last].max())))
    return tuple(result)
