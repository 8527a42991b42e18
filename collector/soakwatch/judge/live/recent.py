"""The last hour of every series as it was read, and the baseline phase, which rules compare it with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from soakwatch.judge.live.raw_values import Floats, floats, typed
from soakwatch.record.follow import Owner, Table, Words
from soakwatch.record.merge import between, unified
from soakwatch.record.model import Ints, Values

HOUR_NS = 3_600_000_000_000
MAX_ROWS = 36_000  # an hour at ten readings a second; of faster ones the last hour is shorter
_PIECES = 64

Part = tuple[Ints, Values]
Stretch = tuple[int, int]  # begin, end, UTC ns


class _Ring:
    """The readings of some series that always come together: the newest rows of a growing table."""

    def __init__(self, table: Table) -> None:
        self.kinds = table.kinds
        columns = len(table.series)
        self._time: Ints = np.empty(0, np.int64)
        self._words: Words = np.empty((0, columns), np.uint64)
        self._low = self._high = 0
        self._kept: list[tuple[Ints, Words]] = []  # the baseline, in pieces
        self._half = -1  # number of the half-hour of the newest reading
        self._least = np.full((2, columns), np.nan)  # in this half-hour and in the one before
        self._most = np.full((2, columns), np.nan)

    def add(self, table: Table, kept: Collection[Stretch]) -> NDArray[np.bool_]:
        """Append rows in order of time; what is older than an hour goes, but for the stretches that are kept.

        Rows that come late are put where they belong. Returns which columns went beyond everything that the last
        half-hour, or more, had seen of them.
        """
        n = table.time_ns.size
        late = self._high > self._low and int(table.time_ns[0]) <= self.last_ns
        if self._high + n > self._time.size:
            self._make_room(n)
        self._time[self._high : self._high + n] = table.time_ns
        self._words[self._high : self._high + n] = table.words
        self._high += n
        if late:
            self._sort()
        for begin_ns, end_ns in kept:
            low, high = np.searchsorted(table.time_ns, [begin_ns, end_ns])
            if high > low:
                self._keep(table.time_ns[low:high].copy(), table.words[low:high].copy())
        time = self._time[self._low : self._high]
        oldest = int(np.searchsorted(time, int(time[-1]) - HOUR_NS))
        self._low = max(self._low + oldest, self._high - MAX_ROWS)
        return self._beyond(floats(table.kinds, table.words), int(table.time_ns[-1]) // (HOUR_NS // 2))

    @property
    def last_ns(self) -> int:
        """The time of the newest row."""
        return int(self._time[self._high - 1])

    @property
    def nbytes(self) -> int:
        """What it holds in memory."""
        kept = sum(time.nbytes + words.nbytes for time, words in self._kept)
        return int(self._time.nbytes + self._words.nbytes + kept)

    def parts(self, column: int, begin_ns: int, end_ns: int, most: int | None = None) -> list[Part]:
        """The readings of one column in begin <= time < end, of them the last ``most``."""
        low, high = self._low, self._high
        if most is not None:
            low = max(low, high - most)
        first_ns = int(self._time[self._low])
        low, high = np.searchsorted(self._time[low:high], [begin_ns, end_ns]) + low
        parts = [(self._time[low:high], typed(self.kinds[column], self._words[low:high, column]))]
        if most is None and begin_ns < first_ns:
            for time, words in reversed(self._kept):
                if time[0] >= min(end_ns, first_ns) or time[-1] < begin_ns:
                    continue
                start, stop = np.searchsorted(time, [begin_ns, min(end_ns, first_ns)])
                parts.insert(0, (time[start:stop], typed(self.kinds[column], words[start:stop, column])))
        return [part for part in parts if part[0].size]

    def _keep(self, time: Ints, words: Words) -> None:
        self._kept.append((time, words))
        while self._kept[0][0][-1] < time[-1] - HOUR_NS:
            del self._kept[0]
        if len(self._kept) > _PIECES:
            times, parts = zip(*self._kept, strict=True)
            ordered, first = np.unique(np.concatenate(times), return_index=True)
            self._kept = [(ordered, np.concatenate(parts)[first])]

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

    def _sort(self) -> None:
        """Put all rows in order of time; of those with one time the first that came stays."""
        time, first = np.unique(self._time[self._low : self._high], return_index=True)
        words = self._words[self._low : self._high][first]
        self._high = self._low + time.size
        self._time[self._low : self._high] = time
        self._words[self._low : self._high] = words

    def _make_room(self, n: int) -> None:
        held = self._high - self._low
        size = max(64, held + n + (held + n) // 4)
        time, words = np.empty(size, np.int64), np.empty((size, self._words.shape[1]), np.uint64)
        time[:held] = self._time[self._low : self._high]
        words[:held] = self._words[self._low : self._high]
        self._time, self._words, self._low, self._high = time, words, 0, held


class Hour:
    """The rings of all sources: one for each set of series that come together."""

    def __init__(self) -> None:
        self._rings: dict[tuple[int, tuple[int, ...], str], _Ring] = {}
        self._places: defaultdict[int, list[tuple[int, _Ring, int]]] = defaultdict(list)

    def add(self, source: int, table: Table, kept: Collection[Stretch] = ()) -> set[int]:
        """Take the readings of a table; those in the stretches ``kept`` stay for good (their last hour).

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
