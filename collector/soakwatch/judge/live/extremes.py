"""Which series went beyond all that they showed for half an hour: these are judged before their turn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from soakwatch.judge.live.raw_values import Floats, floats
from soakwatch.judge.live.table_sets import TableSets, set_of
from soakwatch.record.follow import Table

_HALF_HOUR_NS = 1_800_000_000_000


@dataclass(slots=True)
class _Bounds:
    """The lowest and the highest reading of each series in this half-hour (row 0) and in the one before (row 1)."""

    half: int
    least: Floats
    most: Floats


class Extremes:
    """Remembers the lowest and the highest reading of every series in this half-hour and in the one before."""

    def __init__(self) -> None:
        self._bounds = TableSets[_Bounds]()

    def add(self, source: int, table: Table) -> set[int]:
        """Take readings in order of time; returns the series that went beyond, or that are new."""
        if not table.time_ns.size:
            return set()
        values = floats(table.kinds, table.words)
        least, most = np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0)
        half, key = int(table.time_ns[-1]) // _HALF_HOUR_NS, set_of(table)
        known = self._bounds.get(source, key)
        if known is None:
            nothing = np.full((2, len(table.series)), np.nan)
            known = _Bounds(half, nothing, nothing.copy())
        self._bounds.keep(source, key, known)
        if half > known.half:
            known.least, known.most = (np.roll(some, 1, axis=0) for some in (known.least, known.most))
            known.least[0] = known.most[0] = np.nan
            known.half = half
        low, high = np.fmin.reduce(known.least, axis=0), np.fmax.reduce(known.most, axis=0)
        beyond: NDArray[np.bool_] = (least < low) | (most > high) | np.isnan(low)
        known.least[0], known.most[0] = np.fmin(known.least[0], least), np.fmax(known.most[0], most)
        return {table.series[column] for column in np.flatnonzero(beyond).tolist()}
