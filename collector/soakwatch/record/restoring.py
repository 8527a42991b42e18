"""The small tables of a record from an account of them, for a record that is made again from a copy elsewhere."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from soakwatch.record.files import connect, record_file
from soakwatch.record.text import storable
from soakwatch.record.trouble import as_record_error

SeriesRow = tuple[str, str, str, int, str, str]
"""Target, metric, object, the number of the source that brings it, unit and kind."""
FaultRow = tuple[int, str, str, str, int, int, int]
"""Source, metric, object, text, first and last time in UTC ns, and how often."""


def restore_tables(
    folder: Path, series: Iterable[SeriesRow], faults: Iterable[FaultRow], errors: Iterable[str]
) -> None:
    """Write series, faults and the texts of errors into a record that has none, in their order. Raises RecordError."""
    path = record_file(folder)
    try:
        with closing(connect(path)) as sql:
            sql.execute("BEGIN IMMEDIATE")
            sql.executemany(
                "INSERT INTO series (target, metric, object, source, unit, kind, last_ns) VALUES (?,?,?,?,?,?,NULL)",
                ((storable(a), storable(b), storable(c), d, storable(e), f) for a, b, c, d, e, f in series),
            )
            sql.executemany(
                "INSERT INTO fault (source, metric, object, text, first_ns, last_ns, count) VALUES (?,?,?,?,?,?,?)",
                ((a, storable(b), storable(c), storable(d), e, f, g) for a, b, c, d, e, f, g in faults),
            )
            sql.executemany("INSERT INTO error (text) VALUES (?)", ((storable(text),) for text in errors))
            sql.execute("COMMIT")
    except sqlite3.Error as error:
        raise as_record_error(error, path) from None
