"""The readings and polls of a snapshot as arrays: chunks and recent rows, decoded once and shared."""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Generic, TypeVar

import numpy as np

from soakwatch.record import _rollups
from soakwatch.record._blocks import decode, decode_ints
from soakwatch.record._compaction import StoredLayouts
from soakwatch.record._effective_polls import EffectivePolls, PollColumns, effective_polls, in_order
from soakwatch.record._owners import NEVER, Owner
from soakwatch.record._recent import POLL_COLUMNS, Recent, followed, typed_runs, unpack
from soakwatch.record.merge import between, in_time, unified
from soakwatch.record.minutes import MINUTE_NS, Minutes, merged, rolled_up
from soakwatch.record.model import Ints, Values

_MAX_CACHED_BYTES = 32 * 2**20  # of decoded times: the axes of about 20 days of one source at 1 s
_EMPTY: Ints = np.empty(0, dtype=np.int64)

K = TypeVar("K")


class _ArrayCache(Generic[K]):
    """The arrays that were decoded last, up to a maximum of bytes."""

    def __init__(self, limit: int) -> None:
        self._limit, self._size = limit, 0
        self._arrays: OrderedDict[K, Ints] = OrderedDict()

    def get(self, key: K, make: Callable[[], Ints]) -> Ints:
        if key in self._arrays:
            self._arrays.move_to_end(key)
            return self._arrays[key]
        array = make()
        self._arrays[key] = array
        self._size += array.nbytes
        while self._size > self._limit and len(self._arrays) > 1:
            self._size -= self._arrays.popitem(last=False)[1].nbytes
        return array


