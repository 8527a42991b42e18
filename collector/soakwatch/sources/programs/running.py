"""A program that ends with this process: its version, and one run of it with its output."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from soakwatch.core.one_thread import users_own
from soakwatch.core.stderr_tail import last_line
from soakwatch.core.tied_process import tied
from soakwatch.sources.abc import SourceError

_LINE_BYTES = 1 << 20
_OUTPUT_BYTES = 65_536
_STDERR_BYTES = 4096
FAREWELL_S = 3.0


async def said_by(words: Sequence[str], timeout_s: float, folder: str | None = None) -> tuple[int, bytes]:
    """Exit code and output, errors among it, of a command that ends by itself, such as ``--version``. Raises OSError,
    and TimeoutError after killing it."""
    process = await asyncio.create_subprocess_exec(
        *words, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, start_new_session=True, env=users_own(os.environ), cwd=folder
    )
    assert process.stdout is not None
    output = b""
    try:
        async with asyncio.timeout(timeout_s):
            while piece := await process.stdout.read(_OUTPUT_BYTES):
                output = (output + piece)[:_OUTPUT_BYTES]
            return await process.wait(), output
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


async def version_of(
    name: str, words: Sequence[str], pattern: re.Pattern[str], title: str, timeout_s: float = FAREWELL_S
) -> re.Match[str]:
    """What ``pattern`` finds in the output of ``name words``. Raises SourceError if the program, named ``title`` for
    people, is missing or another one."""
    try:
        _, output = await said_by((name, *words), timeout_s)
    except OSError as error:
        why = (error.strerror or "it cannot be run").lower()
        raise SourceError(f"cannot start {name}: {why}; install {title} here, or set program: to its path") from None
    except TimeoutError:
        raise SourceError(f"{' '.join((name, *words))} does not end: set program: to the path of {title}") from None
    match = pattern.search(output.decode("utf-8", "replace"))
    if match is None:
        raise SourceError(f"{name} is not {title}: set program: to the path of {title}")
    return match


class RunningProgram:
    """One process, from start to end. ``take`` gets each line of its output."""

    def __init__(self, process: Process, take: Callable[[str], None], *, family: bool = False) -> None:
        self._process = process
        self._take = take
        self._family = family
        self._complaint = b""
        self._readers = [asyncio.create_task(self._read()), asyncio.create_task(self._read_complaints())]

    @property
    def pid(self) -> int:
        """The process id, and that of its group."""
        return self._process.pid

    @property
    def complaints(self) -> str:
        """The end of its standard error."""
        return self._complaint.decode("utf-8", "replace")

    @property
    def complaint(self) -> str:
        """The last line of its standard error, without what looks like a secret; "" for none."""
        return last_line(self._complaint)

    async def ended(self) -> int:
        """Waits for its end; returns its exit code."""
        await asyncio.wait(self._readers)
        return await self._process.wait()

    async def end(self, how: signal.Signals = signal.SIGINT, farewell_s: float = FAREWELL_S) -> None:
        """Stops it: by signal ``how``, then by SIGKILL, each with a bounded wait."""
        for number in (how, signal.SIGKILL):
            if self._process.returncode is not None:
                break
            self._signal(number)
            with suppress(TimeoutError):
                async with asyncio.timeout(farewell_s):
                    await self._process.wait()
        if self._family:
            self._signal(signal.SIGKILL)
        # Processes that it started may hold the pipes.
        _, open_ = await asyncio.wait(self._readers, timeout=FAREWELL_S)
        for task in open_:
            task.cancel()
        if open_:
            await asyncio.wait(open_)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while True:
            try:
                line = await self._process.stdout.readline()
            except ValueError:
                self._take(f"a line of more than {_LINE_BYTES} bytes")
                continue
            if not line:
                return
            self._take(line.decode("utf-8", "replace").rstrip("\r\n"))

    async def _read_complaints(self) -> None:
        assert self._process.stderr is not None
        while piece := await self._process.stderr.read(_STDERR_BYTES):
            self._complaint = (self._complaint + piece)[-_STDERR_BYTES:]


async def launch(
    command: Sequence[str],
    take: Callable[[str], None],
    environment: Mapping[str, str] | None = None,
    *,
    family: bool = False,
) -> RunningProgram:
    """Starts a command that ends with this process. Raises SourceError."""
    # Line-buffered: programs write to a pipe in blocks. iperf3's --forceflush flushes only with intervals, so that the
    # lines "connected" and "listening" would come a second late.
    prompt = ("stdbuf", "-oL") if shutil.which("stdbuf") else ()
    if prompt and shutil.which(command[0]) is None:
        raise SourceError(f"cannot start {command[0]}: no such file or directory")
    variables = {**users_own(os.environ), **(environment or {})}
    try:
        process = await asyncio.create_subprocess_exec(
            *tied((*prompt, *command), variables, family=family),
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            limit=_LINE_BYTES,
            start_new_session=True,
            env=variables,
        )
    except OSError as error:
        raise SourceError(f"cannot start {command[0]}: {(error.strerror or 'it cannot be run').lower()}") from None
    return RunningProgram(process, take, family=family)
