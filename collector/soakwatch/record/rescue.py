"""Rescues a record whose file was deleted, moved or unmounted while it is written.

Whoever has such a file open can still read and write it, and it is gone once he closes it. So it is copied while that
is possible, and the run goes on in the copy.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

from soakwatch.core.errors import RecordError
from soakwatch.core.private_files import PRIVATE, make_private_folder, open_private, state_folder
from soakwatch.record._files import connect
from soakwatch.record._schema import RECORD_NAME
from soakwatch.record.writer_lock import is_lock_of, release_lock, take_lock

Identity = tuple[int, int]
_SIDES = ("-wal", "-shm", "-journal")
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A record that is open for writing: the descriptor of its lock, its own file, and its log and index by suffix."""

    path: Path
    connection: sqlite3.Connection
    lock: int
    file: Identity | None = None
    sides: Mapping[str, Identity] = field(default_factory=dict)


def file_identity(path: Path | str) -> Identity | None:
    """The device and inode behind a path; None if nothing is there. Raises OSError if that cannot be found out."""
    try:
        status = os.stat(path)  # noqa: PTH116 - four times a second, and a path is made for each
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_dev, status.st_ino


def side_files(path: Path) -> Mapping[str, Identity]:
    """The log and the index of a record that is open, as they are now, by suffix."""
    return {suffix: known for suffix in _SIDES if (known := file_identity(f"{path}{suffix}")) is not None}


def _side(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def displaced(path: Path, mine: Identity) -> str:
    """What happened to a record whose file was ``mine``, in a few words; "" if its path still names it."""
    try:
        now = file_identity(path)
    except OSError:  # trouble of a disk or a network file system: the next batch of polls reports it
        return ""
    if now == mine:
        return ""
    if now is not None:
        return "another file is in its place" if now[0] == mine[0] else "another disk is in its place"
    return "it was deleted or moved" if path.parent.is_dir() else "its folder was deleted or moved"


def places_for(path: Path) -> Iterator[Path]:
    """Folders for the copy of a record, best first: its own if that is free, one beside it, and the user's own."""
    if not os.path.lexists(path):
        yield path.parent
    yield _free(path.parent.parent / f"{path.parent.name}.rescue")
    with suppress(RuntimeError):  # a user without a home
        yield _free(state_folder() / f"{path.parent.name}.rescue")
    with suppress(OSError):  # no folder for temporary files is writable
        yield _free(Path(tempfile.gettempdir()) / f"{path.parent.name}.rescue")


def moved_to_a_copy(now: OpenFile) -> tuple[OpenFile | None, str]:
    """Copy the record whole and open the copy: at its own path if that is free, else beside it. Returns None and the
    reason if it cannot be copied to any place; then the record is open as it was."""
    why = ""
    for folder in places_for(now.path):
        try:
            return _moved(now, folder), ""
        except (OSError, sqlite3.Error, RecordError) as error:
            words = error.strerror if isinstance(error, OSError) else str(error)
            why = why or f"{folder}: {words or type(error).__name__}"
    return None, why


def _moved(now: OpenFile, folder: Path) -> OpenFile:
    path = folder / RECORD_NAME
    draft = _copied(now, folder)
    lock = now.lock if is_lock_of(path, now.lock) else take_lock(path)
    if path == now.path:
        now.connection.close()  # before the copy gets this name: closing deletes the log of that name
    else:
        _leave_open(now.connection)
    # What is left of ours would be taken for the log of the file that has the name now.
    for suffix in _SIDES:
        side = _side(now.path, suffix)
        if path == now.path or (suffix in now.sides and file_identity(side) == now.sides[suffix]):
            side.unlink(missing_ok=True)
    draft.rename(path)
    if lock != now.lock:
        release_lock(now.lock)
    return OpenFile(path, connect(path), lock)


def _copied(now: OpenFile, folder: Path) -> Path:
    """Copy the record into a folder, which is made if needed, under a name that is not the record's yet.

    Raises OSError and sqlite3.Error; then nothing of it is left.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    make_private_folder(folder)
    draft = folder / f"{RECORD_NAME}.rescue"
    try:
        open_private(draft, PRIVATE).close()
        try:
            with closing(sqlite3.connect(draft)) as target:
                now.connection.backup(target)
        except sqlite3.Error:  # SQLite, ending its log, found the file gone, and reads it no more
            _copy_bytes(now, draft)
    except BaseException:
        for left in folder.glob(f"{draft.name}*"):
            with suppress(OSError):
                left.unlink()
        raise
    return draft


def _copy_bytes(now: OpenFile, draft: Path) -> None:
    """The file and its log through the descriptors that SQLite has open. Raises OSError and sqlite3.Error."""
    for source, copy in ((now.file, draft), (now.sides.get("-wal"), _side(draft, "-wal"))):
        descriptor = _descriptor_of(source)
        if descriptor is None and copy == draft:
            raise FileNotFoundError(errno.ENOENT, "it is no longer open")
        with open_private(copy, PRIVATE) as out:
            position = 0
            while descriptor is not None and (part := os.pread(descriptor, _PIECE, position)):
                out.write(part)
                position += len(part)
    with closing(sqlite3.connect(draft)) as whole:  # takes the log in
        if (said := whole.execute("PRAGMA quick_check").fetchone()[0]) != "ok":
            raise sqlite3.DatabaseError(str(said))
        whole.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        whole.execute("PRAGMA journal_mode=DELETE").fetchall()


def _descriptor_of(file: Identity | None) -> int | None:
    """A descriptor by which this process has a file open."""
    for name in os.listdir("/proc/self/fd") if file is not None else ():
        with suppress(OSError):
            status = os.fstat(int(name))
            if (status.st_dev, status.st_ino) == file:
                return int(name)
    return None


def _leave_open(connection: sqlite3.Connection) -> None:
    """Keep a connection open for ever: closing it would delete the write-ahead log of its record's name, which now
    belongs to the record in its place. Python would close it when it ends, so the reference is given away."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


def _free(folder: Path) -> Path:
    """The folder, or one like it with a number, that holds no record."""
    number = 1
    candidate = folder
    while (candidate / RECORD_NAME).exists():
        number += 1
        candidate = folder.with_name(f"{folder.name}-{number}")
    return candidate
