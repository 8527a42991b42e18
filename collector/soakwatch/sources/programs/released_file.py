"""The output of a driven program: one file, in a folder of its own, that never takes more than some MiB.

What was read is given back to the file system (the range is punched out of the file), while the program writes on at
its end. The file keeps its first block, by which its reader knows it. Where a file system cannot do that, the program
must start a new file.
"""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress
from pathlib import Path

from soakwatch.sources.result_files.tail import Position

_PUNCH = 0x01 | 0x02  # FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE
_BLOCK = 4096
STEP_BYTES = 8 << 20
"""Released at once, when so much was read."""
MAX_BYTES = 256 << 20
"""More than this on the disk is too much: the program must start a new file."""


class ReleasedFile:
    """The file at ``path``, in a folder that nobody else may enter."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._released = Position(0, 0, _BLOCK)

    def prepare(self) -> None:
        """Makes the folder. Raises OSError."""
        self.path.parent.parent.mkdir(parents=True, exist_ok=True)
        self.path.parent.mkdir(mode=0o700, exist_ok=True)
        self.path.parent.chmod(0o700)

    def renew(self) -> None:
        """Removes the old file, which its reader still has; the program makes the next. Raises OSError."""
        self.prepare()
        self.path.unlink(missing_ok=True)

    def remove(self) -> None:
        """Removes it, and what the program wrote beside it."""
        with suppress(OSError):
            for each in self.path.parent.iterdir():
                each.unlink()
            self.path.parent.rmdir()
        with suppress(OSError):
            self.path.parent.parent.rmdir()

    def append(self, line: str) -> None:
        """Adds a line, of a program that prints what it has to say. Raises OSError."""
        file = os.open(self.path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, f"{line}\n".encode())
        finally:
            os.close(file)

    @property
    def written(self) -> int:
        """How many bytes the program has written; 0 without a file."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0

    @property
    def held(self) -> int:
        """How many bytes it takes on the disk; 0 without a file."""
        try:
            return self.path.stat().st_blocks * 512
        except OSError:
            return 0

    def release(self, read: Position) -> None:
        """Everything before ``read`` was read: gives it back, if it is much and the file still has its name."""
        done = self._released
        begin = done.offset if (done.device, done.inode) == (read.device, read.inode) else _BLOCK
        until = read.offset // _BLOCK * _BLOCK
        if until - begin < STEP_BYTES or sys.platform != "linux":
            return
        try:
            file = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
        except OSError:
            return
        try:
            found = os.fstat(file)
            if (found.st_dev, found.st_ino) == (read.device, read.inode):
                libc = ctypes.CDLL(None, use_errno=True)
                if libc.fallocate64(file, _PUNCH, ctypes.c_int64(begin), ctypes.c_int64(until - begin)) == 0:
                    self._released = Position(read.device, read.inode, until)
        except AttributeError:  # a C library without it: the program gets a new file when this one is large
            return
        finally:
            os.close(file)
