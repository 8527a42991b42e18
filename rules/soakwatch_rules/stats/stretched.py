"""A series in blocks of time, and the runs of blocks that are far from what was usual before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from soakwatch_model.series import Floats, Ints, Mask, Series
from soakwatch_rules.stats.hysteresis import stretches
from soakwatch_rules.stats.slowdown import block_medians

_MOST: Final = 288  # blocks of a run; in a day they last five minutes
_READINGS: Final = 3  # readings that a block should hold


@dataclass(frozen=True, slots=True, eq=False)
class PacedBlocks:
    """Blocks of equal length from ``begin_ns`` on: the counts per second of a counter, or the median of a gauge; NaN if
    too little was read."""

    begin_ns: int
    block_ns: int
    value: Floats

    @property
    def block_s(self) -> float:
        """The length of a block in seconds."""
        return self.block_ns * 1e-9

    @property
    def begins_ns(self) -> Ints:
        """The begin of each block."""
        return self.begin_ns + self.block_ns * np.arange(self.value.size, dtype=np.int64)


def block_length(seconds: float, apart_s: float, least_s: float) -> float:
    """The length of a window's blocks in seconds: at least three readings and ``least_s``, and at most 288 blocks."""
    return max(least_s, _READINGS * apart_s, seconds / _MOST)


def paced_blocks(series: Series, begin_ns: int, end_ns: int, block_s: float) -> PacedBlocks:
    """A series in blocks; for a counter its pace, to which a restart adds nothing.

    A block needs readings over half of it. A counter's block runs from its first reading to the first of the next
    block, so that nothing between two blocks is lost.

    >>> from soakwatch_rules.signals import readings
    >>> counted = readings("system.tcp.retransmits", np.arange(12.0) * 10, 10.0)
    >>> paced_blocks(counted, 0, 120 * 10**9, 40.0).value.round(9).tolist()
    [1.0, 1.0, 1.0]
    """
    block_ns = max(round(block_s * 1e9), 1)
    number = max((end_ns - begin_ns) // block_ns, 1)
    edges = begin_ns + block_ns * np.arange(number + 1, dtype=np.int64)
    result = np.full(number, np.nan)
    if len(series) < 2:
        return PacedBlocks(begin_ns, block_ns, result)
    places = np.searchsorted(series.time_ns, edges)
    if series.trait.kind != "counter":
        part = slice(int(places[0]), int(places[-1]))
        indices = (series.time_ns[part] - begin_ns) // block_ns
        return PacedBlocks(begin_ns, block_ns, block_medians(indices, series.values[part], number, 1))
    steps = series.increments().values
    total = np.concatenate([[0.0], np.cumsum(np.nan_to_num(steps))])
    at = np.minimum(places, len(series) - 1)
    seconds = np.diff(series.time_ns[at]) * 1e-9
    seen = seconds >= 0.5 * block_s
    result[seen] = np.diff(total[at])[seen] / seconds[seen]
    return PacedBlocks(begin_ns, block_ns, result)


def runs_of(value: Floats, known: Mask, enter: float, leave: float) -> list[tuple[int, int]]:
    """The runs of blocks, first and close, from one that reaches ``enter`` to the last before one below ``leave``;
    unknown blocks do not interrupt a run.

    >>> runs_of(np.array([0.0, 9.0, 6.0, np.nan, 9.0, 0.0]), np.array([1, 1, 1, 0, 1, 1]) > 0, 8.0, 5.0)
    [(1, 5)]
    """
    places = np.flatnonzero(known)
    pairs = stretches(value[places], enter, leave).tolist()
    return [(int(places[begin]), int(places[end - 1]) + 1) for begin, end in pairs]
