"""How far behind a sink is: polls of the record behind its cursor, and when the oldest of them was due.

A cursor is a text ``SOURCE:SEQ SOURCE:SEQ ...``: how far each source has been read, by the source's id.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from soakwatch.core.errors import RecordError
from soakwatch.record._blocks import decode_ints
from soakwatch.record._snapshot import snapshot


@dataclass(frozen=True, slots=True)
class Backlog:
    """Recorded polls that were not written yet, and when the oldest was due (None where there is none)."""

    polls: int
    oldest_ns: int | None


def backlog(folder_or_file: Path, cursor: str) -> Backlog:
    """The backlog behind a cursor. Raises RecordError."""
    read = cursor_numbers(cursor)
    polls, oldest = 0, []
    with snapshot(folder_or_file) as sql:
        last = sql.execute(
            "SELECT source, max(seq) FROM (SELECT source, max(first_seq + polls - 1) AS seq FROM chunk GROUP BY"
            " source UNION ALL SELECT source, max(seq) FROM poll GROUP BY source) GROUP BY source"
        ).fetchall()
        for source, seq in last:
            behind = seq - read.get(source, 0)
            if behind > 0:
                polls += behind
                oldest.append(_due_ns(sql, source, read.get(source, 0) + 1))
    return Backlog(polls, min((due_ns for due_ns in oldest if due_ns is not None), default=None))


def cursor_numbers(cursor: str) -> dict[int, int]:
    """The number of the last poll that was read of each source, by the source's id. Raises RecordError."""
    try:
        return {int(source): int(seq) for source, seq in (part.split(":") for part in cursor.split())}
    except ValueError:
        raise RecordError(f"{cursor!r} is not a cursor of a record: start again with an empty one") from None


def cursor_text(read: Mapping[int, int]) -> str:
    """The inverse of ``cursor_numbers``.

    >>> cursor_text({2: 7, 1: 9})
    '1:9 2:7'
    """
    return " ".join(f"{source}:{seq}" for source, seq in sorted(read.items()))


def _due_ns(sql: sqlite3.Connection, source: int, seq: int) -> int | None:
    row = sql.execute("SELECT due_ns FROM poll WHERE source=? AND seq=?", (source, seq)).fetchone()
    if row is not None:
        return int(row[0])
    row = sql.execute(
        "SELECT first_seq, due FROM chunk WHERE source=? AND first_seq<=? AND first_seq + polls > ?", (source, seq, seq)
    ).fetchone()
    return None if row is None else int(decode_ints(row[1])[seq - row[0]])
