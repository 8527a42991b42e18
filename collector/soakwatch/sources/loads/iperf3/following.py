"""An output of iperf3 in a file that somebody else has it written to."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

from soakwatch.core.units import show_seconds
from soakwatch.sources.abc import Facts, SourceError
from soakwatch.sources.loads.iperf3.account import Account
from soakwatch.sources.loads.iperf3.output import AnyReader
from soakwatch.sources.loads.iperf3.said import Said, Unread
from soakwatch.sources.result_files.tail import LONGEST_LINE, Piece, Tail
from soakwatch_agent.sample import NOTHING, Answer, Fault

_GRACE_S = 5.0


class FollowedOutput:
    """A poller that reads what the file has become longer by. What it held before the run only sets the account."""

    def __init__(self, file: Path, wait_s: float, silence_s: float, budget_s: float, begin_ns: int) -> None:
        self._tail = Tail(file)
        self._wait_ns, self._silence_ns, self._budget_s = round(wait_s * 1e9), round(silence_s * 1e9), budget_s
        self._reader = AnyReader()
        self._account = Account(begin_ns)
        self._begin_ns = self._news_ns = begin_ns
        self._old = False  # what is read was there before the run
        self._seen = False
        self._one_at_a_time = threading.Lock()

    def begin(self) -> None:
        """Look whether the file is there already."""
        self._old = self._tail.path.exists()

    async def close(self) -> None:
        """Give the file back, once a look that was given up has ended."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        if self._one_at_a_time.acquire(timeout=self._budget_s + _GRACE_S):
            self._tail.close()
            self._one_at_a_time.release()

    async def poll(self, now_ns: int) -> Answer:
        """What was written since the look before. Raises SourceError for a file that is not there or stands still."""
        return await asyncio.to_thread(self._look, now_ns)

    def facts(self) -> Facts:
        """Which file, and what wrote it."""
        identity = {"file": str(self._tail.path)}
        if self._account.began.version:
            identity["version"] = self._account.began.version
        return Facts(identity, (), () if self._seen else ("the file is not there yet",))

    def _look(self, now_ns: int) -> Answer:
        if not self._one_at_a_time.acquire(blocking=False):
            raise SourceError(f"{self._tail.path} is still being read since the look before")
        try:
            return self._looked(now_ns)
        finally:
            self._one_at_a_time.release()

    def _looked(self, now_ns: int) -> Answer:
        deadline = time.monotonic() + self._budget_s
        said: list[Said] = []
        while True:
            piece = self._tail.read()
            if piece is None:
                break
            said += self._told(piece, now_ns)
            if not piece.more or time.monotonic() > deadline:
                break
        if piece is None and not said:
            return self._absent(now_ns)
        behind = piece is not None and piece.more
        self._account.take(said, now_ns)
        if self._old:
            self._account.forget()
            self._old = behind
        if self._account.running and now_ns - self._news_ns > self._silence_ns:
            raise SourceError(
                f"{self._tail.path}: a test is under way there and nothing was written for "
                f"{show_seconds(round((now_ns - self._news_ns) * 1e-9))}: see whether iperf3 still runs"
            )
        text = f"{self._tail.path} grows faster than it is read: the rest comes later"
        fault = Fault("", "", text) if behind else None
        return self._account.answer(now_ns, *self._account.offered(now_ns), fault=fault)

    def _told(self, piece: Piece, now_ns: int) -> list[Said]:
        said: list[Said] = []
        if piece.anew:
            said += self._reader.done()
            self._old = self._old and not self._seen
            self._seen, self._reader = True, AnyReader()
        if piece.lines:
            self._news_ns = now_ns
        said += [Unread(f"a line of over {LONGEST_LINE} characters")] * piece.overlong
        for line in piece.lines:
            said += self._reader.feed(line)
        return said

    def _absent(self, now_ns: int) -> Answer:
        file = self._tail.path
        if self._seen:
            self._old = False
            raise SourceError(f"{file} was removed: it is followed again once iperf3 has made it anew")
        if now_ns - self._begin_ns <= self._wait_ns:
            return NOTHING
        raise SourceError(f"there is no file {file}: start iperf3, or say where it writes (file:)")
