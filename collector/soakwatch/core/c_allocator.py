"""What the C library does with freed memory (mallopt(3)): give it back at once, or keep it for the next arrays.

glibc takes and returns large room by system calls, and each new page costs a fault. To return it is right for a process
that lives for days and is small in between, and wrong for one that makes arrays of megabytes by the thousand: a third
of the CPU time of judging a record of 72 h went into it. Without glibc nothing is set.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # M_TRIM_THRESHOLD and so on
_BIG = 65_536  # bytes
_LARGEST = 32 * 2**20  # bytes: the most that glibc allows
_KEPT = 128 * 2**20  # bytes: room at the end of the heap that is kept


def give_big_arrays_back() -> None:
    """Let the C library return arrays at once when they are freed, instead of keeping their room between small ones.

    glibc raises the size from which it does so up to 32 MB, as arrays come and go.
    """
    _set(_MMAP_THRESHOLD, _BIG)


@contextmanager
def freed_memory_kept() -> Iterator[None]:
    """Keep the room of freed arrays for the next ones, and return all of it at the end."""
    _set(_MMAP_THRESHOLD, _LARGEST)
    _set(_TRIM_THRESHOLD, _KEPT)
    try:
        yield
    finally:
        give_free_memory_back()


def share_one_arena() -> None:
    """Let all threads allocate from one arena: each would keep the most that it ever needed, 18 MB for a hundred
    devices. Threads of Python take turns anyway. For the begin of a process, before it has threads."""
    _set(_ARENA_MAX, 1)


def give_free_memory_back() -> None:
    """Return to the system what is free between what is in use: 2 ms for 100 MB, so not more often than each minute."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


def _set(option: int, value: int) -> None:
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(option, value)
