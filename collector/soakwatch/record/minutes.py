"""Roll-ups: what a series did in each minute, for readers of days that do not need every second.

Each minute with readings is a row: their number and one figure. For a gauge the figure is their sum, so that rows of
successive stretches add up and give the mean. For a counter or a state it is the last reading, since the mean of a
counter that restarted means nothing. A minute without readings has no row: missing is never zero.

What it gets wrong: if a late reading is the last of its minute after all, the row of a counter keeps the reading that
came in time; and if two sources brought a reading at one time, the row of a gauge counts both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from soakwatch.record.model import Ints, Values

MINUTE_NS = 60_000_000_000

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Minutes:
    """Rows in order of time, shape (n,) each: the number of the minute (0 began in 1970, UTC), how many readings it
    has, and their sum or the last of them."""

    number: Ints
    count: Ints
    figure: Floats

    def __len__(self) -> int:
        return int(self.number.size)


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """The minutes of sorted times, with the positions of each minute's first reading and of the one after its last."""

    number: Ints
    starts: Ints
    ends: Ints


NO_MINUTES = Minutes(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


def starts_of(time_ns: Ints, begin_ns: int = 0) -> tuple[Ints, Ints]:
    """The minutes since ``begin_ns`` that have readings, and the position of the first reading of each.

    The times must be in order.

    >>> [part.tolist() for part in starts_of(np.array([0, 59, 60, 200], np.int64) * 10**9)]
    [[0, 1, 3], [0, 2, 3]]
    """
    number = (time_ns - begin_ns) // MINUTE_NS
    starts = np.flatnonzero(np.append(True, number[1:] != number[:-1])[: number.size])
    return number[starts], starts


def cut(time_ns: Ints) -> Cut | None:
    """The ``Cut`` of some times, for ``rolled_up`` of all series that share them; None if they are not in order."""
    if not time_ns.size or not bool((time_ns[1:] >= time_ns[:-1]).all()):
        return None
    number, starts = starts_of(time_ns)
    return Cut(number, starts, np.append(starts[1:], time_ns.size))


def rolled_up(time_ns: Ints, values: Values, *, adds: bool, at: Cut | None = None) -> Minutes:
    """The minutes of some readings, which may be in any order. ``adds``: they are of a gauge; ``at``: the ``cut`` of
    their times, if it is known.

    NaN and infinities are left out.
    """
    if at is not None and (values.dtype.kind != "f" or bool(np.isfinite(values).all())):
        return _cut_up(at, values, adds=adds)
    if values.dtype.kind == "f" and not (good := np.isfinite(values)).all():
        time_ns, values = time_ns[good], values[good]
    if not time_ns.size:
        return NO_MINUTES
    if not bool((time_ns[1:] >= time_ns[:-1]).all()):  # polls came late
        order = np.argsort(time_ns, kind="stable")
        time_ns, values = time_ns[order], values[order]
    in_order = cut(time_ns)
    assert in_order is not None
    return _cut_up(in_order, values, adds=adds)


def _cut_up(at: Cut, values: Values, *, adds: bool) -> Minutes:
    if not adds:
        return Minutes(at.number, at.ends - at.starts, values[at.ends - 1].astype(np.float64))
    with np.errstate(over="ignore", invalid="ignore"):
        figure = np.add.reduceat(values.astype(np.float64, copy=False), at.starts)
    return Minutes(at.number, at.ends - at.starts, figure)


def merged(parts: Sequence[Minutes], *, adds: bool) -> Minutes:
    """Join the rows of several stretches, given in the order in which they came.

    If several have the same minute, sums are added, and the last reading is that of the stretch that came last, unless
    it came late (it begins before the end of an earlier one).
    """
    parts = [part for part in parts if len(part)]
    if len(parts) < 2:
        return parts[0] if parts else NO_MINUTES
    number, count, figure = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("number", "count", "figure")
    )
    if bool((number[1:] > number[:-1]).all()):
        return Minutes(number, count, figure)
    newest = np.maximum.accumulate([part.number[-1] for part in parts])
    in_time = [True, *(part.number[0] >= before for part, before in zip(parts[1:], newest[:-1], strict=True))]
    order = np.lexsort((np.repeat(in_time, [len(part) for part in parts]), number))  # stable: as they came
    return _folded(number[order], count[order], figure[order], adds=adds)


def coarser(minutes: Minutes, times: int, *, adds: bool) -> Minutes:
    """Rows of ``times`` minutes each; their numbers count such stretches since 1970."""
    if times == 1 or not len(minutes):
        return minutes
    return _folded(minutes.number // times, minutes.count, minutes.figure, adds=adds)


def _folded(number: Ints, count: Ints, figure: Floats, *, adds: bool) -> Minutes:
    """Join rows that have the same number; the numbers must be in order."""
    starts = np.flatnonzero(np.append(True, number[1:] != number[:-1]))
    counts = np.add.reduceat(count, starts)
    if not adds:
        return Minutes(number[starts], counts, figure[np.append(starts[1:], number.size) - 1])
    with np.errstate(over="ignore", invalid="ignore"):
        return Minutes(number[starts], counts, np.add.reduceat(figure, starts))
