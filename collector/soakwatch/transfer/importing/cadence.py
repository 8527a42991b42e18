"""The interval of imported samples, the polls it implies, and which samples are missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

_NEAR = 0.5  # of an interval: nearer readings belong to the same poll; a gap over 1.5 lacks a poll
_REGULAR = 0.8
_UNKNOWN_NS = 10**9
_MAX_LOST_RATIO = 20  # times the answered polls: a gap of a year in a table of seconds is not filled poll by poll
_MIN_LOST_BOUND = 100_000


@dataclass(frozen=True, slots=True, eq=False)
class Polls:
    """The polls that samples imply: times, whether each was answered (both shape (n,)), and their interval.

    If not ``regular``, the samples have no interval, and what is missing is unknown.
    """

    time_ns: Ints
    answered: NDArray[np.bool_]
    interval_ns: int
    regular: bool


def interval_of(time_ns: Ints) -> tuple[int, bool]:
    """The median distance of samples if most are near it, else the mean; and whether it is regular.

    >>> interval_of(np.array([0, 10, 20, 50, 60, 70])), interval_of(np.array([0, 1, 10, 11, 20]))
    ((10, True), (5, False))
    """
    steps = np.diff(time_ns)
    if not steps.size:
        return _UNKNOWN_NS, False
    median = float(np.median(steps))
    regular = float(np.mean(np.abs(steps - median) <= _NEAR * median)) >= _REGULAR
    mean = float(time_ns[-1] - time_ns[0]) / steps.size
    return max(1, round(median if regular else mean)), regular


def polls_of(axes: Sequence[Ints], begin_ns: int | None = None, end_ns: int | None = None) -> Polls:
    """The polls of series that were read together: their times, near ones joined, missing ones filled in.

    With ``begin_ns`` and ``end_ns`` polls are due between these, not only from the first to the last sample.
    """
    longest = max(axes, key=len)
    interval_ns, regular = interval_of(longest)
    time_ns = longest if all(axis is longest for axis in axes) else np.unique(np.concatenate(axes))
    if regular and time_ns is not longest:
        time_ns = _thinned(time_ns, round(_NEAR * interval_ns))
    answered = np.ones(time_ns.size, dtype=np.bool_)
    if not regular:
        return Polls(time_ns, answered, interval_ns, regular=False)
    steps = np.diff(time_ns)
    lacking = np.where(steps > (1 + _NEAR) * interval_ns, np.round(steps / interval_ns).astype(np.int64) - 1, 0)
    most = max(_MIN_LOST_BOUND, _MAX_LOST_RATIO * time_ns.size)
    if lacking.sum() > most:
        lacking = np.maximum(lacking > 0, (lacking * (most / lacking.sum())).astype(np.int64))
    before, behind = _outside(time_ns, interval_ns, begin_ns, end_ns, int(most))
    if lacking.any():
        begins, many = time_ns[:-1][lacking > 0], lacking[lacking > 0]
        apart = steps[lacking > 0] // (many + 1)
        which = np.repeat(np.arange(many.size), many)
        nth = np.arange(which.size) - np.repeat(np.cumsum(many) - many, many) + 1
        filled = begins[which] + apart[which] * nth
        order = np.argsort(np.concatenate([time_ns, filled]), kind="stable")
        answered = np.concatenate([answered, np.zeros(filled.size, dtype=np.bool_)])[order]
        time_ns = np.concatenate([time_ns, filled])[order]
    lost = np.zeros(before.size, dtype=np.bool_), np.zeros(behind.size, dtype=np.bool_)
    return Polls(
        np.concatenate([before, time_ns, behind]),
        np.concatenate([lost[0], answered, lost[1]]),
        interval_ns,
        regular=True,
    )


def _outside(time_ns: Ints, interval_ns: int, begin_ns: int | None, end_ns: int | None, most: int) -> tuple[Ints, Ints]:
    """The due times before the first sample and after the last."""
    first, last = int(time_ns[0]), int(time_ns[-1])
    early = 0 if begin_ns is None else max(0, first - begin_ns - round(_NEAR * interval_ns)) // interval_ns
    late = 0 if end_ns is None else max(0, end_ns - last - round(_NEAR * interval_ns)) // interval_ns
    early, late = min(early, most), min(late, most)
    return first - interval_ns * np.arange(early, 0, -1), last + interval_ns * np.arange(1, late + 1)


def _thinned(time_ns: Ints, near_ns: int) -> Ints:
    """The times without those less than ``near_ns`` after the last one kept."""
    if time_ns.size < 2 or bool((np.diff(time_ns) >= near_ns).all()):
        return time_ns
    kept, index = [0], 0
    while (index := int(np.searchsorted(time_ns, time_ns[index] + near_ns))) < time_ns.size:
        kept.append(index)
    return time_ns[kept]
