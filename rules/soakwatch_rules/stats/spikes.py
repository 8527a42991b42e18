"""Spikes: stretches of high utilisation that rise suddenly above the level before them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from soakwatch_rules.stats.hysteresis import stretches
from soakwatch_rules.stats.level import robust

_POLL_MODE = 0.90
_TOP = 0.995
_FEWER = 2 / 3  # of the sigmas
_LONGER = 3.0  # times the seconds
LEAST = 16
"""Readings that a level needs."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a spike is: ratios ``enter``, ``leave`` and ``rise``, a number of ``sigmas``, times in seconds."""

    enter: float
    leave: float
    rise: float
    sigmas: float
    seconds: float
    trailing: float

    def threshold(self, level: float, sigma: float) -> float:
        """What a spike must reach above this level; over 1 where there is no head room for one."""
        return max(self.enter, level + max(self.rise, self.sigmas * sigma))

    def demand(self, level: float, sigma: float, reading_s: float = 0.0) -> tuple[float, float]:
        """What a spike must reach, and for how many seconds; over 1 where there is no head room for one.

        Where the sigmas leave no room but two thirds of them do, a plateau at the very top that lasts three times as
        long, and three readings, will do: noise of 4 sigmas touches the top for moments only.
        """
        threshold = self.threshold(level, sigma)
        if threshold > 1 and level + max(self.rise, _FEWER * self.sigmas * sigma) <= 1:
            return max(self.enter, _TOP), _LONGER * max(self.seconds, reading_s)
        return threshold, self.seconds


@dataclass(frozen=True, slots=True)
class Spike:
    """Readings [open, close); ``above_s`` is the time at or above ``threshold``."""

    open: int
    close: int
    above_s: float
    peak: float
    level: float
    threshold: float


@dataclass(frozen=True, slots=True)
class Spikes:
    """The spikes, the stretches that were too ``brief`` or not ``sudden``, and the longest brief one in seconds."""

    found: tuple[Spike, ...]
    brief: int
    gradual: int
    longest_brief_s: float


def spikes(
    value: NDArray[np.float64],
    cover_s: NDArray[np.float64],
    shape: Shape,
    keep: int,
    level: tuple[float, float] | None,
) -> Spikes:
    """Finds the spikes in readings that each speak for ``cover_s`` seconds before them.

    ``level`` is (median, robust sigma) if it is known; else it comes from the ``keep`` readings before a stretch
    that lie in no spike (so it is frozen while a spike lasts), at the very beginning from those after it. Only
    stretches that are high for long enough are looked at closely, so a quiet day costs one pass. An end may be a
    tenth of a reading short, but no more than a tenth of what is asked for: polls come a little early or late.
    """
    pairs = stretches(value, shape.enter, shape.leave)
    high_s = np.append(0.0, np.cumsum(np.where(value >= shape.enter, cover_s, 0.0)))
    lasted = high_s[pairs[:, 1]] - high_s[pairs[:, 0]]
    reading_s = float(np.median(cover_s)) if cover_s.size else 0.0
    slack = 0.1 * min(reading_s, shape.seconds)
    long = lasted + slack >= shape.seconds
    found: list[Spike] = []
    brief, gradual, longest = int((~long).sum()), 0, float(lasted[~long].max(initial=0.0))
    for begin, end in pairs[long].tolist():
        here = level if level is not None else _level(value, begin, end, found, keep)
        threshold, seconds = shape.demand(*here, reading_s)
        above = value[begin:end] >= threshold
        above_s = float(cover_s[begin:end][above].sum())
        if above_s + slack < seconds:
            gradual += 1
            continue
        first = begin + int(np.argmax(above))
        found.append(Spike(first, end, above_s, float(value[first:end].max()), here[0], threshold))
    return Spikes(tuple(found), brief, gradual, longest)


def chance(lasting_s: float, apart_s: float, shape: Shape, level: float) -> float:
    """The probability that a spike to 100 % that lasts so long shows in averages over ``apart_s`` seconds.

    k = ceil(``seconds``/``apart``) neighbours must reach the threshold; the first and the last of them do if they lie
    in the spike for the share f = (enter - level)/(1 - level). Begins are equally likely, hence
    (lasting - (k - 2)·apart - 2·f·apart)/apart, within 0 and 1.

    >>> ten = Shape(0.95, 0.85, 0.2, 6.0, 10.0, 1800.0)
    >>> [round(chance(d, 60.0, ten, 0.3), 2) for d in (10, 60, 90, 120)]
    [0.0, 0.14, 0.64, 1.0]
    """
    number = max(1, math.ceil(shape.seconds / apart_s - 0.1))
    share = min(1.0, max(0.0, (shape.enter - level) / (1 - level))) if level < 1 else 1.0
    found = (lasting_s - (number - 2) * apart_s - 2 * share * apart_s) / apart_s
    return min(1.0, max(0.0, found))


def head_room(value: NDArray[np.float64], shape: Shape, keep: int, looks: int = 48) -> float:
    """The share of evenly spaced times at which a spike could show: its threshold lies at or below 1."""
    ends = np.unique(np.linspace(min(keep, value.size), value.size, looks).astype(np.int64)).tolist()
    could = sum(shape.demand(*robust(value[max(0, end - keep) : end]))[0] <= 1 for end in ends)
    return could / len(ends)


def poll_mode(value: NDArray[np.float64], level: tuple[float, float] | None, keep: int) -> bool:
    """Whether it is busy (over 90 %) all the time, from the beginning on; what saturates later is no poll-mode core.

    ``level`` (median, robust sigma), if it is known, decides alone.
    """
    if level is not None:
        return level[0] > _POLL_MODE
    if 2 * np.count_nonzero(value > _POLL_MODE) < value.size:
        return False  # so is the median
    early = value[: max(LEAST, min(keep, value.size // 20))]
    return float(np.median(value)) > _POLL_MODE and float(np.median(early)) > _POLL_MODE


def _level(value: NDArray[np.float64], begin: int, end: int, found: Sequence[Spike], keep: int) -> tuple[float, float]:
    parts, wanted, edge = [], keep, begin
    for spike in reversed(found):
        part = value[max(spike.close, edge - wanted) : edge]
        parts.append(part)
        wanted, edge = wanted - part.size, spike.open
        if wanted <= 0:
            break
    if wanted > 0:
        part = value[max(0, edge - wanted) : edge]
        parts.append(part)
        wanted -= part.size
    if keep - wanted < LEAST:
        parts.append(value[end : end + wanted])
    before = np.concatenate(parts)
    return robust(before) if before.size else (float(np.median(value)), 0.0)
