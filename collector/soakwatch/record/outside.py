"""What other processes do with a record that is being written: end an event, ask whether its writer lives."""

from __future__ import annotations

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
    """Whether a run is writing this record now: its writer holds the lock. Asking does not touch the lock.

    False also where the system does not list its locks (it has no /proc/locks).
    """
    try:
        status = record_file(path).with_suffix(".lock").stat()
        listed = Path("/proc/locks").read_text(encoding="ascii")
    except OSError:
        return False
    place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    return any("FLOCK" in line and place in line.split() for line in listed.splitlines())
