"""A lock on an open file, which dies with the process that took it: flock(2).

Windows has none. There Soakwatch only reads, judges and reports records, and nothing keeps a second process of the same
user from writing what it found into the same record; SQLite keeps each of the two writes whole.
"""

from __future__ import annotations

import os
from contextlib import suppress


def lock_file(descriptor: int, *, shared: bool = False) -> None:
    """Locks an open file at once, for this process alone or ``shared`` with others that ask for that.

    Does nothing where the system has no flock. Raises OSError if another process holds it.
    """
    with suppress(ImportError):
        import fcntl

        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)


def name_holder(descriptor: int, words: str) -> None:
    """Writes into a locked file who holds it, and no longer who did; on a full disk the lock holds all the same."""
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, f"{words}\n".encode())
