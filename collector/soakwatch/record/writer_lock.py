"""The lock of a record's writer: it keeps a second writer out, and tells other processes whether a run is writing."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from soakwatch.core.errors import RecordError
from soakwatch.record._files import record_file
from soakwatch.record._sqlite_errors import as_record_error


def take_lock(path: Path) -> int:
    """Lock a record for one writer; returns the descriptor to give to ``release_lock``.

    The lock dies with the process. Raises RecordError if another writer has it, RecordFullError if its file cannot be
    written.
    """
    name = path.with_suffix(".lock")
    try:
        descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise as_record_error(error, path) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        owner = os.read(descriptor, 20).decode(errors="replace").strip() or "unknown"
        os.close(descriptor)
        raise RecordError(
            f"{path} is being written by pid {owner}: wait until that run ends, or stop it with `kill -INT {owner}`"
        ) from None
    with suppress(OSError):  # on a full disk the lock holds all the same
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


def release_lock(descriptor: int) -> None:
    """Give the lock up. Its file stays, for another process may be about to lock it."""
    os.close(descriptor)


def is_written(path: Path) -> bool:
    """Whether a run is writing this record now: its writer holds the lock. Asking does not touch the lock.

    False also where the system does not list its locks (it has no /proc/locks).
    """
    try:
        status = record_file(path).with_suffix(".lock").stat()
        listed = Path("/proc/locks").read_text(encoding="ascii")
    except OSError:
        return False
    inode = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    return any("FLOCK" in line and inode in line.split() for line in listed.splitlines())
