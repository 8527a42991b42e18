"""The lock of a record's writer: it keeps a second writer out, and tells other processes whether a run is writing.

Its file is the owner's even where the record is shared: whoever can open it can lock it, and so keep a run out.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from soakwatch.core.errors import RecordError
from soakwatch.core.file_lock import lock_file, name_holder
from soakwatch.core.private_files import PRIVATE, limit_rights, owner_name
from soakwatch.record._files import record_file
from soakwatch.record._sqlite_errors import as_record_error

_ROOT = 0


def take_lock(path: Path) -> int:
    """Lock a record for one writer; returns the descriptor to give to ``release_lock``.

    The lock dies with the process. Raises RecordError if another writer has it or if it is another user's,
    RecordFullError if its file cannot be written.
    """
    name = path.with_suffix(".lock")
    try:
        descriptor = os.open(name, os.O_RDWR | os.O_CREAT, PRIVATE)
    except OSError as error:
        raise _not_ours(name, path) or as_record_error(error, path) from None
    with suppress(OSError):  # the umask decides how it is made, and somebody may have opened it to others
        limit_rights(descriptor)
    try:
        lock_file(descriptor)
    except OSError:
        written = os.read(descriptor, 20).decode(errors="replace").strip() or "unknown"
        os.close(descriptor)
        raise RecordError(_held_words(path, written)) from None
    name_holder(descriptor, f"{os.getpid()}")
    return descriptor


def release_lock(descriptor: int) -> None:
    """Give the lock up. Its file stays, for another process may be about to lock it."""
    os.close(descriptor)


def is_lock_of(path: Path, descriptor: int) -> bool:
    """Whether a lock that is held is still that of a record: nobody has deleted or replaced its file."""
    held = os.fstat(descriptor)
    try:
        named = path.with_suffix(".lock").stat()
    except OSError:
        return False
    return (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino)


def is_written(path: Path) -> bool:
    """Whether a run is writing this record now: its writer holds the lock. Asking does not touch the lock.

    A process of a user who is neither the owner nor root is no run. False also where the system does not list its locks
    (it has no /proc/locks).
    """
    try:
        lock = record_file(path).with_suffix(".lock")
        return any(_stranger(pid, lock) is None for pid in _holders(lock))
    except OSError:
        return False


def _holders(lock: Path) -> list[int]:
    """The processes that hold a lock; one of another container is 0. Raises OSError."""
    status = lock.stat()
    listing = Path("/proc/locks").read_text(encoding="ascii")  # first: a system without it may not know major() either
    inode = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    listed = (line.split() for line in listing.splitlines())
    # "2: FLOCK  ADVISORY  WRITE 1234 08:01:131093 0 EOF"; with "->" behind the number, a process that waits for it
    return [int(words[4]) for words in listed if len(words) > 5 and words[1] == "FLOCK" and words[5] == inode]


def _stranger(pid: int, lock: Path) -> str | None:
    """The user of a process if it cannot be the owner's run; None if it can, or if nobody knows."""
    try:
        user = Path(f"/proc/{pid}").stat().st_uid
        return None if user in {_ROOT, lock.stat().st_uid} else owner_name(user)
    except OSError:
        return None


def _held_words(path: Path, written: str) -> str:
    """Why a record that somebody holds cannot be written; ``written`` is the pid that its last writer left."""
    lock = path.with_suffix(".lock")
    with suppress(OSError):
        for pid in _holders(lock):
            if (user := _stranger(pid, lock)) is not None:
                return (
                    f"{path} is locked by pid {pid} of {user}, and no run writes it: end that process"
                    f" (`kill {pid}`) and try again"
                )
    return f"{path} is being written by pid {written}: wait until that run ends, or stop it with `kill -INT {written}`"


def _not_ours(lock: Path, path: Path) -> RecordError | None:
    """The error of a lock that belongs to another user; None if it does not."""
    try:
        user = lock.stat().st_uid
    except OSError:
        return None
    if not hasattr(os, "geteuid") or user == os.geteuid() or os.access(lock, os.W_OK):
        return None
    owner = owner_name(user)
    return RecordError(
        f"{path} cannot be written, for its {lock.name} is {owner}'s: run as {owner}, or name another folder"
    )
