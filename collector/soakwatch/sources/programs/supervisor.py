"""Keeps a program running: restarts it after failures, with growing pauses, and with another command.

What is known of the program is in its ``Terms``; what is done with its output is an ``Output``.
"""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

import psutil

from soakwatch.core.units import show_seconds
from soakwatch.sources.abc import SourceError
from soakwatch.sources.programs.running import FAREWELL_S, RunningProgram, launch

FIRST_PAUSE_S, MAX_PAUSE_S = 0.5, 15.0
_RETRY_S = 0.1
_MIN_CPU_WINDOW_S = 0.2  # CPU time comes in hundredths of a second

Command = tuple[str, ...]


class Output(Protocol):
    """What is done with a program's output. All methods run on the event loop."""

    def started(self) -> None:
        """A process is about to start. Raises OSError."""
        ...

    def take(self, line: str) -> bool:
        """Takes a line; True if it says that the program is at work."""
        ...

    def at_work(self) -> bool:
        """True if the program is seen to be at work by other means than its lines."""
        ...

    async def ended(self) -> None:
        """The process has ended, whatever the reason."""
        ...

    def failed(self, reason: str) -> None:
        """The process that was at work ended although it should run: the next is another one."""
        ...

    def reason(self, complaints: str, code: int) -> str:
        """Why it ended, in its own words; "" if they say nothing."""
        ...


@dataclass(frozen=True, slots=True)
class Terms:
    """How a program is kept. ``connected`` is the word for being at work, for sentences.

    ``once``: it is not restarted. ``repeats``: an end with exit code 0 is no failure, and the next process starts at
    once. ``handshake_s``: it must be at work by then. ``look_s``: how often ``Output.at_work`` is asked. ``drain_s``:
    the pause after a process. ``patience_s``: quick retries after a change of command. ``farewell_s``: how long it may
    take to end. ``steady_s``: one that was at work for less is a failure like the last, before which the pause grows.
    ``family``: it starts processes of its own.
    """

    name: str
    connected: str = "connected"
    once: bool = False
    repeats: bool = False
    handshake_s: float | None = None
    look_s: float | None = None
    drain_s: float = 0.0
    patience_s: float = 0.0
    farewell_s: float = FAREWELL_S
    steady_s: float = 0.0
    family: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)


