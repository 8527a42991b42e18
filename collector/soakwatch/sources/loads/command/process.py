"""A child process whose output is read line by line, and which is ended with everything it started."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from soakwatch.core.one_thread import users_own
from soakwatch.core.stderr_tail import MAX_BYTES, last_line
from soakwatch.core.tied_process import tied
from soakwatch.sources.abc import SourceError

LINE_BYTES = 65_536
_GRACE_S = 5.0
_LEFT_OPEN_S = 1.0
_LOOK_S = 0.02


class Child:
    """One process; ``take`` gets each line of its standard output, None for one over ``LINE_BYTES``."""

    def __init__(self, process: Process, take: Callable[[bytes | None], None]) -> None:
        self._process, self._take = process, take
        self._errors = b""
        self._ended_at: float | None = None
        self._readers = [asyncio.create_task(self._read_output()), asyncio.create_task(self._read_errors())]

    @property
    def ended(self) -> str | None:
        """How it ended, in one sentence with its last error line; None while it runs or output may still arrive."""
        code = self._process.returncode
        if code is None:
            return None
        self._ended_at = time.monotonic() if self._ended_at is None else self._ended_at
        # Not silent: a process that it started may hold the pipes open.
        silent = all(reader.done() for reader in self._readers)
        if not silent and time.monotonic() < self._ended_at + _LEFT_OPEN_S:
            return None
        how = f"was stopped by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        output = last_line(self._errors)
        return f"the command {how}" + (f": {output}" if output else "")

    async def end(self, how: signal.Signals) -> None:
        """Signals it to end, kills it after 5 s, and then kills its process group."""
        for number in (how, signal.SIGKILL):
            if not await self._gone(0):
                self._signal(number)
                await self._gone(_GRACE_S)
        self._signal(signal.SIGKILL)
        await asyncio.wait(self._readers, timeout=_LEFT_OPEN_S)
        for reader in self._readers:
            reader.cancel()
        await asyncio.wait(self._readers)

    async def _gone(self, within_s: float) -> bool:
        """True if it has ended; wait() would also wait for whoever holds its pipes open."""
        for _ in range(round(within_s / _LOOK_S)):
            if self._process.returncode is not None:
                break
            await asyncio.sleep(_LOOK_S)
        return self._process.returncode is not None

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    async def _read_output(self) -> None:
        output = self._process.stdout
        assert output is not None
        part, skipping = b"", False
        while data := await output.read(LINE_BYTES):
            *lines, part = (part + data).split(b"\n")
            for line in lines:
                if not skipping:
                    self._take(line if len(line) <= LINE_BYTES else None)
                skipping = False
            if len(part) > LINE_BYTES:
                if not skipping:
                    self._take(None)
                part, skipping = b"", True
        if part and not skipping:
            self._take(part)

    async def _read_errors(self) -> None:
        errors = self._process.stderr
        assert errors is not None
        while data := await errors.read(LINE_BYTES):
            self._errors = (self._errors + data)[-MAX_BYTES:]


async def begin(
    words: Sequence[str],
    environment: Mapping[str, str],
    take: Callable[[bytes | None], None],
    *,
    outlives: bool = False,
) -> Child:
    """Starts a command in its own session; it ends with this process unless it ``outlives`` it. Raises SourceError."""
    variables = {**users_own(os.environ), **environment}
    try:
        process = await asyncio.create_subprocess_exec(
            *(words if outlives else tied(words, variables, family=True)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            limit=LINE_BYTES,
            start_new_session=True,
            env=variables,
        )
    except OSError as error:
        raise SourceError(f"cannot start {words[0]}: {error.strerror}") from error
    except ValueError:
        raise SourceError(f"cannot start {words[0]}: its arguments contain a NUL character") from None
    return Child(process, take)
