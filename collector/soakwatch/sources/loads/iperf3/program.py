"""The program iperf3: its version, its arguments, and one running process with its output."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from soakwatch.sources.abc import SourceError
from soakwatch.sources.loads.iperf3.reports import readable

_VERSION = re.compile(r"iperf (\d{1,4})\.(\d{1,6})")
_STREAM_SINCE = (3, 17)
THREADS_SINCE = (3, 16)
_LINE_BYTES = 1 << 20
_STDERR_BYTES = 4096
_FAREWELL_S = 3.0

# The kernel ends the generator with its parent, even after a kill -9. prctl is called by a small Python that execs the
# program, because code between fork and exec is unsafe with threads.
_TIED = (
    "import ctypes,os,signal,sys\n"
    "ctypes.CDLL(None).prctl(1, signal.SIGTERM)\n"
    "if os.getppid() != int(sys.argv[1]): sys.exit(1)\n"
    "os.execvp(sys.argv[2], sys.argv[2:])\n"
)


@dataclass(frozen=True, slots=True)
class Program:
    """An installed iperf3."""

    name: str
    version: tuple[int, int]

    @property
    def streams(self) -> bool:
        """True if it can write one JSON event a line."""
        return self.version >= _STREAM_SINCE

    @property
    def output(self) -> tuple[str, ...]:
        """Arguments for an output that can be read while it grows."""
        return ("--json-stream",) if self.streams else ("-f", "k", "-V")

    @property
    def shown(self) -> str:
        """The version as text."""
        return ".".join(map(str, self.version))


async def find(name: str) -> Program:
    """The program with its version. Raises SourceError if it is missing or not iperf3."""
    try:
        process = await asyncio.create_subprocess_exec(
            name, "--version", stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, start_new_session=True
        )
    except OSError as error:
        why = (error.strerror or "it cannot be run").lower()
        raise SourceError(f"cannot start {name}: {why}; install iperf3 here, or set program: to its path") from None
    assert process.stdout is not None
    output = b""
    try:
        async with asyncio.timeout(_FAREWELL_S):
            output = await process.stdout.read(_STDERR_BYTES)
            await process.wait()
    except TimeoutError:
        raise SourceError(f"{name} --version does not end: set program: to the path of iperf3") from None
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    match = _VERSION.search(output.decode("utf-8", "replace"))
    if match is None or int(match[1]) < 3:
        raise SourceError(f"{name} is not iperf3 3: set program: to the path of iperf3")
    return Program(name, (int(match[1]), int(match[2])))


class RunningProgram:
    """One process, from start to end. ``take`` gets each line of its output."""

    def __init__(self, process: Process, take: Callable[[str], None]) -> None:
        self._process = process
        self._take = take
        self._complaint = b""
        self._readers = [asyncio.create_task(self._read()), asyncio.create_task(self._read_complaints())]

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def complaint(self) -> str:
        """The last meaningful line of its standard error."""
        written = self._complaint.decode("utf-8", "replace").splitlines()
        lines = [line for line in written if line.strip() not in ("", "iperf3: exiting")]
        return readable(lines[-1].removeprefix("iperf3: ").removeprefix("error - ")) if lines else ""

    async def ended(self) -> int:
        """Waits for its end; returns its exit code."""
        await asyncio.wait(self._readers)
        return await self._process.wait()

    async def end(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stops it: by signal ``how``, then by SIGKILL, each with a bounded wait."""
        for number in (how, signal.SIGKILL):
            if self._process.returncode is not None:
                break
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            with suppress(TimeoutError):
                async with asyncio.timeout(_FAREWELL_S):
                    await self._process.wait()
        # Processes that it started may hold the pipes.
        _, open_ = await asyncio.wait(self._readers, timeout=_FAREWELL_S)
        for task in open_:
            task.cancel()
        if open_:
            await asyncio.wait(open_)

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


async def launch(command: Sequence[str], take: Callable[[str], None]) -> RunningProgram:
    """Starts a command that ends with this process. Raises SourceError."""
    # Line-buffered: iperf3 writes to a pipe in blocks, and --forceflush flushes only with intervals, so that the lines
    # "connected" and "listening" would come a second late.
    prompt = ("stdbuf", "-oL") if shutil.which("stdbuf") else ()
    tied = (sys.executable, "-I", "-S", "-c", _TIED, str(os.getpid())) if sys.platform == "linux" else ()
    try:
        process = await asyncio.create_subprocess_exec(
            *tied, *prompt, *command, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, limit=_LINE_BYTES, start_new_session=True
        )
    except OSError as error:
        raise SourceError(f"cannot start {command[0]}: {(error.strerror or 'it cannot be run').lower()}") from None
    return RunningProgram(process, take)
