"""Notices that another program deleted, replaced or cut the write-ahead log of a record that is being written.

SQLite does not: it goes on writing behind the cut, and takes the hole for pages when it moves the log into the file. A
log has a header of 32 bytes and frames of 24 bytes and a page each (SQLite's file format, section 4.1). The head of a
frame is never zero, so what was written is there as long as the last frame that was seen still has one. A log that
begins anew keeps its length, up to SQLite's own limit (``journal_size_limit``).
"""

from __future__ import annotations

import os
from pathlib import Path

_HEADER, _FRAME_HEAD = 32, 24
_PAGE_SIZE_AT = 8


class LogWatch:
    """Watches the log of the record ``path`` by its name; it is not kept open."""

    def __init__(self, path: Path) -> None:
        self._log = f"{path}-wal"
        self._file: tuple[int, int] | None = None
        self._page = 0  # bytes
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
        try:
            return self._trouble_of(descriptor, limit)
        finally:
            os.close(descriptor)

    def _trouble_of(self, descriptor: int, limit: int) -> str:
        status = os.fstat(descriptor)
        if self._file not in {None, (status.st_dev, status.st_ino)}:
            return "another file is in the place of its write-ahead log"
        self._file = status.st_dev, status.st_ino
        last = self._last_frame
        if last is not None and last + _FRAME_HEAD <= limit and not any(os.pread(descriptor, _FRAME_HEAD, last)):
            return "its write-ahead log was cut short"  # nothing is there, or a hole
        if not self._page:  # which is that of the record, and never changes
            header = os.pread(descriptor, _HEADER, 0)
            if len(header) == _HEADER:
                self._page = int.from_bytes(header[_PAGE_SIZE_AT : _PAGE_SIZE_AT + 4], "big")
        self._last_frame = _last_frame(self._page, status.st_size)
        return ""


def _last_frame(page: int, size: int) -> int | None:
    """Where the last whole frame of a log of this size begins; None if it has none."""
    frames = (size - _HEADER) // (_FRAME_HEAD + page) if page else 0
    return _HEADER + (frames - 1) * (_FRAME_HEAD + page) if frames > 0 else None