class Supervisor:
    """Runs the command that ``want`` sets (None: none), by a task of its own."""

    def __init__(self, terms: Terms, output: Output) -> None:
        self.error: str | None = None  # why it does not run although it should
        self.exit_code: int | None = None  # of the last process that ended by itself
        self.connected = False
        self.starts = 0  # processes that were at work
        self._terms, self._output = terms, output
        self._drained_s = self._patient_s = -math.inf  # end of the drain, end of quick retries; monotonic seconds
        self._through = False  # True if the running process is at work
        self._refused = ""  # the error of quick retries so far
        self._wanted: Command | None = None
        self._turned = asyncio.Event()
        self._news = asyncio.Event()
        self._run: RunningProgram | None = None
        self._failures = 0
        self._steady_at_s = math.inf  # when the running process has been at work for long enough
        self._spent: tuple[int, float, float] | None = None  # pid, monotonic seconds, CPU seconds
        self._task: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        """True while a process runs."""
        return self._run is not None

    @property
    def resting(self) -> bool:
        """True while none runs, nor should."""
        return self._run is None and self._wanted is None

    def begin(self) -> None:
        """Starts the supervising task."""
        self._task = asyncio.create_task(self._keep())

    async def close(self) -> None:
        """Ends the process and the task."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await self._finish()

    def want(self, command: Command | None, *, anew: bool = False) -> None:
        """Sets the command to run; an unchanged one keeps running unless it shall start ``anew``."""
        if command != self._wanted or anew:
            self._wanted = command
            self.connected, self.error, self._failures, self._refused = False, None, 0, ""
            self._turned.set()

    async def settled(self, timeout_s: float) -> None:
        """Waits until the wanted state is reached: at work, or stopped. Raises SourceError."""
        try:
            async with asyncio.timeout(timeout_s):
                while not self._settled():
                    if self.error is not None:
                        raise SourceError(self.error)
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            verb = self._terms.connected if self._wanted else "ended"
            why = f": {self._refused}" if self._wanted and self._refused else ""
            raise SourceError(f"{self._terms.name} has not {verb} yet{why}") from None

    def busy(self, cores: int) -> float | None:
        """The busy share of the cores it can use, since the last call; None if unknown."""
        run, before = self._run, self._spent
        if run is None:
            self._spent = None
            return None
        now = time.monotonic()
        if before is not None and before[0] == run.pid and now - before[1] < _MIN_CPU_WINDOW_S:
            return None
        used = self._cpu_s(run.pid)
        if used is None:
            return None
        self._spent = (run.pid, now, used)
        if before is None or before[0] != run.pid:
            return None
        share = (used - before[2]) / (now - before[1]) / max(1, min(cores, os.cpu_count() or 1))
        return min(max(share, 0.0), 1.0)

    def _cpu_s(self, pid: int) -> float | None:
        """CPU seconds of the process, with those of its family; None if unknown."""
        try:
            process = psutil.Process(pid)
            times = process.cpu_times()
            used = times.user + times.system
            if self._terms.family:
                used += times.children_user + times.children_system
                for each in process.children(recursive=True):
                    with suppress(psutil.NoSuchProcess):
                        used += sum(each.cpu_times()[:2])
        except psutil.Error:
            return None
        return used

    def _settled(self) -> bool:
        if self._turned.is_set():
            return False
        return self.connected if self._wanted is not None else self._run is None

    async def _keep(self) -> None:
        while True:
            command = self._wanted
            self._turned.clear()
            self._news.set()
            if command is None:
                await self._turned.wait()
                continue
            if await self._turned_within(self._drained_s - time.monotonic()):
                continue
            error = await self._live(command)
            if self._turned.is_set() or error is None:
                continue
            self.connected = False
            if not self._through and time.monotonic() < self._patient_s:
                self._refused = error
                await self._turned_within(_RETRY_S)
                continue
            if self._through:
                self._output.failed(error)
                self._failures = 0 if time.monotonic() >= self._steady_at_s else self._failures
            pause_s = min(FIRST_PAUSE_S * 2 ** min(self._failures, 10), MAX_PAUSE_S)
            self._failures += 1
            self.error = error if self._terms.once else f"{error}; next attempt after {show_seconds(pause_s)}"
            self._news.set()
            await self._turned_within(None if self._terms.once else pause_s)

    async def _turned_within(self, seconds: float | None) -> bool:
        """Waits ``seconds`` (None: for ever) or until another command is wanted; True if one is."""
        with suppress(TimeoutError):
            async with asyncio.timeout(None if seconds is None else max(0.0, seconds)):
                await self._turned.wait()
        return self._turned.is_set()

    async def _live(self, command: Command) -> str | None:
        """Runs the command until it ends or another is wanted; returns why it ended, None if that is no failure."""
        terms, self._through = self._terms, False
        try:
            self._output.started()
            self._run = run = await launch(command, self._line, terms.environment, family=terms.family)
        except OSError as failure:
            return f"{terms.name} cannot start: {failure.strerror}"
        except SourceError as failure:
            return str(failure)
        ended, turned = asyncio.create_task(run.ended()), asyncio.create_task(self._turned.wait())
        late = False
        try:
            late = not await self._begun(ended, turned)
            if not late:
                await asyncio.wait((ended, turned), return_when=asyncio.FIRST_COMPLETED)
        finally:
            turned.cancel()
            await self._finish()
            await asyncio.wait([ended, turned])
        self.exit_code = ended.result()
        if late:
            assert terms.handshake_s is not None
            return f"{terms.name} has not {terms.connected} within {show_seconds(terms.handshake_s)}"
        if terms.repeats and self._through and self.exit_code == 0:
            return None
        reason = self._output.reason(run.complaints, self.exit_code)
        return f"{terms.name} ended: {reason}" if reason else f"{terms.name} ended with exit code {self.exit_code}"

    async def _begun(self, ended: asyncio.Task[int], turned: asyncio.Task[bool]) -> bool:
        """Waits until the process is at work, has ended, or is not wanted any more; False if it takes too long."""
        limit_s, look_s = self._terms.handshake_s, self._terms.look_s
        deadline = math.inf if limit_s is None else time.monotonic() + limit_s
        while not self._through:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            pause = min(left, math.inf if look_s is None else look_s)
            over, _ = await asyncio.wait(
                (ended, turned),
                timeout=None if math.isinf(pause) else pause,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if look_s is not None and self._output.at_work():
                self._at_work()
            if over:
                break
        return True

    async def _finish(self) -> None:
        run = self._run
        if run is not None:
            await run.end(farewell_s=self._terms.farewell_s)
            self._run = None
            if self._through:
                self._drained_s = time.monotonic() + self._terms.drain_s
                planned = self._terms.patience_s > 0 and self._turned.is_set()
                self._patient_s = self._drained_s + self._terms.patience_s if planned else -math.inf
            await self._output.ended()
            self._news.set()

    def _at_work(self) -> None:
        if self._through:
            return
        self._through = True
        self.starts += 1
        self._steady_at_s = time.monotonic() + self._terms.steady_s
        if not self._turned.is_set():
            self.connected, self.error = True, None
            self._news.set()

    def _line(self, line: str) -> None:
        if self._output.take(line):
            self._at_work()
