"""Child processes that work beside a run: started, asked, bounded, killed and reaped in one way.

A child is a session of its own (a Ctrl-C on the terminal is not for it) and says nothing on the terminal. The
secrets that it needs come on its input, never on its command line, which everybody on the machine can read.
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
    """The command that runs a module by this interpreter."""
    return (sys.executable, "-m", name, *arguments)


class Child:
    """A child for threads: one may read or wait while another writes, stops or kills. Raises OSError if there is no
    process to be had.

    ``output`` keeps its standard output for ``lines`` and ``exchange``; ``pass_fds`` are descriptors that it inherits.
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
        """Write to its input; one that is gone or was told that nothing more comes does not get it."""
        with self._input, suppress(OSError, ValueError):
            assert self._process.stdin is not None
            self._process.stdin.write(text.encode())
            self._process.stdin.flush()

    def close_input(self) -> None:
        """Nothing more comes: for a child that works until then, the sign to end."""
        with self._input, suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()

    def lines(self) -> Iterator[str]:
        """The lines that it prints until its end, after which it is reaped; one that is longer than ``MAX_LINE`` is cut
        into several."""
        assert self._process.stdout is not None
        with self._process.stdout as output:
            while line := output.readline(MAX_LINE):
                yield line.decode("utf-8", "replace")
        self.close_input()
        self.wait()

    def exchange(self, text: str, timeout_s: float) -> str:
        """Write a text, and what it prints until its end, at most ``MAX_OUTPUT`` bytes of it; it is reaped then.

        Raises TimeoutError if it has not ended after ``timeout_s``; it is killed for that, and for printing more.
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
        """Wait for its end, at most so long; its exit code, or None if it still runs."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def stop(self, grace_s: float) -> None:
        """Close its input, wait for it to end, and kill it after ``grace_s``; it is reaped."""
        self.close_input()
        if self.wait(grace_s) is None:
            self.kill()
            self.wait()

    def kill(self) -> None:
        """Kill it, if it runs; whoever waits for it reaps it."""
        self._process.kill()


class AsyncChild:
    """A child for an event loop; see Child."""

    def __init__(self, process: Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, command: tuple[str, ...]) -> AsyncChild:
        """Start it. Raises OSError if there is no process to be had."""
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
        """Write to its input. Raises OSError if it is gone."""
        assert self._process.stdin is not None
        self._process.stdin.write(text.encode())
        await self._process.stdin.drain()

    async def read_line(self) -> str:
        """The next line that it prints, with its end; "" after the last. Raises ValueError above ``MAX_LINE`` bytes."""
        assert self._process.stdout is not None
        return (await self._process.stdout.readline()).decode()

    async def read_all(self, timeout_s: float) -> str:
        """What it prints until its end, with nothing on its input. Raises TimeoutError if it has not ended by then, and
        OSError if it prints more than ``MAX_OUTPUT`` bytes; it is killed for that, and reaped in every case."""
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
        """Wait for its end; its exit code."""
        return await self._process.wait()

    async def kill(self) -> None:
        """Kill and reap it; nothing for one that has ended."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()
        # Before it is waited for: asyncio holds the end of a process back until its pipes were read to their ends.
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_S):
                assert self._process.stdout is not None
                while await self._process.stdout.read(2**16):
                    pass
        await self._process.wait()


@dataclass(slots=True)
class RestartPauses:
    """How long to wait before a child that ended by itself is started again: twice as long each time, up to
    ``max_s``; ``succeeded`` starts over."""

    first_s: float
    max_s: float
    _next_s: float = 0.0

    def succeeded(self) -> None:
        """It did some work before it ended."""
        self._next_s = 0.0

    def next_s(self) -> float:
        """The next pause, in seconds."""
        pause_s = self._next_s or self.first_s
        self._next_s = min(self.max_s, 2 * pause_s)
        return pause_s
