"""How far behind a sink is: polls of the record behind its cursor, and when the oldest of them was due."""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from soakwatch.record.blocks import decode_ints
from soakwatch.record.files import record_file
from soakwatch.record.snapshot import open_snapshot
from soakwatch.record.trouble import as_record_error
from soakwatch.sinks.feed import cursor_numbers


@dataclass(frozen=True, slots=True)
class Backlog:
    """Recorded polls that were not written yet, and when the oldest was due (None where there is none)."""

    polls: int
    oldest_ns: int | None


def backlog(path: Path, cursor: str) -> Backlog:
    """What lies behind a cursor. Raises RecordError."""
    read = cursor_numbers(cursor)
    file = record_file(path)
    polls, oldest = 0, []
    with ExitStack() as stack:
        sql = open_snapshot(file, stack)
        try:
            last = sql.execute(
                "SELECT source, max(seq) FROM (SELECT source, max(first_seq + polls - 1) AS seq FROM chunk GROUP BY"
                " source UNION ALL SELECT source, max(seq) FROM poll GROUP BY source) GROUP BY source"
            ).fetchall()
            for source, seq in last:
                behind = seq - read.get(source, 0)
                if behind > 0:
                    polls += behind
                    oldest.append(_due_ns(sql, source, read.get(source, 0) + 1))
        except sqlite3.Error as error:
            raise as_record_error(error, file) from None
    return Backlog(polls, min((one for one in oldest if one is not None), default=None))


def _due_ns(sql: sqlite3.Connection, source: int, seq: int) -> int | None:
    row = sql.execute("SELECT due_ns FROM poll WHERE source=? AND seq=?", (source, seq)).fetchone()
    if row is not None:
        return int(row[0])
    row = sql.execute(
        "SELECT first_seq, due FROM chunk WHERE source=? AND first_seq<=? AND first_seq + polls > ?", (source, seq, seq)
    ).fetchone()
    return None if row is None else int(decode_ints(row[1])[seq - row[0]])
