"""Standstills: stretches in which nothing comes back, compared with what is offered or with the level before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from soakwatch_model.series import Floats, Ints, Mask
from soakwatch_rules.stats.distributions import gamma_cdf
from soakwatch_rules.stats.hysteresis import true_runs
from soakwatch_rules.stats.medians import median
from soakwatch_rules.stats.outage import Bins
from soakwatch_rules.stats.robust_level import MAD_TO_SIGMA, robust
from soakwatch_rules.stats.throughput_dips import MIN_INTERVALS, level_without

DOWN = 0.1
"""Share of what is offered (or of the level) below which almost nothing comes back."""
_LOSSY = 0.05  # share of a bin from which it may be part of a stop
_BLURRED = 3  # bins: fewer do not show whether all or half of it was lost
_SIGMAS = 5.0
_CHANCE = 0.01
_CARRIED = 3  # readings that show a level
_SLOPE = 5  # readings, or parts, over which a load that is turned down falls
_MAX_SLOPE = 600  # readings
_FULL = 0.9


@dataclass(frozen=True, slots=True)
class Stop:
    """From ``begin_ns`` to ``end_ns``; ``lost_s`` is what did not come back, in seconds at the offered rate.

    ``blurred``: the readings are too far apart to tell a full stop from a longer partial loss. ``last``: it reaches to
    the last reading. ``turned_down``: before it the rate fell in steps, as if the load was turned down.
    """

    begin_ns: int
    end_ns: int
    lost_s: float
    last: bool
    turned_down: bool = False
    blurred: bool = False


def stops(bins: Bins, seconds: float, longest_s: float, *, exact: bool = True, whole: bool = False) -> tuple[Stop, ...]:
    """Stretches of at least ``seconds`` in which almost nothing of what was sent came back.

    A stop is a run of bins that lose over 5 % each (and five robust sigmas, unless the counts are ``exact``). Its loss
    is at least what is sent in ``seconds`` (RFC 2544 section 26.5, RFC 6201). Between its first and last bin nine
    tenths are lost; of few bins, one lost that much, or (unless only ``whole`` stops are wanted) all are too long to
    show it. Bins longer than ``longest_s`` are ignored.

    >>> sent, lost = np.full(60, 100.0), np.zeros(60)
    >>> lost[20:32], lost[32] = 100.0, 50.0
    >>> [(s.begin_ns // 10**9, s.lost_s) for s in stops(Bins(np.arange(61) * 10**9, sent, lost), 10.0, 3.0)]
    [(20, 12.5)]
    """
    width = bins.seconds
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        share = np.clip(bins.lost / bins.sent, -1.0, 1.0)
        known = np.isfinite(share) & (bins.sent > 0) & (width <= longest_s)
        if not known.any():
            return ()
        least = _LOSSY if exact else max(_LOSSY, min(_SIGMAS * robust(share[known])[1], 1 - DOWN))
        lossy = known & (share >= least)
    result = []
    for first, after in true_runs(lossy).tolist():
        lost_s = float(np.sum(share[first:after] * width[first:after]))
        inner = slice(first + 1, after - 1)
        whole_s = float(np.sum(width[inner]))
        blurred = after - first <= _BLURRED and float(width[first:after].min()) > 0.5 * seconds
        full = after - first > 2 and float(np.sum(share[inner] * width[inner])) >= (1 - DOWN) * whole_s
        full |= after - first <= _BLURRED and bool((share[first:after] >= 1 - DOWN).any())
        if lost_s < 0.999 * seconds or not (full or (blurred and not whole)):
            continue
        begin_ns, end_ns = int(bins.edges_ns[first]), int(bins.edges_ns[after])
        result.append(Stop(begin_ns, end_ns, lost_s, after == lossy.size, blurred=not full))
    return tuple(result)


def stops_of_rate(
    begin_ns: Ints, end_ns: Ints, rate: Floats, seconds: float, *, counts: bool = True
) -> tuple[Stop, ...]:
    """Stretches of at least ``seconds`` in which a rate is below a tenth of its running level.

    The level is that of the readings outside of such stretches. A stretch counts if the scatter outside (five robust
    sigmas) does not reach so low; or if chance would not make so many low readings in a row (n·p·q^(k-1) < 1 %; p is
    the share of low readings outside, q the probability of another low one after a low one); or if random arrivals as
    bursty as those outside would not leave it so empty (with ``counts``: the rate is a number per second). It never
    counts if plain random arrivals would.

    >>> at, rate = np.arange(101) * 10**9, np.full(100, 50.0)
    >>> rate[60:] = 0.0
    >>> [(s.begin_ns // 10**9, s.lost_s, s.last) for s in stops_of_rate(at[:-1], at[1:], rate, 10.0)]
    [(60, 40.0, True)]
    """
    n = rate.size
    width = np.asarray((end_ns - begin_ns) * 1e-9, dtype=np.float64)
    if n < _CARRIED or not bool((rate > 0).any()):
        return ()
    apart = max(median(width), 1e-6)
    low, level = rate <= 0, np.zeros(n)
    for _ in range(3):  # the level of what is carried, without the readings far below it
        level = level_without(rate, apart, _long(low, width, seconds))
        level = np.where(level > 0, level, float(np.mean(rate)))  # for sparse requests the median is 0
        low = (rate < DOWN * level) & (level > 0)
    long = _long(low, width, seconds)
    if int(np.count_nonzero(~low)) < _CARRIED or float(width[~low].sum()) < min(seconds, _CARRIED * apart):
        return ()
    outside = ~long
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        below = np.where(level > 0, 1 - np.minimum(rate / np.where(level > 0, level, 1.0), 2), 0.0)
    sigma = robust(below[outside & ~low])[1]
    plain = not bool((low & outside).any()) and _SIGMAS * sigma < 1 - DOWN
    rare = _rare(low, width, seconds)
    mean = rate[outside] * width[outside]
    spread = max(1.0, (MAD_TO_SIGMA * _mad(mean)) ** 2 / max(median(mean), 1e-12)) if counts else 0.0
    result = []
    for first, after in true_runs(long).tolist():
        lasted = float(width[first:after].sum())
        wanted = float(np.sum(level[first:after] * width[first:after]))
        rest_s = float(np.sum(width)) - lasted
        others = float(np.sum(rate * width) - np.sum(rate[first:after] * width[first:after]))
        usual = min(wanted, others / rest_s * lasted) if rest_s > 0 else wanted
        came = float(np.sum(np.maximum(rate[first:after], 0.0) * width[first:after]))
        if counts and _empty(n, came, usual, 1.0) >= _CHANCE:
            continue
        if not (plain or (first, after) in rare or (counts and _empty(n, came, usual, spread) < _CHANCE)):
            continue
        result.append(
            Stop(
                int(begin_ns[first]),
                int(end_ns[after - 1]),
                lasted * (1 - came / wanted),
                after == n,
                _falls(rate, level, first),
            )
        )
    return tuple(result)


def _rare(low: Mask, width: Floats, seconds: float) -> set[tuple[int, int]]:
    """The runs of low readings that are too long for chance, given the low readings outside of such runs.

    Runs of at least eight readings and ``seconds`` are excluded at first, so that a service that stands still most of
    the time does not hide that.
    """
    runs = [(first, after) for first, after in true_runs(low).tolist()]
    lasts = {r: float(width[r[0] : r[1]].sum()) >= 0.999 * seconds for r in runs}
    apart = [r for r in runs if lasts[r] and r[1] - r[0] >= MIN_INTERVALS]
    matches: set[tuple[int, int]] = set()
    while True:
        outside, after_low = low.size, 0
        left = [r for r in runs if r not in matches and r not in apart]
        outside -= sum(b - a for a, b in (*matches, *apart))
        few = sum(b - a for a, b in left)
        after_low = few - len(left)
        p = (few + 0.5) / (outside + 1.0)
        q = (after_low + 0.5) / (few + 1.0) if few else p
        new = {r for r in (*apart, *left) if lasts[r] and low.size * p * max(p, q) ** (r[1] - r[0] - 1) < _CHANCE}
        if new <= matches:
            return matches
        matches |= new
        apart = [r for r in apart if r not in matches]


def _empty(number: int, came: float, wanted: float, spread: float) -> float:
    """The expected number of stretches that random arrivals, in bursts of ``spread``, leave as empty as this one."""
    return number * (1 - gamma_cdf(max(came, 0.0) / spread + 1.0, wanted / spread))


def _mad(value: Floats) -> float:
    return median(np.abs(value - median(value))) if value.size else 0.0


def _long(low: Mask, width: Floats, seconds: float) -> Mask:
    """Which low readings belong to runs of at least ``seconds``."""
    result = np.zeros(low.size, dtype=np.bool_)
    for first, after in true_runs(low).tolist():
        result[first:after] = float(width[first:after].sum()) >= 0.999 * seconds
    return result


def _falls(rate: Floats, level: Floats, first: int) -> bool:
    """Whether the readings before a stop fell step by step from near the level."""
    before = rate[max(first - _MAX_SLOPE, 0) : first] / max(float(level[max(first - 1, 0)]), 1e-300)
    high = np.flatnonzero(before >= _FULL)
    slope = before[int(high[-1]) :] if high.size else before[:0]
    if slope.size < _SLOPE:
        return False
    parts = np.array([part.mean() for part in np.array_split(slope, _SLOPE)])
    return bool(np.all(np.diff(parts) < 0)) and float(np.max(-np.diff(parts))) < 0.5
