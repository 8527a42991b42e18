"""The file of a record: where it is, and how it is opened for writing.

Nothing here opens the record's file but SQLite: closing any other descriptor of it would drop the POSIX locks that
this process's connections hold, and another process could then take the write-ahead log away under the writer.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from pathlib import Path

from soakwatch.core.errors import RecordError
from soakwatch.core.private_files import PRIVATE, open_private, owner_name, private_to
from soakwatch.record._schema import RECORD_NAME, check_version

BUSY_S = 10.0  # a reader that copies, or an event from outside, is done long before
SIDE_SUFFIXES = ("-wal", "-journal")
WAL_LIMIT = 16 * 2**20


def record_file(folder_or_file: Path) -> Path:
    """The record's file in a run's folder, or the file itself. Raises RecordError if there is none."""
    try:
        path = folder_or_file / RECORD_NAME if folder_or_file.is_dir() else folder_or_file
        there = path.is_file()
    except PermissionError:
        raise not_yours(folder_or_file) from None
    if not there:
        raise RecordError(f"{folder_or_file} holds no record: name a run's folder or its {RECORD_NAME}")
    return path


def not_yours(folder_or_file: Path) -> RecordError:
    """The error for a run whose files only another user may read."""
    folder = folder_or_file.parent if folder_or_file.name == RECORD_NAME else folder_or_file
    try:
        who, owner = private_to(folder), owner_name(folder.stat().st_uid)
    except OSError:
        return RecordError(f"{folder_or_file} lies in a folder that you may not enter: run this command as its owner")
    return RecordError(
        f"{folder} is private to {who}: run this command as {owner}, or ask {owner} to share it"
        " (`soakwatch run --group NAME`)"
    )


def size_of(path: Path) -> int:
    """Bytes on disk of a record and its write-ahead log."""
    total = 0
    for part in (path, path.with_name(f"{path.name}-wal")):
        with suppress(FileNotFoundError):
            total += part.stat().st_size
    return total


def has_side_file(path: Path, suffix: str) -> bool:
    """Whether the file with this suffix is there and not empty."""
    with suppress(OSError):
        return path.with_name(path.name + suffix).stat().st_size > 0
    return False


def connect(path: Path, *, new: bool = False) -> sqlite3.Connection:
    """A connection for writing: write-ahead log, every commit on the disk before it returns.

    A file that is no record, or one of another version, is left as it is. Raises RecordError and sqlite3.Error.
    """
    if new:
        open_private(path, PRIVATE).close()  # SQLite gives its log and its index the rights of the file that it finds
    mode = "rwc" if new else "rw"
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(uri, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        if new:
            connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
        else:
            check_version(connection, path)
        connection.execute("PRAGMA journal_mode=WAL").fetchall()
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute(f"PRAGMA journal_size_limit={WAL_LIMIT:d}")
    except BaseException:
        connection.close()
        raise
    return connection