class Columns:
    """The content of a snapshot, by series or by source. Its methods raise sqlite3.Error, and ValueError for damaged
    blocks.

    ``unpacked``: by source, the polls that another snapshot of the same record found not compacted.
    """

    def __init__(self, sql: sqlite3.Connection, unpacked: Mapping[int, Recent] = MappingProxyType({})) -> None:
        self._sql, self._unpacked = sql, unpacked
        self._starts: _ArrayCache[int] = _ArrayCache(_MAX_CACHED_BYTES // 4)
        self._axes: _ArrayCache[int] = _ArrayCache(_MAX_CACHED_BYTES // 2)
        self._joined: _ArrayCache[tuple[int, ...]] = _ArrayCache(_MAX_CACHED_BYTES // 4)
        self._recent: dict[int, Recent] = {}
        self._layouts = StoredLayouts(sql)

    def series(
        self, series: int, sources: Sequence[int], begin_ns: int | None, end_ns: int | None, owner: Owner | None = None
    ) -> tuple[Ints, Values]:
        """Times and readings of a series, begin <= time < end, strictly increasing in time; read-only arrays.

        With ``owner``, readings of other sources count only where the owner had been silent.
        """
        if owner is not None and len(sources) > 1:
            return between(*self._of_owner(series, sources, begin_ns, end_ns, owner), begin_ns, end_ns)
        times, parts = self._compacted(series, begin_ns, end_ns)
        fresh_times: list[Ints] = []
        for source in sources:
            for time_ns, values in self.recent_of(source, series):
                fresh_times.append(time_ns)
                parts.append(values)
        if fresh_times:
            times = np.concatenate([times, *fresh_times])
        return between(*in_time(times, unified(parts)), begin_ns, end_ns)

    def minutes(self, series: int, sources: Sequence[int], begin_ns: int, end_ns: int, *, adds: bool) -> Minutes:
        """The minutes of a series that have readings in begin <= time < end, and some around them, in order of time.

        ``adds``: the series is a gauge. Readings that compaction has not rolled up are rolled up here.
        """
        parts = [_rollups.kept(self._sql, series, begin_ns // MINUTE_NS, -(-end_ns // MINUTE_NS), adds=adds)]
        rows = self._sql.execute(
            "SELECT block.axis, block.data FROM block JOIN axis ON axis.id = block.axis"
            " WHERE series=? AND block.id>? AND last_ns>=? AND first_ns<? ORDER BY block.id",
            (series, _rollups.covered(self._sql, series), begin_ns, end_ns),
        )
        parts += [rolled_up(self.axis_times(axis), decode(data), adds=adds) for axis, data in rows]
        for source in sources:
            parts += [rolled_up(time_ns, value, adds=adds) for time_ns, value in self.recent_of(source, series)]
        return merged(parts, adds=adds)

    def recent(self, source: int) -> Recent:
        """The polls of a source that are not compacted."""
        if source not in self._recent:
            first, last = self._sql.execute("SELECT min(seq), max(seq) FROM poll WHERE source=?", (source,)).fetchone()
            before = self._unpacked.get(source)
            if before is not None and (first is None or not first <= before.seq[-1] <= last):
                before = None  # all of it was compacted, or the other snapshot is the later one
            rows = self._sql.execute(
                f"SELECT {POLL_COLUMNS} FROM poll WHERE source=? AND seq>? ORDER BY seq",  # noqa: S608
                (source, 0 if before is None else int(before.seq[-1])),
            )
            recent = unpack(rows, self._layouts)
            self._recent[source] = recent if before is None else followed(before, recent, first)
        return self._recent[source]

    @property
    def unpacked(self) -> Mapping[int, Recent]:
        """The polls that are not compacted, of each source that was read and has some."""
        return {source: recent for source, recent in self._recent.items() if recent.seq.size}

    def polls(self, source: int, interval_ns: int, begin_ns: int, end_ns: int) -> EffectivePolls:
        """The polls of a source that were due in begin <= time < end, one for each due time, sorted by it."""
        # One interval more on either side: a late answer may be kept under a due time just outside.
        return effective_polls(self.polls_as_they_came(source, begin_ns - interval_ns, end_ns + interval_ns)).between(
            begin_ns, end_ns
        )

    def polls_as_they_came(self, source: int, begin_ns: int, end_ns: int) -> PollColumns:
        """The polls of a source that were due in begin <= time < end, in the order in which they came."""
        rows = self._sql.execute(
            "SELECT due, start, outcome, error FROM chunk"
            " WHERE source=? AND last_due_ns>=? AND first_due_ns<? ORDER BY first_seq",
            (source, begin_ns, end_ns),
        )
        parts = [tuple(decode_ints(column) for column in row) for row in rows]
        fresh = self.recent(source)
        parts.append((fresh.due_ns, fresh.start_ns, fresh.outcome, fresh.error))
        due, start, outcome, error = (np.concatenate(column) for column in zip(*parts, strict=True))
        return PollColumns(due, start, outcome, error).of((due >= begin_ns) & (due < end_ns))

    def due_times(self, source: int) -> int:
        """How many different due times the polls of a source have; quick where no poll came late."""
        rows = self._sql.execute("SELECT due FROM chunk WHERE source=? ORDER BY first_seq", (source,))
        due_ns = np.concatenate([*(decode_ints(due) for (due,) in rows), self.recent(source).due_ns])
        return int(due_ns.size) if in_order(due_ns) else int(self.polls(source, 0, 0, 2**63 - 1).late.size)

    def axis_times(self, axis: int) -> Ints:
        """The times of an axis."""
        return self._axes.get(axis, lambda: self._decoded_axis(axis))

    def starts(self, chunk: int) -> Ints:
        """When the polls of a chunk began."""

        def decoded() -> Ints:
            return decode_ints(self._sql.execute("SELECT start FROM chunk WHERE id=?", (chunk,)).fetchone()[0])

        return self._starts.get(chunk, decoded)

    def _decoded_axis(self, axis: int) -> Ints:
        chunk, positions, offsets = self._sql.execute(
            "SELECT chunk, positions, offsets FROM axis WHERE id=?", (axis,)
        ).fetchone()
        times = self.starts(chunk)
        if positions is not None:
            times = times[decode_ints(positions)]
        return times if offsets is None else times + decode_ints(offsets)

    def _compacted(self, series: int, begin_ns: int | None, end_ns: int | None) -> tuple[Ints, list[Values]]:
        if begin_ns is None and end_ns is None:
            rows = self._sql.execute("SELECT axis, data FROM block WHERE series=? ORDER BY id", (series,))
        else:
            rows = self._sql.execute(
                "SELECT block.axis, block.data FROM block JOIN axis ON axis.id = block.axis"
                " WHERE series=? AND (? IS NULL OR last_ns>=?) AND (? IS NULL OR first_ns<?) ORDER BY block.id",
                (series, begin_ns, begin_ns, end_ns, end_ns),
            )
        axes: list[int] = []
        parts: list[Values] = []
        for axis, data in rows:
            axes.append(axis)
            parts.append(decode(data))
        if not axes:
            return _EMPTY, []

        def joined() -> Ints:
            times = np.concatenate([self.axis_times(axis) for axis in axes])
            times.flags.writeable = False  # shared by all series that have these times
            return times

        return self._joined.get(tuple(axes), joined), parts

    def _of_owner(
        self, series: int, sources: Sequence[int], begin_ns: int | None, end_ns: int | None, owner: Owner
    ) -> tuple[Ints, Values]:
        begin_ns = None if begin_ns is None else max(begin_ns, NEVER + owner.silence_ns) - owner.silence_ns
        rows = self._sql.execute(
            "SELECT chunk.source, block.axis, block.data FROM block JOIN axis ON axis.id = block.axis"
            " JOIN chunk ON chunk.id = axis.chunk WHERE series=? AND (? IS NULL OR axis.last_ns>=?)"
            " AND (? IS NULL OR axis.first_ns<?) ORDER BY block.id",
            (series, begin_ns, begin_ns, end_ns, end_ns),
        )
        parts = [(source, (self.axis_times(axis), decode(data))) for source, axis, data in rows]
        parts += [(source, part) for source in sources for part in self.recent_of(source, series)]
        return owner.merged(parts)

    def recent_of(self, source: int, series: int) -> list[tuple[Ints, Values]]:
        """Times and values of a series that are not compacted yet, one part for each stretch of one type."""
        recent = self.recent(source)
        if series not in recent.pieces:
            return []
        column = recent.column(series)
        times = recent.start_ns[column.positions]
        if column.offsets is not None:
            times = times + column.offsets
        return [(times[stretch], values) for stretch, values in typed_runs(column)]
