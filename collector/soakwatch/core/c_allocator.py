"""Settings of the C library's allocator (mallopt(3)) for processes that run for days. Without glibc nothing is set."""

from __future__ import annotations

import ctypes
from contextlib import suppress

_MMAP_THRESHOLD, _ARENA_MAX = -3, -8  # M_MMAP_THRESHOLD and M_ARENA_MAX
_BIG = 65_536  # bytes


def give_big_arrays_back() -> None:
    """Let the C library return arrays at once when they are freed, instead of keeping their room between small ones.

    glibc raises the size from which it does so up to 32 MB, as arrays come and go.
    """
    _set(_MMAP_THRESHOLD, _BIG)


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
