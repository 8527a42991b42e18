"""Child processes of a run: started, asked, limited, killed and reaped in one way.

A child has its own session (Ctrl-C does not reach it) and prints nothing on the terminal. Secrets are written to its
input, never to its command line, which everybody on the machine can read.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

MAX_LINE = 2**24
MAX_OUTPUT = 2**24
DRAIN_S = 1.0


def python_module(name: str, *arguments: str) -> tuple[str, ...]:
    """The command that runs a module with this interpreter."""
    return (sys.executable, "-m", name, *arguments)


class Child:
    """A child for threads: one may read or wait while another writes, stops or kills. Raises OSError if it cannot
    start.

    ``output`` keeps its standard output for ``lines`` and ``exchange``; it inherits the descriptors ``pass_fds``.
    """

    def __init__(self, command: tuple[str, ...], *, output: bool = True, pass_fds: tuple[int, ...] = ()) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if output else subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=pass_fds,
            start_new_session=True,
        )
        self._input = threading.Lock()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        return self._process.poll()

    def write(self, text: str) -> None:
        """Writes to its input; does nothing if it is gone or its input closed."""
        with self._input, suppress(OSError, ValueError):
            assert self._process.stdin is not None
            self._process.stdin.write(text.encode())
            self._process.stdin.flush()

    def close_input(self) -> None:
        """Closes its input, which tells a working child to end."""
        with self._input, suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()

    def lines(self) -> Iterator[str]:
        """Yields its output lines until it ends, then reaps it; lines over ``MAX_LINE`` bytes are split."""
        assert self._process.stdout is not None
        with self._process.stdout as output:
            while line := output.readline(MAX_LINE):
                yield line.decode("utf-8", "replace")
        self.close_input()
        self.wait()

    def exchange(self, text: str, timeout_s: float) -> str:
        """Writes a text and returns all its output (``MAX_OUTPUT`` bytes at most); reaps it.

        Raises TimeoutError if it has not ended after ``timeout_s``. It is killed for that, and for printing more.
        """
        late = threading.Event()

        def give_up() -> None:
            late.set()
            self.kill()

        timer = threading.Timer(timeout_s, give_up)
        timer.daemon = True
        timer.start()
        try:
            self.write(text)
            self.close_input()
            assert self._process.stdout is not None
            with self._process.stdout as output:
                printed = output.read(MAX_OUTPUT)
                if output.read(1):
                    self.kill()
            self.wait()
        finally:
            timer.cancel()
        if late.is_set():
            raise TimeoutError
        return printed.decode("utf-8", "replace")

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Waits for its end, ``timeout_s`` at most; its exit code, or None if it still runs."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def stop(self, grace_s: float) -> None:
        """Closes its input, kills it if it has not ended after ``grace_s``, and reaps it."""
        self.close_input()
        if self.wait(grace_s) is None:
            self.kill()
            self.wait()

    def kill(self) -> None:
        """Kills it if it runs; ``wait`` reaps it."""
        self._process.kill()


class AsyncChild:
    """A child for an event loop; see Child."""

    def __init__(self, process: Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, command: tuple[str, ...]) -> AsyncChild:
        """Starts it. Raises OSError if it cannot."""
        process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, start_new_session=True, limit=MAX_LINE
        )
        return cls(process)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        return self._process.returncode

    async def write(self, text: str) -> None:
        """Writes to its input. Raises OSError if it is gone."""
        assert self._process.stdin is not None
        self._process.stdin.write(text.encode())
        await self._process.stdin.drain()

    async def read_line(self) -> str:
        """Its next output line with line end; "" after the last. Raises ValueError above ``MAX_LINE`` bytes."""
        assert self._process.stdout is not None
        return (await self._process.stdout.readline()).decode()

    async def read_all(self, timeout_s: float) -> str:
        """All its output, with its input closed. Raises TimeoutError if it has not ended after ``timeout_s``, OSError
        if it prints more than ``MAX_OUTPUT`` bytes; it is killed for that, and always reaped."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        printed = bytearray()
        try:
            async with asyncio.timeout(timeout_s):
                self._process.stdin.close()
                while part := await self._process.stdout.read(2**16):
                    printed += part
                    if len(printed) > MAX_OUTPUT:
                        raise OSError(f"it printed more than {MAX_OUTPUT} bytes")
                await self._process.wait()
        finally:
            await self.kill()
        return printed.decode("utf-8", "replace")

    async def wait(self) -> int:
        """Waits for its end; returns its exit code."""
        return await self._process.wait()

    async def kill(self) -> None:
        """Kills and reaps it; does nothing if it has ended."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()
        # Drain first: asyncio reports the end of a process only after its pipes were read.
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_S):
                assert self._process.stdout is not None
                while await self._process.stdout.read(2**16):
                    pass
        await self._process.wait()


@dataclass(slots=True)
class RestartPauses:
    """Pauses before restarting a child that ended by itself: each twice the last, up to ``max_s``; ``succeeded`` starts
    over."""

    first_s: float
    max_s: float
    _next_s: float = 0.0

    def succeeded(self) -> None:
        """The child did some work before it ended."""
        self._next_s = 0.0

    def next_s(self) -> float:
        """The next pause, seconds."""
        pause_s = self._next_s or self.first_s
        self._next_s = min(self.max_s, 2 * pause_s)
        return pause_s
