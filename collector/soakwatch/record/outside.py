"""What other processes do with a record that is being written: end an event, ask whether its writer lives."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from contextlib import closing
from pathlib import Path

from soakwatch.record.files import connect, record_file
from soakwatch.record.schema import version_of
from soakwatch.record.trouble import told


def end_outside_event(path: Path, kind: str, target: str, end_ns: int) -> bool:
    """End the newest open event of a kind (and target); False if there is none. Raises RecordError."""
    file = record_file(path)
    try:
        with closing(connect(file)) as connection:
            version_of(connection, file)
            done = connection.execute(
                "UPDATE event SET end_ns = max(begin_ns, ?) WHERE id = (SELECT max(id) FROM event"
                " WHERE end_ns IS NULL AND kind = ? AND target = ? AND origin = 'user')",
                (end_ns, kind, target),
            )
            return done.rowcount == 1
    except sqlite3.Error as error:
        raise told(error, file) from None


def is_written(path: Path) -> bool:
    """Whether a run is writing this record now (its writer holds the lock)."""
    try:
        descriptor = os.open(record_file(path).with_suffix(".lock"), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def last_due_ns(path: Path) -> dict[int, int]:
    """The last due time that each source has in the record, by the source's id. Raises RecordError."""
    file = record_file(path)
    try:
        with closing(connect(file)) as connection:
            version_of(connection, file)
            rows = connection.execute(
                "SELECT source, max(due) FROM (SELECT source, max(last_due_ns) AS due FROM chunk GROUP BY source"
                " UNION ALL SELECT source, max(due_ns) FROM poll GROUP BY source) GROUP BY source"
            )
            return {int(source): int(due) for source, due in rows}
    except sqlite3.Error as error:
        raise told(error, file) from None
