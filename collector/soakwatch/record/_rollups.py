"""The roll-ups that compaction keeps beside the blocks: a cache. Where it is missing, readers roll up the blocks.

A row of ``rollup`` has some successive minutes of one series, packed as blocks are once it is full. ``last_block`` is
the newest block that is in it: a reader rolls up what came after that. No final verdict is made of roll-ups, so no seal
covers them, and ``Record.finish`` drops them: only whoever follows a run asks for the minutes of days again and again.
"""

from __future__ import annotations

import sqlite3

import numpy as np

from soakwatch.record._blocks import decode, decode_ints, encode
from soakwatch.record.minutes import Minutes, merged

_PIECE_ROWS = (
    128  # minutes of a row that is full; the newest row is written again at each compaction, and so not packed
)
_LEAST_READINGS = 5  # readings a minute: fewer are read as soon as their roll-up
_COUNT_BITS = 20  # a key is a minute and how many readings it has: to pack one column takes half the time of two


def keep(sql: sqlite3.Connection, series: int, block: int, minutes: Minutes, *, adds: bool) -> None:
    """Keep the minutes of a new block, inside the caller's transaction, if those of all blocks before it are kept."""
    if not len(minutes):
        return
    first = int(minutes.number[0])
    before = sql.execute("SELECT max(id) FROM block WHERE series=? AND id<?", (series, block)).fetchone()[0]
    rows = sql.execute(  # the newest, and those that minutes which come late belong to
        "SELECT id, last, size, last_block, keys, figures FROM rollup WHERE series=?"
        " AND last>=min(?, (SELECT max(last) FROM rollup WHERE series=?)) ORDER BY last",
        (series, first, series),
    ).fetchall()
    seldom = minutes.count.sum() < _LEAST_READINGS * len(minutes)
    if (rows[-1][3] if rows else None) != before or (before is None and seldom):
        return
    open_ = [row for row in rows if row[1] >= first or row[2] < _PIECE_ROWS]
    whole = merged([*(_unpacked(row[2], *row[4:]) for row in open_), minutes], adds=adds)
    sql.executemany("DELETE FROM rollup WHERE id=?", [row[:1] for row in open_])
    for low in range(0, len(whole), _PIECE_ROWS):
        piece = slice(low, low + _PIECE_ROWS)
        number = whole.number[piece]
        key, figure = number << _COUNT_BITS | whole.count[piece], whole.figure[piece]
        full = number.size == _PIECE_ROWS
        sql.execute(
            "INSERT INTO rollup (series, first, last, size, last_block, keys, figures) VALUES (?,?,?,?,?,?,?)",
            (
                *(series, int(number[0]), int(number[-1]), number.size, block),
                *((encode(key), encode(figure)) if full else (key.tobytes(), figure.tobytes())),
            ),
        )


def kept(sql: sqlite3.Connection, series: int, begin: int, end: int) -> Minutes:
    """The minutes begin <= number < end that are kept of a series, and some beside them. Raises ValueError."""
    rows = sql.execute(
        "SELECT size, keys, figures FROM rollup WHERE series=? AND last>=? AND first<? ORDER BY last",
        (series, begin, end),
    )
    return merged([_unpacked(*row) for row in rows], adds=True)  # no minute is in two of them


def covered(sql: sqlite3.Connection, series: int) -> int:
    """The newest block of a series whose minutes are kept, and those of all blocks before it; 0 if there is none."""
    newest: int | None = sql.execute("SELECT max(last_block) FROM rollup WHERE series=?", (series,)).fetchone()[0]
    return newest or 0


def drop(sql: sqlite3.Connection) -> None:
    """Forget all roll-ups, inside the caller's transaction."""
    sql.execute("DELETE FROM rollup")


def _unpacked(size: int, keys: bytes, figures: bytes) -> Minutes:
    if size == _PIECE_ROWS:
        key, figure = decode_ints(keys), decode(figures).astype(np.float64, copy=False)
    else:
        key, figure = np.frombuffer(keys, np.int64), np.frombuffer(figures, np.float64)
    return Minutes(key >> _COUNT_BITS, key & ((1 << _COUNT_BITS) - 1), figure)
