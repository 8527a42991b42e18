"""A command on a terminal of its own, and what stands on its screen."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pyte
from tests.commands import MAX_WAIT_S, SOAKWATCH, start

__all__ = ["SOAKWATCH", "Terminal"]
PATIENCE_S = MAX_WAIT_S


class Terminal:
    """``soakwatch WORDS…`` with a screen of ``columns`` by ``rows``; ``raw`` is all that it wrote."""

    def __init__(
        self, words: tuple[object, ...], columns: int, rows: int, folder: Path, environment: Mapping[str, str]
    ) -> None:
        self.screen = pyte.Screen(columns, rows)
        self.raw = b""
        self._stream = pyte.ByteStream(self.screen)
        self._ours, theirs = pty.openpty()
        self._sized(theirs, columns, rows)
        kept = {key: value for key, value in os.environ.items() if key not in {"COLUMNS", "LINES", "NO_COLOR"}}
        variables = {**kept, "TERM": "xterm-256color", "PYTHONWARNINGS": "error", **environment}
        self.process = start(words, folder, stdin=theirs, stdout=theirs, stderr=theirs, env=variables, own_session=True)
        os.close(theirs)

    @staticmethod
    def _sized(descriptor: int, columns: int, rows: int) -> None:
        fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, columns: int, rows: int) -> None:
        """As if someone had pulled at the window."""
        self.screen.resize(rows, columns)
        self._sized(self._ours, columns, rows)

    @property
    def text(self) -> str:
        """What stands on the screen."""
        return "\n".join(line.rstrip() for line in self.screen.display).strip("\n")

    def read(self, wait_s: float = 0.1) -> bool:
        """Take what was written; False once the command has closed its terminal."""
        ready, _, _ = select.select([self._ours], [], [], wait_s)
        if not ready:
            return True
        try:
            chunk = os.read(self._ours, 1 << 16)
        except OSError:  # the other side is closed
            return False
        self.raw += chunk
        self._stream.feed(chunk)
        return bool(chunk)

    def until(self, happened: Callable[[str], bool], what: str) -> str:
        """Wait until the screen is so; what stands on it then."""
        deadline = time.monotonic() + PATIENCE_S
        while not happened(self.text):
            alive = self.read()
            if happened(self.text):
                break
            assert alive, f"it ended without {what}:\n{self.text}"
            assert time.monotonic() < deadline, f"no {what} within {PATIENCE_S:g} s:\n{self.text}"
        return self.text

    def type(self, text: str) -> None:
        """What somebody types there."""
        os.write(self._ours, text.encode())

    def interrupt(self) -> None:
        """Ctrl-C."""
        self.process.send_signal(signal.SIGINT)

    def end(self) -> int:
        """Wait for the end of the command; its exit code."""
        deadline = time.monotonic() + PATIENCE_S
        while self.read():
            assert time.monotonic() < deadline, f"no end within {PATIENCE_S:g} s:\n{self.text}"
        return self.process.wait(PATIENCE_S)

    def close(self) -> None:
        """Whatever it does, it is over."""
        self.process.kill()
        self.process.wait()
        os.close(self._ours)
