"""Saturation: stretches whose mean over a given time is at the top."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_GAP = 3.0  # median distances: what a reading speaks for at most
_SEEN = 0.9  # share of a window that readings must speak for
_ROUNDED = 1e-9  # a mean is a difference of sums


def cover(time_ns: NDArray[np.int64], apart_s: float) -> NDArray[np.float64]:
    """The seconds before each reading that it speaks for: since the one before it, three distances at most.

    >>> cover(np.array([0, 10, 20, 90]) * 10**9, 10.0).tolist()
    [10.0, 10.0, 10.0, 30.0]
    """
    made: NDArray[np.float64] = np.minimum(np.append(apart_s, np.diff(time_ns) * 1e-9), _GAP * apart_s)
    return made


class Means:
    """Means over windows of readings that each speak for ``cover_s`` seconds before them; readings are finite."""

    __slots__ = ("_area", "_knots", "_seen", "_zero_ns")

    def __init__(self, time_ns: NDArray[np.int64], value: NDArray[np.float64], cover_s: NDArray[np.float64]) -> None:
        self._zero_ns = int(time_ns[0])
        end = (time_ns - time_ns[0]) * 1e-9
        self._knots = np.stack([end - cover_s, end], axis=1).ravel()
        self._area, self._seen = (
            np.repeat(np.append(0.0, np.cumsum(each)), 2)[1:-1] for each in (value * cover_s, cover_s)
        )

    def highest(self, seconds: float) -> float | None:
        """The highest mean over a window of this length that was seen nearly whole; None without such a window."""
        mean, _ = self._windows(seconds)
        return float(mean.max()) if mean.size else None

    def above(self, seconds: float, level: float) -> list[tuple[int, int]]:
        """Where a mean over ``seconds`` is at least ``level``: the union of such windows, as begin and end in ns.

        A mean of readings that each hold for a while is greatest in a window that begins or ends with a reading, so
        these are looked at.
        """
        mean, begin = self._windows(seconds)
        at = np.sort(begin[mean >= level - _ROUNDED])
        if not at.size:
            return []
        first = np.flatnonzero(np.append(True, np.diff(at) > seconds))
        last = np.append(first[1:], at.size) - 1
        return [
            (self._zero_ns + round(at[i] * 1e9), self._zero_ns + round((at[j] + seconds) * 1e9))
            for i, j in zip(first.tolist(), last.tolist(), strict=True)
        ]

    def _windows(self, seconds: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        begin = np.concatenate([self._knots[::2], self._knots[1::2] - seconds])
        seen = self._between(self._seen, begin, seconds)
        whole = seen >= _SEEN * seconds
        begin = begin[whole]
        return self._between(self._area, begin, seconds) / seen[whole], begin

    def _between(self, sums: NDArray[np.float64], begin: NDArray[np.float64], seconds: float) -> NDArray[np.float64]:
        made: NDArray[np.float64] = np.interp(begin + seconds, self._knots, sums) - np.interp(begin, self._knots, sums)
        return made
