"""A child process that is a copy of this one: it has loaded what its parent has, and shares that memory with it.

For work that begins later and needs the same modules: a program of its own would load them once more. The copy must be
made before SQLite has a file open, whose locks a copy would believe to have, and while no thread holds a lock.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import signal
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from soakwatch.core.supervised_child import MAX_LINE

_SET_NAME = 15  # PR_SET_NAME of prctl(2)
_FDS = Path("/proc/self/fd")


class ForkedChild:
    """A copy of this process that does ``work`` with pipes as its input and output; for an event loop.

    Raises OSError if there cannot be one. It ends with its input, so also when this process is killed. ``close`` ends
    it; nothing of it is left behind then.
    """

    def __init__(self, work: Callable[[], int], name: str) -> None:
        gc.collect()
        gc.freeze()  # the copy shares what is there by now for as long as neither writes to it
        to_read, self._input = os.pipe()
        self._output, to_write = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads: see above
            self.pid = os.fork()
        if self.pid == 0:
            _become(work, name, to_read, to_write)
        os.close(to_read)
        os.close(to_write)
        self._code: int | None = None
        self._reader: asyncio.StreamReader | None = None
        self._transport: asyncio.ReadTransport | None = None

    @property
    def exit_code(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        if self._code is None:
            self._reap(os.WNOHANG)
        return self._code

    async def write(self, text: str) -> None:
        """Writes a short text to its input. Raises OSError if it is gone."""
        os.write(self._input, text.encode())

    async def read_line(self) -> str:
        """Its next output line with line end; "" after the last. Raises ValueError above ``MAX_LINE`` bytes."""
        if self._reader is None:
            self._reader = reader = asyncio.StreamReader(limit=MAX_LINE)
            self._transport, _ = await asyncio.get_running_loop().connect_read_pipe(
                lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(os.dup(self._output), "rb", buffering=0)
            )
        return (await self._reader.readline()).decode()

    async def wait(self) -> int:
        """Waits for its end; returns its exit code."""
        if self._code is None:
            await asyncio.to_thread(self._reap, 0)
        assert self._code is not None
        return self._code

    async def kill(self) -> None:
        """Kills and reaps it, if it has not ended."""
        if self._transport is not None:
            self._transport.close()
        self.close()

    def close(self) -> None:
        """As ``kill``, without a loop; a second time does nothing."""
        if self.exit_code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self._reap(0)
        for descriptor in (self._input, self._output):
            if descriptor >= 0:
                os.close(descriptor)
        self._input = self._output = -1

    def _reap(self, options: int) -> None:
        try:
            pid, status = os.waitpid(self.pid, options)
        except ChildProcessError:
            self._code = -signal.SIGKILL
        else:
            self._code = os.waitstatus_to_exitcode(status) if pid else None


def _become(work: Callable[[], int], name: str, to_read: int, to_write: int) -> NoReturn:
    """The copy: it drops what its parent had open, does the work, and never returns."""
    code = 1
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(to_read, 0)
        os.dup2(to_write, 1)
        # Replaced, not closed: whatever still has one of these numbers cannot close a file that is opened later.
        for descriptor in [int(entry.name) for entry in _FDS.iterdir()]:
            if descriptor > 1:
                with suppress(OSError):
                    os.dup2(nothing, descriptor, inheritable=False)
        with suppress(AttributeError, OSError):
            ctypes.CDLL(None).prctl(_SET_NAME, name.encode(), 0, 0, 0)
        _KEPT.extend((sys.stdin, sys.stdout, sys.stderr))
        sys.stdin = os.fdopen(0, "r", encoding="utf-8", closefd=False)
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
        code = work()
        sys.stdout.flush()
    except BaseException:  # noqa: BLE001 - nothing of the parent's frames may go on in the copy
        code = 1
    finally:
        os._exit(code)


_KEPT: list[object] = []
"""Streams of the parent, which would close their descriptors if the copy forgot them."""
