"""Reads polls again in the order in which they arrived, from a cursor on, from chunks and recent rows alike.

A cursor is a text ``SOURCE:SEQ SOURCE:SEQ ...``: how far each source has been read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from soakwatch.record._blocks import decode, decode_ints
from soakwatch.record._columns import Columns
from soakwatch.record._recent import typed_runs
from soakwatch.record.backlog import cursor_numbers, cursor_text
from soakwatch.record.model import OUTCOMES, Ints, Values
from soakwatch_model.sample import NOTHING, Answer, Poll, Sample

Names = Mapping[int, tuple[str, str]]  # series -> metric, object


@dataclass(frozen=True, slots=True, eq=False)
class _Readings:
    metric: str
    object: str
    positions: Ints
    time_ns: Ints
    values: Values


@dataclass(frozen=True, slots=True, eq=False)
class _DecodedPolls:
    """Successive polls of one source, decoded."""

    source: int
    first_seq: int
    due_ns: Ints
    start_ns: Ints
    duration_ns: Ints
    outcome: Ints
    error: Ints
    readings: tuple[_Readings, ...]


class Replay:
    """Reads a snapshot forward; keeps the current chunk decoded, so that reading on is cheap."""

    def __init__(self, sql: sqlite3.Connection, columns: Columns) -> None:
        self._sql, self._columns = sql, columns
        self._names: Names = {
            series: (metric, name) for series, metric, name in sql.execute("SELECT id, metric, object FROM series")
        }
        self._errors: dict[int, str] = dict(sql.execute("SELECT id, text FROM error").fetchall())
        self._chunk: tuple[int, _DecodedPolls] | None = None

    def after(self, cursor: str, limit: int) -> tuple[tuple[Poll, ...], str]:
        """At most ``limit`` polls of one source and the cursor behind them; no polls: all have been read."""
        read = cursor_numbers(cursor)
        sources = [row[0] for row in self._sql.execute("SELECT id FROM source ORDER BY id")]
        stretch = self._next_chunk(sources, read) or self._next_recent(sources, read)
        if stretch is None:
            return (), cursor
        low = max(0, read.get(stretch.source, 0) + 1 - stretch.first_seq)
        high = min(low + limit, stretch.start_ns.size)
        read[stretch.source] = stretch.first_seq + high - 1
        return self._polls(stretch, low, high), cursor_text(read)

    def first(self, source: int) -> Poll | None:
        """The first poll of a source; None before it."""
        stretch = self._next_chunk([source], {}) or self._next_recent([source], {})
        return None if stretch is None else self._polls(stretch, 0, 1)[0]

    def _next_chunk(self, sources: Sequence[int], read: Mapping[int, int]) -> _DecodedPolls | None:
        """The oldest chunk of any source that has not been read to its end."""
        rows = [
            self._sql.execute(
                "SELECT id FROM chunk WHERE source=? AND first_seq + polls > ? ORDER BY first_seq LIMIT 1",
                (source, read.get(source, 0) + 1),
            ).fetchone()
            for source in sources
        ]
        chunk = min((row[0] for row in rows if row), default=None)
        if chunk is None:
            return None
        if self._chunk is None or self._chunk[0] != chunk:
            self._chunk = chunk, self._decoded(chunk)
        return self._chunk[1]

    def _next_recent(self, sources: Sequence[int], read: Mapping[int, int]) -> _DecodedPolls | None:
        """The recent polls of the source whose next unread poll arrived first."""
        rows = [
            self._sql.execute(
                "SELECT id, source FROM poll WHERE source=? AND seq>? ORDER BY seq LIMIT 1",
                (source, read.get(source, 0)),
            ).fetchone()
            for source in sources
        ]
        first = min((row for row in rows if row), default=None)
        return None if first is None else self._recent(first[1])

    def _decoded(self, chunk: int) -> _DecodedPolls:
        source, first_seq, first_block, last_block, due, duration, outcome, error = self._sql.execute(
            "SELECT source, first_seq, first_block, last_block, due, duration, outcome, error FROM chunk WHERE id=?",
            (chunk,),
        ).fetchone()
        starts = self._columns.starts(chunk)
        every = np.arange(starts.size)
        rows = self._sql.execute(
            "SELECT block.series, block.axis, block.data, axis.positions FROM block JOIN axis ON axis.id = block.axis"
            " WHERE block.id BETWEEN ? AND ? ORDER BY block.id",
            (first_block, last_block),
        )
        readings = tuple(
            _Readings(
                *self._names[series],
                every if positions is None else decode_ints(positions),
                self._columns.axis_times(axis),
                decode(data),
            )
            for series, axis, data, positions in rows
        )
        ended = decode_ints(duration), decode_ints(outcome), decode_ints(error)
        return _DecodedPolls(source, first_seq, decode_ints(due), starts, *ended, readings)

    def _recent(self, source: int) -> _DecodedPolls:
        recent = self._columns.recent(source)
        readings = []
        for series in sorted(recent.pieces):
            column = recent.column(series)
            times = recent.start_ns[column.positions]
            if column.offsets is not None:
                times = times + column.offsets
            for stretch, values in typed_runs(column):
                readings.append(_Readings(*self._names[series], column.positions[stretch], times[stretch], values))
        numbers = recent.due_ns, recent.start_ns, recent.duration_ns, recent.outcome, recent.error
        return _DecodedPolls(source, int(recent.seq[0]), *numbers, tuple(readings))

    def _polls(self, stretch: _DecodedPolls, low: int, high: int) -> tuple[Poll, ...]:
        samples: list[list[Sample]] = [[] for _ in range(high - low)]
        for r in stretch.readings:
            begin, end = np.searchsorted(r.positions, [low, high])
            polls = (r.positions[begin:end] - low).tolist()
            times, values = r.time_ns[begin:end].tolist(), r.values[begin:end].tolist()
            for position, time_ns, value in zip(polls, times, values, strict=True):
                samples[position].append(Sample(r.metric, r.object, value, time_ns))
        columns = stretch.due_ns, stretch.start_ns, stretch.duration_ns, stretch.outcome, stretch.error
        rows = zip(*[column[low:high].tolist() for column in columns], samples, strict=True)
        return tuple(
            Poll(
                *(stretch.source, due, start, duration, OUTCOMES[outcome], self._errors.get(error)),
                Answer(tuple(brought), (), ()) if brought else NOTHING,
            )
            for due, start, duration, outcome, error, brought in rows
        )
