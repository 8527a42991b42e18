"""The roll-ups that compaction keeps beside the blocks: a cache. Where it is missing, readers roll up the blocks.

A row of ``rollup`` has some successive minutes of one series. A compaction adds a row that is not packed; once there
are ``_PIECE_ROWS`` minutes in such open rows, they are packed as blocks are, ``_PIECE_ROWS`` in a row. A minute may be
in several rows; they came in the order of ``last``, then of ``id``.

``last`` is the latest minute in this row and those before it. ``open`` is 0 for a packed row; for others it counts the
minutes in open rows, up to this one. ``last_block`` is the newest block in the row: readers roll up what came after
that.

No final verdict uses roll-ups, so no seal covers them, and ``Record.finish`` drops them: only readers that follow a run
read the minutes of days again and again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

import numpy as np

from soakwatch.record._blocks import decode, decode_ints, encode
from soakwatch.record.minutes import Minutes, merged
from soakwatch.record.model import Ints

_PIECE_ROWS = 128  # minutes of a packed row
_STAGGER = 16  # all series of a source at once would make one long compaction
_LEAST_READINGS = 10  # readings a minute: fewer are read as quickly as their roll-up, which is a third of their bytes
_COUNT_BITS = 20  # a key holds a minute and its number of readings: packing one column takes half as long as two

_Row = tuple[int, int, int, int, int, bytes, bytes]


def keep(
    sql: sqlite3.Connection, first_block: int, last_block: int, minutes: Mapping[int, tuple[Minutes, bool]]
) -> None:
    """Keep the minutes of the blocks of a new chunk, inside the caller's transaction.

    ``minutes`` has them by series, and whether they are sums. A series is left out unless the minutes of all its
    earlier blocks are kept.
    """
    rows = sql.execute(
        "SELECT new.series, new.block, (SELECT max(id) FROM block WHERE series=new.series AND id<?1),"
        " rollup.last, rollup.open, rollup.last_block"
        " FROM (SELECT series, max(id) AS block FROM block WHERE id BETWEEN ?1 AND ?2 GROUP BY series) AS new"
        " LEFT JOIN rollup ON rollup.id="
        "(SELECT id FROM rollup WHERE series=new.series ORDER BY last DESC, id DESC LIMIT 1)",
        (first_block, last_block),
    ).fetchall()
    new: list[_Row] = []
    for series, block, before, last, open_, covered in rows:
        part, adds = minutes[series]
        size = len(part)
        seldom = before is None and part.count.sum() < _LEAST_READINGS * size
        if not size or covered != before or seldom:
            continue
        latest, waiting = last or 0, (open_ or 0) + size
        if waiting < _PIECE_ROWS + series % _STAGGER * 4:
            new.append((series, int(part.number[0]), max(latest, int(part.number[-1])), waiting, block, *_plain(part)))
        else:
            new += _packed(sql, series, latest, block, part, adds=adds)
    sql.executemany(
        "INSERT INTO rollup (series, first, last, open, last_block, keys, figures) VALUES (?,?,?,?,?,?,?)", new
    )


def kept(sql: sqlite3.Connection, series: int, begin: int, end: int, *, adds: bool) -> Minutes:
    """The kept minutes of a series with begin <= number < end, and some around them. Raises ValueError."""
    rows = sql.execute(
        "SELECT open, keys, figures FROM rollup WHERE series=? AND last>=? AND first<? ORDER BY last, id",
        (series, begin, end),
    )
    return merged([_unpacked(*row) for row in rows], adds=adds)


def covered(sql: sqlite3.Connection, series: int) -> int:
    """The newest block of a series up to which all minutes are kept; 0 if there is none."""
    row = sql.execute("SELECT last_block FROM rollup WHERE series=? ORDER BY last DESC, id DESC LIMIT 1", (series,))
    newest: tuple[int] | None = row.fetchone()
    return newest[0] if newest else 0


def drop(sql: sqlite3.Connection) -> None:
    """Forget all roll-ups, inside the caller's transaction."""
    sql.execute("DELETE FROM rollup")


def _packed(sql: sqlite3.Connection, series: int, latest: int, block: int, part: Minutes, *, adds: bool) -> list[_Row]:
    """The rows that replace the open rows and a new part: all packed, except the last if it is not full."""
    rows = sql.execute(
        "SELECT id, open, keys, figures FROM rollup WHERE series=? AND open>0 ORDER BY last, id", (series,)
    ).fetchall()
    whole = merged([*(_unpacked(*row[1:]) for row in rows), part], adds=adds)
    sql.executemany("DELETE FROM rollup WHERE id=?", [row[:1] for row in rows])
    made: list[_Row] = []
    for low in range(0, len(whole), _PIECE_ROWS):
        piece = slice(low, low + _PIECE_ROWS)
        some = Minutes(whole.number[piece], whole.count[piece], whole.figure[piece])
        latest = max(latest, int(some.number[-1]))
        full = len(some) == _PIECE_ROWS
        packed = (encode(_keys(some)), encode(some.figure)) if full else _plain(some)
        made.append((series, int(some.number[0]), latest, 0 if full else len(some), block, *packed))
    return made


def _plain(minutes: Minutes) -> tuple[bytes, bytes]:
    return _keys(minutes).tobytes(), minutes.figure.tobytes()


def _keys(minutes: Minutes) -> Ints:
    return minutes.number << _COUNT_BITS | minutes.count


def _unpacked(open_: int, keys: bytes, figures: bytes) -> Minutes:
    if open_:
        key, figure = np.frombuffer(keys, np.int64), np.frombuffer(figures, np.float64)
    else:
        key, figure = decode_ints(keys), decode(figures).astype(np.float64, copy=False)
    return Minutes(key >> _COUNT_BITS, key & ((1 << _COUNT_BITS) - 1), figure)
