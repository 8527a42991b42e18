"""Keeps an iperf3 running: restarts it after failures, with growing pauses, and with another command.

After a change of command two leftovers of the last test may interfere. Its server may not know yet that the test is
over (the message is queued behind the overload, or was dropped) and refuses the next as busy: the client retries for
``PATIENCE_S``. And its datagrams may still be queued: a server takes the first it sees for the next test's, whose
client then waits in vain. So there is a pause between tests (``drain``), and a client that has not connected after
``HANDSHAKE_S`` is restarted. One that never connected sent nothing: the counters continue.
"""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Callable
from contextlib import suppress

import psutil

from soakwatch.core.units import show_seconds
from soakwatch.sources.abc import SourceError
from soakwatch.sources.loads.iperf3.account import Account
from soakwatch.sources.loads.iperf3.output import AnyReader
from soakwatch.sources.loads.iperf3.program import RunningProgram, launch

FIRST_PAUSE_S, MAX_PAUSE_S = 0.5, 15.0
PATIENCE_S = 3.0  # retries while the last test still keeps the server busy
HANDSHAKE_S = 5.0  # iperf3 itself waits 30 s
_RETRY_S = 0.1
_MAX_DOCUMENT = 4 << 20  # parsed on the event loop, so short: about an hour of one stream
_MIN_CPU_WINDOW_S = 0.2  # CPU time comes in hundredths of a second
_CONNECTED = ('"event":"start"', " connected to ", "Server listening on ")

Command = tuple[str, ...]


class Supervisor:
    """Runs the command that ``want`` sets (None: none), by a task of its own.

    ``now_ns`` is the run's clock. Lines go to the account as they come. With ``once`` it is not restarted. A ``client``
    must connect within ``HANDSHAKE_S``; after one that did, the next starts ``drain_s`` later.
    """

    def __init__(
        self,
        account: Account,
        now_ns: Callable[[], int],
        *,
        once: bool = False,
        client: bool = False,
        drain_s: float = 0.0,
    ) -> None:
        self.account = account
        self.error: str | None = None  # why it does not run although it should
        self.exit_code: int | None = None  # of the last process that ended by itself
        self.connected = False
        self._heard_ns = 0
        self._now_ns = now_ns
        self._once, self._client, self._drain_s = once, client, drain_s
        self._drained_s = self._patient_s = -math.inf  # end of the drain, end of quick retries; monotonic seconds
        self._through = False  # True if the running process has connected
        self._refused = ""  # the error of quick retries so far
        self._wanted: Command | None = None
        self._turned = asyncio.Event()
        self._news = asyncio.Event()
        self._run: RunningProgram | None = None
        self._reader = AnyReader(_MAX_DOCUMENT)
        self._failures = 0
        self._spent: tuple[int, float, float] | None = None  # pid, monotonic seconds, CPU seconds
        self._task: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        """True while a process runs."""
        return self._run is not None

    def begin(self) -> None:
        """Starts the supervising task."""
        self._task = asyncio.create_task(self._keep())

    async def close(self) -> None:
        """Ends the process and the task."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await self._finish()

    def want(self, command: Command | None) -> None:
        """Sets the command to run; an unchanged one keeps running."""
        if command != self._wanted:
            self._wanted = command
            self.connected, self.error, self._failures, self._refused = False, None, 0, ""
            self._turned.set()

    async def settled(self, timeout_s: float) -> None:
        """Waits until the wanted state is reached: connected, or stopped. Raises SourceError."""
        try:
            async with asyncio.timeout(timeout_s):
                while not self._settled():
                    if self.error is not None:
                        raise SourceError(self.error)
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            verb = "connected" if self._wanted else "ended"
            why = f": {self._refused}" if self._wanted and self._refused else ""
            raise SourceError(f"iperf3 has not {verb} yet{why}") from None

    def silent_s(self, now_ns: int) -> float:
        """Seconds since the running test printed something; 0 without a test."""
        return (now_ns - self._heard_ns) * 1e-9 if self.connected and self.account.running else 0.0

    def busy(self, cores: int) -> float | None:
        """The busy share of the cores it can use, since the last call; None if unknown."""
        run, before = self._run, self._spent
        if run is None:
            self._spent = None
            return None
        now = time.monotonic()
        if before is not None and before[0] == run.pid and now - before[1] < _MIN_CPU_WINDOW_S:
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
            if await self._turned_within(self._drained_s - time.monotonic()):
                continue
            error = await self._live(command)
            if self._turned.is_set():
                continue
            self.connected = False
            if not self._through and time.monotonic() < self._patient_s:
                self._refused = error
                await self._turned_within(_RETRY_S)
                continue
            if self._through:
                self.account.restarted()
            pause_s = min(FIRST_PAUSE_S * 2 ** min(self._failures, 10), MAX_PAUSE_S)
            self._failures += 1
            self.error = error if self._once else f"{error}; next attempt after {show_seconds(pause_s)}"
            self._news.set()
            await self._turned_within(None if self._once else pause_s)

    async def _turned_within(self, seconds: float | None) -> bool:
        """Waits ``seconds`` (None: for ever) or until another command is wanted; True if one is."""
        with suppress(TimeoutError):
            async with asyncio.timeout(None if seconds is None else max(0.0, seconds)):
                await self._turned.wait()
        return self._turned.is_set()

    async def _live(self, command: Command) -> str:
        """Runs the command until it ends or another is wanted; returns why it ended."""
        self._reader, self._through = AnyReader(_MAX_DOCUMENT), False
        try:
            self._run = run = await launch(command, self._line)
        except SourceError as failure:
            return str(failure)
        ended, turned = asyncio.create_task(run.ended()), asyncio.create_task(self._turned.wait())
        late = False
        try:
            either, first = (ended, turned), asyncio.FIRST_COMPLETED
            over, _ = await asyncio.wait(either, timeout=HANDSHAKE_S if self._client else None, return_when=first)
            late = not over and not self._through
            if not over and not late:
                await asyncio.wait(either, return_when=first)
        finally:
            turned.cancel()
            await self._finish()
            await asyncio.wait([ended, turned])
        self.exit_code = ended.result()
        if late:
            return f"iperf3 has not connected within {show_seconds(HANDSHAKE_S)}"
        reason = run.complaint or self.account.error
        return f"iperf3 ended: {reason}" if reason else f"iperf3 ended with exit code {self.exit_code}"

    async def _finish(self) -> None:
        run = self._run
        if run is not None:
            await run.end()
            self._run = None
            if self._through:
                self._drained_s = time.monotonic() + self._drain_s
                planned = self._client and self._turned.is_set()
                self._patient_s = self._drained_s + PATIENCE_S if planned else -math.inf
            self.account.take(self._reader.done(), self._now_ns())
            self.account.cut_off(self._now_ns())
            self._news.set()

    def _line(self, line: str) -> None:
        if not self._through and any(mark in line for mark in _CONNECTED):
            self._through = True
            if not self._turned.is_set():
                self.connected, self.error, self._failures = True, None, 0
                self._news.set()
        self._heard_ns = self._now_ns()
        self.account.take(self._reader.feed(line), self._heard_ns)
