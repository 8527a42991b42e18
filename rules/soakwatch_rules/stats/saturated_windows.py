"""Saturation: stretches whose mean over a given time reaches a level."""

from __future__ import annotations

import numpy as np

from soakwatch_model.series import Floats, Ints

_GAP = 3.0  # median distances that a reading covers at most
_SEEN = 0.9  # share of a window that readings must cover
_TOUCH_S = 1e-6  # windows this close touch
_ROUNDED = 1e-9  # a mean is a difference of sums, with rounding errors


def covered_seconds(time_ns: Ints, apart_s: float) -> Floats:
    """The seconds before each reading that it covers: since the previous one, at most three distances.

    >>> covered_seconds(np.array([0, 10, 20, 90]) * 10**9, 10.0).tolist()
    [10.0, 10.0, 10.0, 30.0]
    """
    result: Floats = np.minimum(np.append(apart_s, np.diff(time_ns) * 1e-9), _GAP * apart_s)
    return result


class Windows:
    """Windows of one length over readings that each cover ``cover_s`` seconds before them; nearly covered ones count.

    The mean is greatest in a window that begins or ends with a reading, so only these are examined. Their positions
    depend on the times alone: series that were read together share them.
    """

    __slots__ = ("_begin", "_cover", "_edges", "_seconds", "_seen", "_time_ns", "_wide")

    def __init__(self, time_ns: Ints, cover_s: Floats, seconds: float) -> None:
        self._time_ns, self._cover, self._seconds = time_ns, cover_s, seconds
        end = (time_ns - time_ns[0]) * 1e-9
        start = end - cover_s
        self._wide = end - start
        begin = np.concatenate([start, end - seconds])
        self._edges = tuple(_samples_before(positions, start, end) for positions in (begin + seconds, begin))
        seen = self._between(cover_s)
        whole = seen >= _SEEN * seconds
        if not bool(whole.all()):
            begin, seen = begin[whole], seen[whole]
            self._edges = tuple((number[whole], after[whole]) for number, after in self._edges)
        self._begin, self._seen = begin, seen

    def fits(self, time_ns: Ints, cover_s: Floats) -> bool:
        """Whether these are also the windows of other readings."""
        return np.array_equal(time_ns, self._time_ns) and np.array_equal(cover_s, self._cover)

    def means(self, value: Floats) -> Floats:
        """The mean of each window; the values must be finite."""
        result: Floats = self._between(value * self._cover) / self._seen
        return result

    def union(self, mean: Floats, level: float) -> list[tuple[int, int]]:
        """The windows with a mean of at least ``level``, joined if they touch: begin and end in ns."""
        positions = np.sort(self._begin[mean >= level - _ROUNDED])
        if not positions.size:
            return []
        first = np.flatnonzero(np.append(True, np.diff(positions) > self._seconds + _TOUCH_S))
        last = np.append(first[1:], positions.size) - 1
        zero_ns = int(self._time_ns[0])
        return [
            (zero_ns + round(positions[i] * 1e9), zero_ns + round((positions[j] + self._seconds) * 1e9))
            for i, j in zip(first.tolist(), last.tolist(), strict=True)
        ]

    def _between(self, each: Floats) -> Floats:
        """The sum over each window of what the readings stand for."""
        total = np.append(0.0, np.cumsum(each))
        # a final rate of 0: nothing follows the last reading
        rate = np.append(np.divide(np.diff(total), self._wide, out=np.zeros(each.size), where=self._wide > 0), 0.0)
        high, low = (rate[number] * after + total[number] for number, after in self._edges)
        result: Floats = high - low
        return result


def _samples_before(positions: Floats, start: Floats, end: Floats) -> tuple[Ints, Floats]:
    """How many readings end before each moment, and how many seconds of the next one lie before it."""
    number = np.searchsorted(end, positions, side="right")
    after = np.maximum(positions - np.append(start, np.inf)[number], 0.0)
    return number, after


class Means:
    """Means over windows of finite readings that each cover ``cover_s`` seconds before them."""

    __slots__ = ("_cover", "_time_ns", "_value")

    def __init__(self, time_ns: Ints, value: Floats, cover_s: Floats) -> None:
        self._time_ns, self._value, self._cover = time_ns, value, cover_s

    def highest(self, seconds: float) -> float | None:
        """The highest mean over a window of this length that is nearly covered; None without such a window."""
        mean = Windows(self._time_ns, self._cover, seconds).means(self._value)
        return float(mean.max()) if mean.size else None
