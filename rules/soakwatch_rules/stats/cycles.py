"""Sawtooth: its habitual falls, and the series without it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from soakwatch_model.series import Floats
from soakwatch_rules.stats.falls import abrupt_height, jump_blocks, line_residual, slope_per_block, time_correlation
from soakwatch_rules.stats.medians import median
from soakwatch_rules.stats.robust_level import net_change

_FINE: Final = 480  # blocks in which falls are searched
_MIN_BLOCKS: Final = 32
_APART: Final = 4  # blocks between falls: faster cycles vanish in the block means
_RISES: Final = 0.5  # abrupt rises per abrupt fall: batches and level switches rise abruptly too
_CLIMB: Final = 0.5  # correlation with time within a cycle
_ABOVE: Final = 0.25  # share of the range between the floors and the median
_STRAIGHT: Final = 0.25  # share of its fall that a straight line may leave of a climb
_AFTER: Final = 50  # one reading in this many gives the level after a fall
_OVERDUE: Final = 1.5  # times the longest cycle: a sawtooth that has not fallen for this long has ended
_HABIT: Final = 4  # falls from which a single climb may differ
_RIM: Final = 3  # blocks on each side that give the height of a fall
_SHORT: Final = 3  # blocks: shorter stretches show nothing


@dataclass(frozen=True, slots=True, eq=False)
class Cycles:
    """The falls of a sawtooth: their times and ``heights``.

    ``climb`` is the usual climb per second between two falls, ``peak`` the highest level before one, ``longest`` the
    longest time without one, up to the last.
    """

    falls: Floats
    heights: Floats
    climb: float
    peak: float
    longest: float

    @property
    def height(self) -> float:
        """The usual height of a fall."""
        return median(self.heights)

    def floors_rise(self, time_s: Floats, value: Floats) -> float:
        """How much higher the values after the last fall are than after the first (medians of a fiftieth of them)."""
        begins = np.searchsorted(time_s, (self.falls[0], self.falls[-1])).tolist()
        some = max(1, value.size // _AFTER)
        first, last = (median(value[begin : begin + some]) for begin in begins)
        return last - first

    def taken_out(self, time_s: Floats, value: Floats) -> Floats:
        """The readings without the sawtooth, so that they move as its floors do.

        From each cycle a straight climb is subtracted that ends as high as the fall after it, so that the fall
        disappears and the cycle ends where the next begins. The first, whose begin was not seen, and the last, which
        has not fallen yet, climb as usual, the last up to the highest fall; if it is overdue, the sawtooth has ended
        and nothing is subtracted. Wrong for climbs that are not straight: their bends stay, once a cycle.
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
    """The cycles of a sawtooth; None if there is none.

    A fall takes one or two of at most 480 block means and is at least max(30 % of the range, 5 robust sigmas of the
    steps between blocks, 3 quanta). A sawtooth has two falls or more, at least 4 blocks apart (median); at most half as
    many abrupt rises; a climb within the cycles (mean correlation with time of 0.5) that is straight (a line leaves at
    most a quarter of the fall, in the median, for two or three falls in each cycle); a median above the floors by a
    quarter of the range; and falls that together take back at least what remains at the end, since a few dips in a
    climb are no sawtooth.
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
    jump, spread = abrupt_height(means, quantum)
    if not jump > 0:
        return None
    falls, rises = jump_blocks(means, -jump), jump_blocks(means, jump)
    if falls.size < 2 or median(np.diff(falls)) < _APART or rises.size > _RISES * falls.size:
        return None
    # cycles count by their length: a cycle that has just begun is noise, and the first may have been cut
    parts = [means[begin:end] for begin, end in pairwise([0, *falls.tolist(), means.size])]
    long = [part for part in parts if part.size >= _SHORT]
    if not long or sum(part.size * time_correlation(part) for part in parts) < _CLIMB * means.size:
        return None
    # each cycle above its own floor, because the floors of a leak lie below one another
    above = [float(median(part) - np.sort(part)[:2].mean()) for part in parts[1:] if part.size >= _SHORT]
    if not above or median(above) < _ABOVE * spread:
        return None
    pace = max(median([slope_per_block(part) for part in long]), 0.0)
    heights = np.array([_height(before, after, pace) for before, after in pairwise(parts)])
    left = [line_residual(part) / height if height > 0 else 0.0 for part, height in zip(parts, heights, strict=False)]
    bent = max(left) if falls.size < _HABIT else median(left)
    if float(heights.sum()) < net_change(means) or bent > _STRAIGHT:
        return None
    when = np.array([_moment(time_s, value, edges[max(i - 2, 0)], edges[i + 1]) for i in filled[falls].tolist()])
    climb = median(heights[1:] / np.diff(when))
    peak = max(float(np.sort(part)[-_RIM:].mean()) for part in parts[:-1])
    return Cycles(when, heights, climb, peak, float(np.diff([begin_s, *when.tolist()]).max()))


def _pace(time_s: Floats, value: Floats) -> float:
    """The slope of the straight line per second, at least 0; 0 for fewer than three readings."""
    if value.size < _SHORT:
        return 0.0
    since = time_s - time_s.mean()
    return max(float(since @ value) / float(since @ since), 0.0)


def _height(before: Floats, after: Floats, pace: float) -> float:
    """The height of the fall between two cycles: from the last few blocks to the first few, corrected for the climb
    between them. The blocks at the fall itself may contain both sides and are left out."""
    some = max(1, min(_RIM, (before.size - 1) // 2, (after.size - 1) // 2))
    high = before[-some - 1 : -1] if before.size > some else before
    low = after[1 : some + 1] if after.size > some else after
    return max(float(high.mean() - low.mean()) + pace * (some + 1), 0.0)


def _moment(time_s: Floats, value: Floats, begin_s: float, end_s: float) -> float:
    """The time just after the largest fall between neighbouring readings."""
    first, last = np.searchsorted(time_s, (begin_s, end_s)).tolist()
    if last - first < 2:
        return begin_s
    return float(time_s[first + 1 + int(np.argmin(np.diff(value[first:last])))])
