"""What the C library does with the room of arrays that were freed: give it back at once, or keep it for the next ones.

glibc takes and returns large room by system calls, and each new page costs a fault. That is right for a process that
lives long and is small in between, and wrong for one that makes arrays of megabytes by the thousand: a third of the
CPU time of judging a record of 72 h went into it. Other libraries have no such call; there nothing changes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt(3)
_BIG = 65_536  # bytes
_LARGEST = 32 * 2**20  # bytes: the most that glibc allows
_KEPT = 128 * 2**20  # bytes: room at the end of the heap that is kept


def give_big_arrays_back() -> None:
    """Return arrays at once when they are freed, instead of keeping their room between small ones.

    glibc raises the size from which it does so up to 32 MB, as arrays come and go.
    """
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, _BIG)


@contextmanager
def freed_memory_kept() -> Iterator[None]:
    """Keep the room of freed arrays for the next ones, and return all of it at the end."""
    with suppress(AttributeError, OSError):
        library = ctypes.CDLL(None)
        library.mallopt(_MMAP_THRESHOLD, _LARGEST)
        library.mallopt(_TRIM_THRESHOLD, _KEPT)
    try:
        yield
    finally:
        with suppress(AttributeError, OSError):
            ctypes.CDLL(None).malloc_trim(0)
