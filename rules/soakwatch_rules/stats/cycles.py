"""A sawtooth: the falls that it has as a habit, and a series without it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from soakwatch_rules.stats.falls import abrupt, climb_of, off_line, places, steepness
from soakwatch_rules.stats.level import net_change

Floats = NDArray[np.float64]

_FINE: Final = 480  # blocks in which falls are looked for
_MIN_BLOCKS: Final = 32
_APART: Final = 4  # blocks between falls: faster cycles vanish in the block means
_RISES: Final = 0.5  # abrupt rises for each abrupt fall: batches and level flips rise abruptly too
_CLIMB: Final = 0.5  # correlation with time within a cycle
_ABOVE: Final = 0.25  # of the range, between the floors and the median
_STRAIGHT: Final = 0.25  # of its fall: what a straight line may leave of a climb
_AFTER: Final = 50  # of the readings, a share that tells how high it lies after a fall
_OVERDUE: Final = 1.5  # of the longest cycle: a sawtooth that has not fallen for so long has ended
_HABIT: Final = 4  # falls, from which one climb may be another
_RIM: Final = 3  # blocks on each side that tell how high a fall is
_SHORT: Final = 3  # blocks of a stretch that tells nothing


@dataclass(frozen=True, slots=True, eq=False)
class Cycles:
    """The falls of a sawtooth.

    ``falls`` are their times and ``heights`` their heights; ``climb`` is the usual climb per second between two of
    them, ``peak`` the highest level before one, and ``longest`` the longest time without one, before the last.
    """

    falls: Floats
    heights: Floats
    climb: float
    peak: float
    longest: float

    @property
    def height(self) -> float:
        """The usual height of a fall."""
        return float(np.median(self.heights))

    def floors_rise(self, time_s: Floats, value: Floats) -> float:
        """By how much it lies higher after the last fall than after the first: medians of a fiftieth of the time."""
        begins = np.searchsorted(time_s, (self.falls[0], self.falls[-1])).tolist()
        some = max(1, value.size // _AFTER)
        first, last = (float(np.median(value[begin : begin + some])) for begin in begins)
        return last - first

    def taken_out(self, time_s: Floats, value: Floats) -> Floats:
        """The readings without the sawtooth: what the floors, and so the means of its cycles, do over the run.

        Of each cycle a straight climb is taken that ends as high as the fall after it, so that the fall is gone and the
        cycle ends where the next begins. The first, whose begin was not seen, and the last, which has not fallen yet,
        climb as is usual, the last up to the highest fall; if it is overdue, the sawtooth has ended, and nothing is
        taken. Wrong for climbs that are not straight: their bends stay, once a cycle.
        """
        teeth, ends = np.zeros(value.size), self.falls.tolist()
        edges = np.searchsorted(time_s, self.falls)
        parts = [slice(begin, end) for begin, end in pairwise([0, *edges.tolist(), value.size])]
        first, last = parts[0], parts[-1]
        pace = min(self.climb, _pace(time_s[first], value[first]))
        teeth[first] = np.maximum(self.heights[0] - pace * (ends[0] - time_s[first]), 0.0)
        for part, (begin, end), height in zip(parts[1:-1], pairwise(ends), self.heights[1:].tolist(), strict=True):
            teeth[part] = height * (time_s[part] - begin) / (end - begin)
        if float(time_s[-1]) - ends[-1] <= _OVERDUE * self.longest:
            pace = min(self.climb, _pace(time_s[last], value[last]))
            teeth[last] = np.minimum(pace * (time_s[last] - ends[-1]), float(self.heights.max()))
        result: Floats = value - teeth
        return result


def cycles(time_s: Floats, value: Floats, *, begin_s: float, end_s: float, quantum: float = 0.0) -> Cycles | None:
    """The cycles of a sawtooth, or None where there is none.

    A fall takes one or two of at most 480 block means and at least max(30 % of the range, 5 robust sigmas of the
    steps between blocks, 3 quanta). There is a sawtooth if there are two falls or more, at least 4 blocks apart
    (median), at most half as many abrupt rises, a climb within the cycles (mean correlation with time of 0.5) that is
    straight (what a line leaves of it is at most a quarter of the fall, in the median, of each with two or three
    falls), a median that lies above the floors by a quarter of the range, and falls that together take back at least
    as much as remains at the end: a few dips in what climbs are no sawtooth.
    """
    number = min(_FINE, value.size // 2)
    if number < _MIN_BLOCKS:
        return None
    edges = np.linspace(begin_s, end_s, number + 1)
    positions = np.searchsorted(time_s, edges[:-1])
    counts = np.diff(np.append(positions, value.size))
    filled = np.flatnonzero(counts > 0)
    if filled.size < _MIN_BLOCKS:
        return None
    means = np.add.reduceat(value, positions[filled]) / counts[filled]
    jump, spread = abrupt(means, quantum)
    if not jump > 0:
        return None
    falls, rises = places(means, -jump), places(means, jump)
    if falls.size < 2 or float(np.median(np.diff(falls))) < _APART or rises.size > _RISES * falls.size:
        return None
    # a cycle that has just begun is noise: each counts by its length, also the one that was cut by the begin
    parts = [means[begin:end] for begin, end in pairwise([0, *falls.tolist(), means.size])]
    long = [part for part in parts if part.size >= _SHORT]
    if not long or sum(part.size * climb_of(part) for part in parts) < _CLIMB * means.size:
        return None
    # each cycle above its own floor: the floors of a leak lie below one another, and half of them above the middle
    above = [float(np.median(part) - np.sort(part)[:2].mean()) for part in parts[1:] if part.size >= _SHORT]
    if not above or float(np.median(above)) < _ABOVE * spread:
        return None
    pace = max(float(np.median([steepness(part) for part in long])), 0.0)
    heights = np.array([_height(before, after, pace) for before, after in pairwise(parts)])
    left = [off_line(part) / height if height > 0 else 0.0 for part, height in zip(parts, heights, strict=False)]
    bent = max(left) if falls.size < _HABIT else float(np.median(left))
    if float(heights.sum()) < net_change(means) or bent > _STRAIGHT:
        return None
    when = np.array([_moment(time_s, value, edges[max(i - 2, 0)], edges[i + 1]) for i in filled[falls].tolist()])
    climb = float(np.median(heights[1:] / np.diff(when)))
    peak = max(float(np.sort(part)[-_RIM:].mean()) for part in parts[:-1])
    return Cycles(when, heights, climb, peak, float(np.diff([begin_s, *when.tolist()]).max()))


def _pace(time_s: Floats, value: Floats) -> float:
    """The slope of the straight line per second, at least 0; 0 for fewer than three readings."""
    if value.size < _SHORT:
        return 0.0
    since = time_s - time_s.mean()
    return max(float(since @ value) / float(since @ since), 0.0)


def _height(before: Floats, after: Floats, pace: float) -> float:
    """How high the fall between two cycles is: from the last few blocks to the first few, the climb between put back.

    The blocks at the fall itself may hold some of both sides.
    """
    some = max(1, min(_RIM, (before.size - 1) // 2, (after.size - 1) // 2))
    high = before[-some - 1 : -1] if before.size > some else before
    low = after[1 : some + 1] if after.size > some else after
    return max(float(high.mean() - low.mean()) + pace * (some + 1), 0.0)


def _moment(time_s: Floats, value: Floats, begin_s: float, end_s: float) -> float:
    """When the largest fall from one reading to the next is over."""
    first, last = np.searchsorted(time_s, (begin_s, end_s)).tolist()
    if last - first < 2:
        return begin_s
    return float(time_s[first + 1 + int(np.argmin(np.diff(value[first:last])))])
