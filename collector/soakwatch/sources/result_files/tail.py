"""Follows a text file by lines while another process writes it: it may appear, grow, be truncated, rotated, recreated.

Only whole lines are returned. An unfinished last line is held back, since it may still be written; it counts as whole
once another file has taken the name.
"""

from __future__ import annotations

import codecs
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from soakwatch.sources.abc import SourceError

CHUNK_BYTES = 1 << 20
MAX_LINE_BYTES = 1 << 18
"""Maximum length of a line, in characters: a file without line ends must not fill memory."""
_HEAD_BYTES = 1024  # of the file's begin, to tell a rewritten file from one that grew
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_NOT_TEXT = ((b"\x1f\x8b", "is compressed"), (b"PK\x03\x04", "is a zip or a spreadsheet"))


@dataclass(frozen=True, slots=True)
class Piece:
    """The result of one read.

    ``lines`` without line ends; ``anew``: they are the first of a new file; ``more`` can be read now; ``overlong``
    counts lines dropped for their length.
    """

    lines: tuple[str, ...]
    anew: bool = False
    more: bool = False
    overlong: int = 0


@dataclass(frozen=True, slots=True)
class Position:
    """How far a file was read; device and inode say which, whatever has its name by now."""

    device: int
    inode: int
    offset: int


class Tail:
    """Follows the file at ``path``. Not thread-safe."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None
        self._begin = b""  # the first bytes of the file
        self._forget()

    @property
    def position(self) -> Position | None:
        """How far the file was read; None without one."""
        return None if self._file is None else Position(*_identity(os.fstat(self._file)), self._offset)

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _forget(self) -> None:
        self._offset = 0
        self._begin = b""
        self._decoder: codecs.IncrementalDecoder | None = None
        self._part = ""
        self._skipping = False  # inside an overlong line
        self._anew = True

    def read(self) -> Piece | None:
        """The next lines, about ``CHUNK_BYTES``; None if the file does not exist (any more) and all was read.

        Raises SourceError if the file cannot be read or is not text.
        """
        if self._file is None and not self._open():
            return None
        assert self._file is not None
        if self._was_rewritten():
            self._forget()
        data = self._pread(CHUNK_BYTES, self._offset)
        if data:
            return self._take(data)
        where = self._where()
        if where == _identity(os.fstat(self._file)):
            return Piece((), self._start_over())
        if where is None:
            return None  # deleted but still open: its writer may go on until a new file appears
        self.close()  # rotated, and read to its end
        last, started_over = self._part, self._start_over()
        self._forget()
        return Piece((last,), started_over, more=True) if last else self.read()

    def _open(self) -> bool:
        try:
            if not stat.S_ISREG(self.path.stat().st_mode):
                raise SourceError(f"{self.path} is not a regular file: name one that a tool writes")
            self._file = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise SourceError(f"{self.path}: {(error.strerror or 'cannot be read').lower()}") from None
        self._forget()
        return True

    def _where(self) -> tuple[int, int] | None:
        """The identity of the file that has the name now; None without one."""
        try:
            return _identity(self.path.stat())
        except OSError:
            return None

    def _pread(self, count: int, offset: int) -> bytes:
        assert self._file is not None
        try:
            return os.pread(self._file, count, offset)
        except OSError as error:
            raise SourceError(f"{self.path}: {(error.strerror or 'cannot be read').lower()}") from None

    def _was_rewritten(self) -> bool:
        """True if the file was truncated, or truncated and refilled."""
        assert self._file is not None
        if os.fstat(self._file).st_size < self._offset:
            return True
        return bool(self._begin) and self._pread(len(self._begin), 0) != self._begin

    def _take(self, data: bytes) -> Piece:
        self._offset += len(data)
        if len(self._begin) < _HEAD_BYTES:
            self._begin = self._pread(min(_HEAD_BYTES, self._offset), 0)
        if self._decoder is None:
            if self._offset < 4 and not data.endswith(b"\n"):  # not enough to tell the encoding
                self._offset -= len(data)
                return Piece((), more=False)
            self._decoder, data = self._decoding(data)
        text = self._part + self._decoder.decode(data)
        *lines, self._part = [line.lstrip("\0") for line in text.split("\n")]
        overlong = 0
        if self._skipping and lines:
            del lines[0]
            self._skipping = False
        if len(self._part) > MAX_LINE_BYTES or self._skipping:
            overlong += not self._skipping
            self._part, self._skipping = "", True
        fitting = tuple(line.removesuffix("\r") for line in lines if len(line) <= MAX_LINE_BYTES)
        overlong += len(lines) - len(fitting)
        return Piece(fitting, self._start_over(), more=len(data) > 0, overlong=overlong)

    def _start_over(self) -> bool:
        started_over, self._anew = self._anew, False
        return started_over

    def _decoding(self, data: bytes) -> tuple[codecs.IncrementalDecoder, bytes]:
        for mark, what in _NOT_TEXT:
            if data.startswith(mark):
                raise self._no_text(what)
        for mark, name in _MARKS:
            if data.startswith(mark):
                return codecs.getincrementaldecoder(name)("replace"), data[len(mark) :]
        head = data[:_HEAD_BYTES].lstrip(b"\0")  # a writer that goes on after a truncation leaves zeros
        even, odd = head[::2].count(0), head[1::2].count(0)
        if even + odd <= len(head) // 8:
            return codecs.getincrementaldecoder("utf-8")("replace"), data
        if min(even, odd) == 0:  # UTF-16 with Latin letters, without a BOM
            name = "utf-16-le" if odd else "utf-16-be"
            return codecs.getincrementaldecoder(name)("replace"), data
        raise self._no_text("is not text")

    def _no_text(self, what: str) -> SourceError:
        self.close()
        return SourceError(f"{self.path} {what}: let the tool write plain text")


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
