"""The path of a unix socket: the system's bound for it is 107 bytes, which a folder deep in a home is beyond."""

from __future__ import annotations

import contextlib
import os
from typing import Iterator

LONGEST = 107


@contextlib.contextmanager
def bounded(path: str) -> Iterator[str]:
    """A path of the same socket that is short enough to bind and to connect, while the block lasts: where ``path`` is
    not, by way of its open folder in Linux's /proc. Raises OSError with a ``strerror`` where there is no such folder,
    or no such way."""
    if len(os.fsencode(path)) <= LONGEST:
        yield path
        return
    folder, name = os.path.split(path)
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        short = f"/proc/self/fd/{fd}/{name}"
        if not os.path.isdir(os.path.dirname(short)) or len(os.fsencode(short)) > LONGEST:  # noqa: PTH112, PTH120
            raise OSError(0, f"its path is longer than a socket's may be ({LONGEST} bytes)")
        yield short
    finally:
        os.close(fd)
