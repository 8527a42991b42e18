"""The last hour of every series as it was read, and the baseline phase, which rules compare it with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from soakwatch.judge.live.packed_rows import PackedRows, Part
from soakwatch.judge.live.raw_values import Floats, floats
from soakwatch.record.follow import Owner, Table
from soakwatch.record.merge import between, unified
from soakwatch_model.window import Window

HOUR_NS = 3_600_000_000_000
MAX_ROWS = 36_000  # an hour at ten readings a second; of faster ones the last hour is shorter
_BASELINE_NS = 2 * HOUR_NS  # of the baseline, the end


class _Ring:
    """The readings of some series that always come together: those of the last hour, and of the baseline."""

    def __init__(self, table: Table) -> None:
        columns = len(table.series)
        self._rows, self._kept = PackedRows(table.kinds), PackedRows(table.kinds)
        self._half = -1  # number of the half-hour of the newest reading
        self._least = np.full((2, columns), np.nan)  # in this half-hour and in the one before
        self._most = np.full((2, columns), np.nan)

    def add(self, table: Table, kept: Collection[Window]) -> NDArray[np.bool_]:
        """Append rows in order of time; what is older than an hour goes, but for the windows that are kept.

        Rows that come late are put where they belong. Returns which columns went beyond everything that the last
        half-hour, or more, had seen of them.
        """
        self._rows.add(table)
        self._rows.forget(self._rows.last_ns - HOUR_NS, MAX_ROWS)
        for window in kept:
            low, high = np.searchsorted(table.time_ns, [window.begin_ns, window.end_ns])
            if high > low:
                self._kept.add(Table(table.series, table.kinds, table.time_ns[low:high], table.words[low:high]))
                self._kept.forget(self._kept.last_ns - _BASELINE_NS, MAX_ROWS)
        return self._beyond(floats(table.kinds, table.words), int(table.time_ns[-1]) // (HOUR_NS // 2))

    @property
    def last_ns(self) -> int:
        """The time of the newest row."""
        return self._rows.last_ns

    @property
    def nbytes(self) -> int:
        """What it holds in memory."""
        return self._rows.nbytes + self._kept.nbytes

    def parts(self, column: int, begin_ns: int, end_ns: int, most: int | None = None) -> list[Part]:
        """The readings of one column in begin <= time < end, of them the last ``most``."""
        parts = self._rows.parts(column, begin_ns, end_ns, most)
        first_ns = self._rows.first_ns
        if most is None and begin_ns < first_ns and len(self._kept):
            parts = self._kept.parts(column, begin_ns, min(end_ns, first_ns)) + parts
        return parts

    def _beyond(self, values: Floats, half: int) -> NDArray[np.bool_]:
        least, most = np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0)
        if half > self._half:
            self._least, self._most = (np.roll(some, 1, axis=0) for some in (self._least, self._most))
            self._least[0] = self._most[0] = np.nan
            self._half = half
        low, high = np.fmin.reduce(self._least, axis=0), np.fmax.reduce(self._most, axis=0)
        beyond: NDArray[np.bool_] = (least < low) | (most > high) | np.isnan(low)
        self._least[0], self._most[0] = np.fmin(self._least[0], least), np.fmax(self._most[0], most)
        return beyond


class Hour:
    """The rings of all sources: one for each set of series that come together."""

    def __init__(self) -> None:
        self._rings: dict[tuple[int, tuple[int, ...], str], _Ring] = {}
        self._places: defaultdict[int, list[tuple[int, _Ring, int]]] = defaultdict(list)

    def add(self, source: int, table: Table, kept: Collection[Window] = ()) -> set[int]:
        """Take the readings of a table; those in the windows ``kept`` stay for good (their last two hours).

        Returns the series that went beyond what their last half-hour had seen.
        """
        if not table.time_ns.size:
            return set()
        key = source, table.series, table.kinds
        ring = self._rings.get(key)
        if ring is None:
            ring = self._rings[key] = _Ring(table)
            for column, series in enumerate(table.series):
                self._places[series].append((source, ring, column))
        beyond = ring.add(table, kept)
        return {table.series[column] for column in np.flatnonzero(beyond).tolist()}

    def forget(self, before_ns: int) -> None:
        """Drop what has not come for so long: sets of series that no poll brings any more."""
        for key in [key for key, ring in self._rings.items() if ring.last_ns < before_ns]:
            gone = self._rings.pop(key)
            for series in set(key[1]):
                self._places[series] = [entry for entry in self._places[series] if entry[1] is not gone]

    def read(
        self, series: int, begin_ns: int, end_ns: int, most: int | None = None, owner: Owner | None = None
    ) -> Part:
        """Times and readings of a series, strictly increasing in time; of other sources than its owner only those
        that it was silent before."""
        places = self._places.get(series, ())
        if owner is None or len({source for source, _, _ in places}) < 2:
            return joined([part for _, ring, column in places for part in ring.parts(column, begin_ns, end_ns, most)])
        parts = [
            (source, part)
            for source, ring, column in places
            for part in ring.parts(column, begin_ns - owner.silence_ns, end_ns)
        ]
        times, values = between(*owner.merged(parts), begin_ns, end_ns)
        return (times, values) if most is None else (times[-most:], values[-most:])

    @property
    def nbytes(self) -> int:
        """What it holds in memory."""
        return sum(ring.nbytes for ring in self._rings.values())


def joined(parts: Collection[Part]) -> Part:
    """Several pieces of a series as one, in order of time, each time once."""
    if not parts:
        return np.empty(0, np.int64), np.empty(0, np.float64)
    if len(parts) == 1:
        return next(iter(parts))
    time_ns = np.concatenate([time for time, _ in parts])
    values = unified([value for _, value in parts])
    if not bool((time_ns[1:] > time_ns[:-1]).all()):
        time_ns, first = np.unique(time_ns, return_index=True)
        values = values[first]
    return time_ns, values
