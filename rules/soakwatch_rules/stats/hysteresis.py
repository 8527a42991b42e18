"""Stretches of readings: runs of true; opened by a high reading, or by N of the last M, and closed by a low one."""

from __future__ import annotations

import numpy as np

from soakwatch_model.series import Floats, Ints, Mask


def true_runs(flags: Mask) -> Ints:
    """Index pairs [open, close), shape (k, 2), of the runs of true.

    >>> true_runs(np.array([True, False, True, True])).tolist()
    [[0, 1], [2, 4]]
    """
    edges: Ints = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return edges.reshape(-1, 2)


def stretches(value: Floats, enter: float, leave: float) -> Ints:
    """Index pairs [open, close), shape (k, 2): open at a reading >= enter, close at the next reading < leave.

    A stretch that does not close ends with the readings. A plateau that wavers around ``enter`` is one stretch.

    >>> stretches(np.array([0.1, 0.96, 0.9, 0.97, 0.2, 0.99]), 0.95, 0.85).tolist()
    [[1, 4], [5, 6]]
    """
    high, low = np.flatnonzero(value >= enter), np.flatnonzero(value < leave)
    if not high.size:
        return np.empty((0, 2), dtype=np.int64)
    after = np.searchsorted(low, high)
    after, first = np.unique(after, return_index=True)
    close = np.append(low, value.size)[after]
    pairs: Ints = np.stack([high[first], close], axis=1).astype(np.int64)
    return pairs


def n_of_last_m(value: Floats, enter: float, leave: float, needed: int, of: int) -> list[tuple[int, int, int]]:
    """Triples (first, open, close): ``open`` is the first reading at which ``needed`` of the last ``of`` are >= enter.

    ``first`` is the earliest of these, ``close`` the next reading < leave, or the number of readings. After it the
    count starts again.

    >>> n_of_last_m(np.array([0.0, 9.0, 0.0, 9.0, 9.0, 8.0, 7.0, 9.0]), 9.0, 8.0, 3, 5)
    [(1, 4, 6)]
    """
    high = value >= enter
    total = np.append(0, np.cumsum(high))
    positions = np.arange(value.size)
    ready = np.flatnonzero(high & (total[1:] - total[np.maximum(positions + 1 - of, 0)] >= needed))
    low = np.flatnonzero(value < leave)
    matches: list[tuple[int, int, int]] = []
    close = next_ready = 0
    while next_ready < ready.size:
        opened = int(ready[next_ready])
        begin = max(close, opened + 1 - of)
        if total[opened + 1] - total[begin] < needed:  # some of them were before the last close
            next_ready += 1
            continue
        after = int(np.searchsorted(low, opened))
        close = int(low[after]) if after < low.size else int(value.size)
        matches.append((begin + int(np.argmax(high[begin:])), opened, close))
        next_ready = int(np.searchsorted(ready, close))
    return matches
