"""Which source a series is taken from if several sources of a target see the same object: the first that reported it.

Two sources poll at different moments and through different caches. Their readings mixed would be a zigzag that the
device never made (a counter that falls). So the first source that reports a series owns it, which the record keeps, and
readings of it from other sources are left out while the owner reports. Once the owner has not reported the series for
``silence_ns``, the next source that does takes over, until the owner reports it again.

What it gets wrong: if two sources count from different start values, the series jumps when one takes over.
"""

from __future__ import annotations

import sqlite3
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from soakwatch.record.merge import in_time, unified
from soakwatch.record.model import Ints, Source, Values, source_label

GRACE_NS = 60_000_000_000
INTERVALS = 5
NEVER = int(np.iinfo(np.int64).min)

_NOBODY, _ANYBODY = 0, -1  # who stands in: nobody, or unknown since a resume; sources are numbered from 1
_MAX_GAPS = 8  # of each series, the silences of its owner that late polls of others may fill

Mask = NDArray[np.bool_]
Part = tuple[Ints, Values]


def silence_ns(owner: Source, metric: str) -> int:
    """How long (ns) the owner of a series must be silent before another source takes over."""
    return max(GRACE_NS, round(INTERVALS * owner.cadence_s(metric) * 1e9))


@dataclass(frozen=True, slots=True)
class Owner:
    """The source that a series belongs to, and how long it must be silent before another takes over."""

    source: int
    silence_ns: int

    def merged(self, parts: Sequence[tuple[int, Part]]) -> Part:
        """Join pieces of the series, each with the source that brought it, in order of time.

        A reading of another source stays only if the owner had been silent before it: late polls of the owner replace
        what a stand-in brought.
        """
        own = [part for source, part in parts if source == self.source]
        own_ns = np.sort(np.concatenate([np.empty(0, dtype=np.int64), *(times for times, _ in own)]))
        kept = own + [self._not_owned(own_ns, part) for source, part in parts if source != self.source]
        if not kept:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64)
        return in_time(np.concatenate([times for times, _ in kept]), unified([values for _, values in kept]))

    def _not_owned(self, own_ns: Ints, other: Part) -> Part:
        times, values = other
        before = np.concatenate([[NEVER], own_ns])[np.searchsorted(own_ns, times, side="right")]
        stays = times > before + self.silence_ns
        return times[stays], values[stays]


