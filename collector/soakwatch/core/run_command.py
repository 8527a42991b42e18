"""Runs the user's commands during a run: no shell, bounded output, a guaranteed end."""

from __future__ import annotations

import asyncio
import io
import os
import signal
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import Protocol

from soakwatch.core.one_thread import users_own
from soakwatch.core.redaction import Redaction
from soakwatch.core.stderr_tail import MAX_BYTES, last_line
from soakwatch.core.tied_process import tied
from soakwatch.core.units import show_seconds

MAX_OUTPUT = 256 << 10
_GRACE_S = 1.0  # from SIGTERM to SIGKILL
_LEFT_OPEN_S = 1.0  # how long processes left behind may keep its output open


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a command ended: ``failure`` in a few words, "" on success; ``over`` if it was killed because the run ended.
    ``output`` is both streams interleaved, without secrets."""

    failure: str
    output: bytes
    seconds: float
    over: bool = False


class RunsCommand(Protocol):
    """How a command is run: see ``run_command``."""

    async def __call__(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        timeout_s: float,
        over: asyncio.Event,
        redaction: Redaction,
        max_output: int = MAX_OUTPUT,
    ) -> CommandResult:
        """Runs it."""
        ...


async def run_command(
    words: Sequence[str],
    environment: Mapping[str, str],
    timeout_s: float,
    over: asyncio.Event,
    redaction: Redaction,
    max_output: int = MAX_OUTPUT,
) -> CommandResult:
    """Runs it to its end, for ``timeout_s``, or until ``over`` is set; its process group is killed with it, and ends
    with this process. Raises only if cancelled, and then leaves nothing running either."""
    loop = asyncio.get_running_loop()
    started_s, captured = loop.time(), BoundedOutput(max_output)
    variables = {**users_own(os.environ), **environment}
    async with AsyncExitStack() as pipes:
        # Our own pipes: asyncio's would wait for any process that still holds the output open.
        stdout_pipe, stderr_pipe = await _open_pipe(pipes, captured.take), await _open_pipe(pipes, captured.take_error)
        try:
            process = await asyncio.create_subprocess_exec(
                *tied(words, variables, family=True),
                stdin=DEVNULL,
                stdout=stdout_pipe.write_end,
                stderr=stderr_pipe.write_end,
                start_new_session=True,
                env=variables,
            )
        except OSError as error:
            return CommandResult(f"cannot start {words[0]}: {error.strerror}", b"", 0.0)
        except ValueError:
            return CommandResult(f"cannot start {words[0]}: its arguments contain an invalid character", b"", 0.0)
        finally:
            stdout_pipe.shut()
            stderr_pipe.shut()
        try:
            in_time = await _ended(process, timeout_s, over)
            if not in_time:
                await _ask_to_end(process)
        finally:
            _signal(process, signal.SIGKILL)
            await process.wait()
        await asyncio.wait([stdout_pipe.quiet, stderr_pipe.quiet], timeout=_LEFT_OPEN_S)
    output = await asyncio.to_thread(redaction.output, captured.bytes())
    took_s = loop.time() - started_s
    if not in_time:
        why = "the run was over" if over.is_set() else f"it did not end within {show_seconds(timeout_s)}"
        return CommandResult(f"it was killed: {why}", output, took_s, over.is_set())
    code = process.returncode or 0
    if code == 0:
        return CommandResult("", output, took_s)
    how = f"ended by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    last_words = redaction.text(last_line(redaction.output(captured.errors)))
    return CommandResult(f"{how}: {last_words}" if last_words else how, output, took_s)


class BoundedOutput:
    """The beginning and the end of some output; bytes left out in between are counted."""

    def __init__(self, max_bytes: int) -> None:
        self._half = max_bytes // 2
        self._head, self._tail = bytearray(), bytearray()
        self._left_out = 0
        self.errors = b""

    def take(self, data: bytes) -> None:
        """Adds output."""
        room = self._half - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        spare = len(self._tail) - self._half
        if spare > 0:
            self._left_out += spare
            del self._tail[:spare]

    def take_error(self, data: bytes) -> None:
        """Adds output of standard error."""
        self.errors = (self.errors + data)[-MAX_BYTES:]
        self.take(data)

    def bytes(self) -> bytes:
        """The output; if some was left out, the gap is between whole lines."""
        if not self._left_out:
            return bytes(self._head + self._tail)
        head = bytes(self._head).rpartition(b"\n")[0] or bytes(self._head)
        tail = bytes(self._tail).partition(b"\n")[2] or bytes(self._tail)
        left = self._left_out + len(self._head) + len(self._tail) - len(head) - len(tail)
        return head + f"\n… {left} bytes omitted …\n".encode() + tail


async def _ended(process: Process, timeout_s: float, over: asyncio.Event) -> bool:
    waiting = {asyncio.create_task(process.wait()), asyncio.create_task(over.wait())}
    try:
        await asyncio.wait(waiting, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)
    return process.returncode is not None


async def _ask_to_end(process: Process) -> None:
    _signal(process, signal.SIGTERM)
    with suppress(TimeoutError):
        async with asyncio.timeout(_GRACE_S):
            await process.wait()


def _signal(process: Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


class _PipeReader(asyncio.Protocol):
    """The read end of a pipe; ``write_end`` is the write end for the process, ``quiet`` is done when nobody has that
    open."""

    def __init__(self, write_end: int, take: Callable[[bytes], None], quiet: asyncio.Future[None]) -> None:
        self.write_end, self.quiet, self._take = write_end, quiet, take

    def data_received(self, data: bytes) -> None:
        """Passes on what was read."""
        self._take(data)

    def connection_lost(self, _: Exception | None) -> None:
        """Notes that the pipe was closed."""
        if not self.quiet.done():
            self.quiet.set_result(None)

    def shut(self) -> None:
        """Closes this process's copy of the write end."""
        os.close(self.write_end)


async def _open_pipe(stack: AsyncExitStack, take: Callable[[bytes], None]) -> _PipeReader:
    loop = asyncio.get_running_loop()
    end, write_end = os.pipe()
    reader = _PipeReader(write_end, take, loop.create_future())
    transport, _ = await loop.connect_read_pipe(lambda: reader, io.FileIO(end))
    stack.push_async_callback(_closed, transport, reader.quiet)
    return reader


async def _closed(transport: asyncio.ReadTransport, quiet: asyncio.Future[None]) -> None:
    transport.close()
    await asyncio.wait([quiet])
