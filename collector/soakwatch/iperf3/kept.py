"""An iperf3 that is kept running: started anew after a failure, after ever longer pauses, and with another command."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import suppress

import psutil

from soakwatch.iperf3.account import Account
from soakwatch.iperf3.output import AnyReader
from soakwatch.iperf3.program import Run, launch
from soakwatch.poller import SourceFailed
from soakwatch.units import show_seconds

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 15.0
_MOST_DOCUMENT = 4 << 20  # read between two other things that this process does: about an hour of one stream
_SHORTEST_S = 0.2  # CPU time comes in hundredths of a second
_CONNECTED = ('"event":"start"', " connected to ", "Server listening on ")

Command = tuple[str, ...]


class Kept:
    """``want`` says which command shall run from now on (None: none); a task of its own sees to it.

    ``now_ns`` is the run's clock. Lines go to the account as they come. ``once`` does not start it anew.
    """

    def __init__(self, account: Account, now_ns: Callable[[], int], *, once: bool = False) -> None:
        self.account = account
        self.error: str | None = None  # why it does not run, while it should
        self.exit_code: int | None = None  # of the last that ended by itself
        self.connected = False
        self._heard_ns = 0
        self._now_ns = now_ns
        self._once = once
        self._wanted: Command | None = None
        self._turned = asyncio.Event()
        self._news = asyncio.Event()
        self._run: Run | None = None
        self._reader = AnyReader(_MOST_DOCUMENT)
        self._failures = 0
        self._spent: tuple[int, float, float] | None = None  # pid, monotonic seconds, seconds of CPU
        self._task: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        """There is a process."""
        return self._run is not None

    def begin(self) -> None:
        """Starts the task that sees to it."""
        self._task = asyncio.create_task(self._keep())

    async def close(self) -> None:
        """Ends the process and the task."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await self._finish()

    def want(self, command: Command | None) -> None:
        """This one from now on; the same as before is left alone."""
        if command != self._wanted:
            self._wanted = command
            self.connected, self.error, self._failures = False, None, 0
            self._turned.set()

    async def settled(self, timeout_s: float) -> None:
        """Waits until what is wanted is so: connected, or at rest. Raises SourceFailed."""
        try:
            async with asyncio.timeout(timeout_s):
                while not self._settled():
                    if self.error is not None:
                        raise SourceFailed(self.error)
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise SourceFailed("iperf3 has not connected yet" if self._wanted else "iperf3 has not ended yet") from None

    def silent_s(self, now_ns: int) -> float:
        """How long the test that is under way has said nothing."""
        return (now_ns - self._heard_ns) * 1e-9 if self.connected and self.account.running else 0.0

    def busy(self, cores: int) -> float | None:
        """The busy share of the cores that it can use, since the last call."""
        run, before = self._run, self._spent
        if run is None:
            self._spent = None
            return None
        now = time.monotonic()
        if before is not None and before[0] == run.pid and now - before[1] < _SHORTEST_S:
            return None
        try:
            used = psutil.Process(run.pid).cpu_times()
        except psutil.Error:
            return None
        self._spent = (run.pid, now, used.user + used.system)
        if before is None or before[0] != run.pid:
            return None
        share = (used.user + used.system - before[2]) / (now - before[1]) / max(1, min(cores, os.cpu_count() or 1))
        return min(max(share, 0.0), 1.0)

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
            error = await self._live(command)
            if self._turned.is_set():
                continue
            self.connected = False
            pause_s = min(FIRST_PAUSE_S * 2 ** min(self._failures, 10), LONGEST_PAUSE_S)
            self._failures += 1
            self.account.restarted()
            self.error = error if self._once else f"{error}; tried again after {show_seconds(pause_s)}"
            self._news.set()
            with suppress(TimeoutError):
                async with asyncio.timeout(None if self._once else pause_s):
                    await self._turned.wait()

    async def _live(self, command: Command) -> str:
        """Until it ends by itself, or shall be another; what it ended with."""
        self._reader = AnyReader(_MOST_DOCUMENT)
        try:
            self._run = run = await launch(command, self._line)
        except SourceFailed as failure:
            return str(failure)
        ended, turned = asyncio.create_task(run.ended()), asyncio.create_task(self._turned.wait())
        try:
            await asyncio.wait([ended, turned], return_when=asyncio.FIRST_COMPLETED)
        finally:
            turned.cancel()
            await self._finish()
            await asyncio.wait([ended, turned])
        self.exit_code = ended.result()
        said = run.complaint or self.account.error
        return f"iperf3 ended: {said}" if said else f"iperf3 ended with exit code {self.exit_code}"

    async def _finish(self) -> None:
        run = self._run
        if run is not None:
            await run.end()
            self._run = None
            self.account.take(self._reader.done(), self._now_ns())
            self.account.cut_off(self._now_ns())
            self._news.set()

    def _line(self, line: str) -> None:
        if not self.connected and any(mark in line for mark in _CONNECTED):
            self.connected, self.error, self._failures = True, None, 0
            self._news.set()
        self._heard_ns = self._now_ns()
        self.account.take(self._reader.feed(line), self._heard_ns)