class Owners:
    """Owner and latest reading of every series by its number, and the gaps that others filled.

    ``last`` has the times of the latest readings, NEVER where there is none; ``metrics`` the metric of each series.
    """

    def __init__(self, sql: sqlite3.Connection, sources: Mapping[int, Source]) -> None:
        self._sources = sources
        self.metrics: dict[int, str] = {}
        self.last = np.full(64, NEVER, dtype=np.int64)
        self._owner, self._limit, self._since, self._stand_in = (np.zeros(64, dtype=np.int64) for _ in range(4))
        self._gaps: dict[int, deque[tuple[int, int, int]]] = {}  # begin, end, who stood in
        self._shared: frozenset[str] = frozenset()
        for series, metric, owner, last_ns in sql.execute("SELECT id, metric, source, last_ns FROM series"):
            self.add(series, metric, owner)
            self.last[series] = NEVER if last_ns is None else last_ns
        self.sources_changed()
        self._read(sql)

    def shared(self, target: str) -> bool:
        """Whether several sources poll a target: only then can several bring one series."""
        return target in self._shared

    def sources_changed(self) -> None:
        """Take note of sources that were added, or that report a metric less often than was known."""
        looking = Counter(source.target for source in self._sources.values())
        self._shared = frozenset(target for target, sources in looking.items() if sources > 1)
        for series in self.metrics:
            self._set_limit(series)

    def add(self, series: int, metric: str, owner: int) -> None:
        """Add a new series, which the source that brought it owns."""
        if series >= self.last.size:
            grown = max(series + 1, 2 * self.last.size) - self.last.size
            self.last = np.append(self.last, np.full(grown, NEVER, dtype=np.int64))
            self._owner, self._limit, self._since, self._stand_in = (
                np.append(column, np.zeros(grown, dtype=np.int64))
                for column in (self._owner, self._limit, self._since, self._stand_in)
            )
        self.metrics[series] = metric
        self._owner[series] = owner
        self._set_limit(series)

    def name(self, series: int) -> str:
        """The owner of a series, in words for people."""
        owner = self._sources.get(int(self._owner[series]))
        return "another source" if owner is None else source_label(owner, self._sources.values())

    def takes(self, source: int, series: Ints, times: Ints, *, late: bool) -> Mask:
        """Which readings of a source are recorded: all of the series that it owns; of others those that nobody else
        brings.

        ``times`` are one for all or one each. Readings of a ``late`` poll may also fill silences of the past.
        """
        mine: Mask = self._owner[series] == source
        if mine.all():
            return mine
        who, limit = self._stand_in[series], self._limit[series]
        free = (who == _NOBODY) | (who == _ANYBODY) | (who == source) | (times > self.last[series] + limit)
        taken: Mask = mine | ((times > self._brought(series) + limit) & free)
        if late:
            every = np.broadcast_to(times, series.shape)
            for index in np.flatnonzero(~taken).tolist():
                taken[index] = self._in_a_gap(source, int(series[index]), int(every[index]))
        return taken

    def floor(self, source: int, series: Ints) -> Ints:
        """Readings of a source must be later than this: than its own last reading if it is the owner, who need not wait
        for a stand-in; else than the last reading of any source."""
        return np.where(self._owner[series] == source, self._brought(series), self.last[series])

    def floor_of(self, source: int, series: int) -> int:
        """The same as ``floor``, for one series."""
        return int(self.floor(source, np.array([series]))[0])

    def took(self, source: int, series: Ints, times: Ints, *, late: bool) -> None:
        """Note that these readings were recorded; ``times`` are one for all or one each."""
        last, who, limit, brought = (
            self.last[series],
            self._stand_in[series],
            self._limit[series],
            self._brought(series),
        )
        times = np.broadcast_to(times, series.shape)
        mine = self._owner[series] == source
        silent = (times > brought + limit) & (last != NEVER)
        if late:
            away = mine & (who != _NOBODY)
            self._since[series[away]] = np.maximum(brought, times)[away]
        else:
            back = mine & (silent | (who != _NOBODY))
            for index in np.flatnonzero(back & silent).tolist():
                gaps = self._gaps.setdefault(int(series[index]), deque(maxlen=_MAX_GAPS))
                gaps.append((int(brought[index]), int(times[index]), int(who[index])))
            self._stand_in[series[back]] = _NOBODY
        standing_in = ~mine & silent
        begun = standing_in & (who == _NOBODY)
        self._since[series[begun]] = last[begun]
        self._stand_in[series[standing_in]] = source
        np.maximum.at(self.last, series, times)

    # --- inside ------------------------------------------------------------------------------------------------

    def _brought(self, series: Ints) -> Ints:
        """When the owner last brought the series."""
        return np.where(self._stand_in[series] == _NOBODY, self.last[series], self._since[series])

    def _in_a_gap(self, source: int, series: int, time_ns: int) -> bool:
        limit = int(self._limit[series])
        return any(
            begin + limit < time_ns < end and who in {_NOBODY, _ANYBODY, source}
            for begin, end, who in self._gaps.get(series, ())
        )

    def _set_limit(self, series: int) -> None:
        owner = self._sources.get(int(self._owner[series]))
        self._limit[series] = GRACE_NS if owner is None else silence_ns(owner, self.metrics[series])

    def _read(self, sql: sqlite3.Connection) -> None:
        """Bring ``last`` up to the recent polls, and find where an owner is silent."""
        shared = {number for number, source in self._sources.items() if source.target in self._shared}
        brought = np.full(self.last.size, NEVER, dtype=np.int64)
        columns = {
            layout: np.frombuffer(series, dtype="<u4").astype(np.int64)
            for layout, series in sql.execute("SELECT id, series FROM layout")
        }
        # Most polls have one time for all of their readings: of those the latest of each layout is enough.
        rows = chain(
            sql.execute(
                "SELECT source, max(start_ns), layout, NULL FROM poll WHERE layout AND offsets IS NULL"
                " GROUP BY source, layout"
            ),
            sql.execute("SELECT source, start_ns, layout, offsets FROM poll WHERE layout AND offsets IS NOT NULL"),
        )
        for source, start_ns, layout, offsets in rows:
            series = columns[layout]
            times = start_ns + (np.zeros(1, np.int64) if offsets is None else np.frombuffer(offsets, dtype="<i8"))
            np.maximum.at(self.last, series, times)
            if source in shared:
                mine = self._owner[series] == source
                np.maximum.at(brought, series[mine], np.broadcast_to(times, series.shape)[mine])
        for source in shared:
            self._read_compacted(sql, source, brought)
        behind = np.isin(self._owner, list(shared)) & (brought < self.last)
        self._since[behind], self._stand_in[behind] = brought[behind], _ANYBODY

    def _read_compacted(self, sql: sqlite3.Connection, source: int, brought: Ints) -> None:
        """From the newest chunk of a source: what is not in it was brought before it."""
        chunk = sql.execute(
            "SELECT first_block, last_block, first_due_ns FROM chunk WHERE source=? ORDER BY first_seq DESC LIMIT 1",
            (source,),
        ).fetchone()
        if chunk is None:
            return
        first_block, last_block, first_ns = chunk
        rows = sql.execute(
            "SELECT block.series, axis.last_ns FROM block JOIN axis ON axis.id = block.axis"
            " WHERE block.id BETWEEN ? AND ?",
            (first_block, last_block),
        )
        for series, last_ns in rows:
            if self._owner[series] == source:
                brought[series] = max(int(brought[series]), last_ns)
        earlier = (self._owner == source) & (brought == NEVER) & (self.last != NEVER)
        brought[earlier] = np.minimum(self.last[earlier], first_ns)
