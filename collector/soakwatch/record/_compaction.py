"""Compaction: the oldest polls of one source, from one row each to columns and one compressed block a series."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from soakwatch.record import _rollups
from soakwatch.record._blocks import encode
from soakwatch.record._digests import update_with_block
from soakwatch.record._recent import POLL_COLUMNS, PollRow, Recent, RecentSeries, typed_runs, unpack
from soakwatch.record.minutes import Cut, Minutes, cut, merged, rolled_up
from soakwatch.record.model import Ints
from soakwatch_model.metric import GAUGE

if TYPE_CHECKING:
    from hashlib import _Hash

COMPACT_POLLS = 3600
COMPACT_SAMPLES = 320_000  # 2.6 MB of words: bounds the memory and the stall of one compaction

Axis = tuple[bytes, bytes] | int


class StoredLayouts(dict[int, tuple[Ints, str]]):
    """The series and kinds of the layouts in a record, each read when it is first asked for."""

    def __init__(self, sql: sqlite3.Connection) -> None:
        super().__init__()
        self._sql = sql

    def __missing__(self, layout: int) -> tuple[Ints, str]:
        row = self._sql.execute("SELECT series, kinds FROM layout WHERE id=?", (layout,)).fetchone()
        if row is None:
            raise KeyError(layout)
        self[layout] = known = np.frombuffer(row[0], dtype="<u4"), row[1]
        return known


def compact_oldest(
    connection: sqlite3.Connection, source: int, check: Callable[[int, list[PollRow]], _Hash]
) -> tuple[int, int, list[int]]:
    """Compact the oldest polls of a source inside the caller's transaction: at most ``COMPACT_POLLS``, ending once
    ``COMPACT_SAMPLES`` are reached. ``check`` is called with the source and its rows before they become blocks, and
    returns the digest to update with the blocks. Returns the numbers of polls and of samples, and the series in
    them."""
    rows, samples = _oldest(connection, source)
    if not rows:
        return 0, 0, []
    digest = check(source, rows)
    recent = unpack(rows, StoredLayouts(connection))
    chunk = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM chunk").fetchone()[0]
    first_block = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM block").fetchone()[0]
    last_block = _write_blocks(connection, chunk, first_block, recent, digest)
    connection.execute(
        "INSERT INTO chunk VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        (
            *(chunk, source, int(recent.seq[0]), len(rows), samples, first_block, last_block),
            *(int(recent.due_ns.min()), int(recent.due_ns.max()), latest_ns(recent)),
            *(encode(recent.due_ns), encode(recent.start_ns), encode(recent.duration_ns)),
            *(encode(recent.outcome), encode(recent.error)),
        ),
    )
    last_seq = int(recent.seq[-1])
    connection.execute("DELETE FROM poll WHERE source=? AND seq<=?", (source, last_seq))
    return len(rows), samples, sorted(recent.pieces)


def latest_ns(recent: Recent) -> int:
    """The latest time of the polls themselves: their due times and their ends."""
    return int(np.maximum(recent.due_ns, recent.start_ns + recent.duration_ns).max())


def _oldest(connection: sqlite3.Connection, source: int) -> tuple[list[PollRow], int]:
    rows: list[PollRow] = []
    samples = 0
    cursor = connection.execute(f"SELECT {POLL_COLUMNS} FROM poll WHERE source=? ORDER BY seq", (source,))  # noqa: S608
    for row in cursor:
        rows.append(row)
        samples += len(row[8]) // 8
        if len(rows) >= COMPACT_POLLS or samples >= COMPACT_SAMPLES:
            break
    cursor.close()
    return rows, samples


def _write_blocks(connection: sqlite3.Connection, chunk: int, first_block: int, recent: Recent, digest: _Hash) -> int:
    axes: dict[Axis, int] = {}
    gauges = {number for (number,) in connection.execute("SELECT id FROM series WHERE kind=?", (GAUGE,))}
    cuts: dict[int, Cut | None] = {}
    minutes: dict[int, tuple[Minutes, bool]] = {}
    block = first_block
    for series in sorted(recent.pieces):
        column, adds, parts = recent.column(series), series in gauges, list[Minutes]()
        runs = typed_runs(column)
        for stretch, values in runs:
            if len(runs) == 1:
                part = column
            else:
                offsets = None if column.offsets is None else column.offsets[stretch]
                part = RecentSeries(column.positions[stretch], offsets, column.words[stretch], "", None)
            axis = _axis(connection, chunk, recent, part, axes)
            data = encode(values)
            connection.execute("INSERT INTO block VALUES (?,?,?,?)", (block, series, axis, data))
            update_with_block(digest, block, series, axis, data)
            block += 1
            times = _times(recent, part)
            if axis not in cuts:
                cuts[axis] = cut(times)
            parts.append(rolled_up(times, values, adds=adds, at=cuts[axis]))
        minutes[series] = merged(parts, adds=adds), adds
    _rollups.keep(connection, first_block, block - 1, minutes)
    return block - 1


def _axis(sql: sqlite3.Connection, chunk: int, recent: Recent, column: RecentSeries, axes: dict[Axis, int]) -> int:
    key: Axis = _digests(column) if column.alike is None else column.alike
    if key in axes:
        return axes[key]
    times = _times(recent, column)
    every = column.positions.size == recent.seq.size and bool((np.diff(column.positions) == 1).all())
    axis = sql.execute(
        "INSERT INTO axis (chunk, first_ns, last_ns, positions, offsets) VALUES (?,?,?,?,?)",
        (
            *(chunk, int(times.min()), int(times.max())),
            None if every else encode(column.positions),
            None if column.offsets is None else encode(np.ascontiguousarray(column.offsets)),
        ),
    ).lastrowid
    assert axis is not None
    axes[key] = axis
    return axis


def _times(recent: Recent, column: RecentSeries) -> Ints:
    times: Ints = recent.start_ns[column.positions]
    return times if column.offsets is None else times + column.offsets


def _digests(column: RecentSeries) -> tuple[bytes, bytes]:
    return _digest(column.positions), b"" if column.offsets is None else _digest(column.offsets)


def _digest(numbers: Ints) -> bytes:
    return hashlib.blake2b(np.ascontiguousarray(numbers).tobytes(), digest_size=16).digest()


def drop_unused_layouts(connection: sqlite3.Connection) -> None:
    """Remove the layouts that no recent poll uses. The caller must forget the layouts that it remembers."""
    connection.execute("DELETE FROM layout WHERE id NOT IN (SELECT layout FROM poll)")


def count_recent(connection: sqlite3.Connection) -> Mapping[int, tuple[int, int]]:
    """The numbers of polls and of samples that are not compacted yet, by source."""
    rows = connection.execute("SELECT source, count(*), sum(length(data)) / 8 FROM poll GROUP BY source")
    return {source: (polls, samples) for source, polls, samples in rows}
