"""Notices that another program deleted, replaced or cut the write-ahead log of a record that is being written.

SQLite does not: it goes on writing behind the cut, and takes the hole for pages when it moves the log into the file. A
log has a header of 32 bytes and frames of 24 bytes and a page each (SQLite's file format, section 4.1). The head of a
frame is never zero, so what was written is there as long as the last frame that was seen still has one. A log that
begins anew keeps its length, up to SQLite's own limit (``journal_size_limit``).
"""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

_HEADER, _FRAME_HEAD = 32, 24
_PAGE_SIZE_AT = 8


class LogWatch:
    """Watches the log of the record ``path`` by its name; it is not kept open."""

    def __init__(self, path: Path) -> None:
        self._log = f"{path}-wal"
        self._file: tuple[int, int] | None = None
        self._last_frame: int | None = None  # where the head of the last frame that was seen begins

    def trouble(self, limit: int) -> str:
        """What happened to the log since the last call, in a few words; "" if nothing did. A log longer than ``limit``
        may be cut to that by SQLite itself."""
        try:
            descriptor = os.open(self._log, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return "its write-ahead log was deleted" if self._file is not None else ""
        except OSError:  # trouble of a disk or a network file system: the next batch of polls reports it
            return ""
        with closing(os.fdopen(descriptor, "rb", buffering=0)) as log:
            status = os.fstat(descriptor)
            if self._file not in {None, (status.st_dev, status.st_ino)}:
                return "another file is in the place of its write-ahead log"
            self._file = status.st_dev, status.st_ino
            if self._last_frame is not None and self._last_frame + _FRAME_HEAD <= limit:
                log.seek(self._last_frame)
                if not any(log.read(_FRAME_HEAD)):  # nothing is there, or a hole
                    return "its write-ahead log was cut short"
            log.seek(0)
            self._last_frame = _last_frame(log.read(_HEADER), status.st_size)
        return ""


def _last_frame(header: bytes, size: int) -> int | None:
    """Where the last whole frame of a log of this size begins; None if it has none."""
    if len(header) < _HEADER:
        return None
    page = int.from_bytes(header[_PAGE_SIZE_AT : _PAGE_SIZE_AT + 4], "big")
    frames = (size - _HEADER) // (_FRAME_HEAD + page) if page else 0
    return _HEADER + (frames - 1) * (_FRAME_HEAD + page) if frames > 0 else None
