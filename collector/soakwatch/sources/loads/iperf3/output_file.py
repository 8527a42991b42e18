"""Follows a file of iperf3 output that another process writes."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from soakwatch.core.units import show_seconds
from soakwatch.sources.abc import Facts, SourceError
from soakwatch.sources.generator_tree import generator
from soakwatch.sources.loads.iperf3.account import Account
from soakwatch.sources.loads.iperf3.output import AnyReader
from soakwatch.sources.loads.iperf3.reports import Report, Unread
from soakwatch.sources.result_files.tail import MAX_LINE_BYTES, Piece, Tail
from soakwatch_model.sample import NOTHING, Answer, Fault
from soakwatch_model.tree import Tree

_GRACE_S = 5.0


class FollowedOutput:
    """A poller that reads what is appended to the file. What it held before the run only sets the counters."""

    def __init__(self, file: Path, wait_s: float, silence_s: float, budget_s: float, begin_ns: int) -> None:
        self._tail = Tail(file)
        self._wait_ns, self._silence_ns, self._budget_s = round(wait_s * 1e9), round(silence_s * 1e9), budget_s
        self._reader = AnyReader()
        self._account = Account(begin_ns)
        self._begin_ns = self._news_ns = begin_ns
        self._old = False  # True while reading what was there before the run
        self._seen = False
        self._one_at_a_time = threading.Lock()

    def begin(self) -> None:
        """Notes whether the file exists before the run."""
        self._old = self._tail.path.exists()

    async def close(self) -> None:
        """Closes the file once an abandoned poll has ended."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        if self._one_at_a_time.acquire(timeout=self._budget_s + _GRACE_S):
            self._tail.close()
            self._one_at_a_time.release()

    async def poll(self, now_ns: int) -> Answer:
        """What was written since the last poll. Raises SourceError for a missing file and a silent test."""
        return await asyncio.to_thread(self._poll_once, now_ns)

    def facts(self) -> Facts:
        """The file, and the version that writes it."""
        identity = {"file": str(self._tail.path)}
        if self._account.began.version:
            identity["version"] = self._account.began.version
        return Facts(identity, (), () if self._seen else ("the file does not exist yet",))

    async def fingerprint(self) -> Mapping[str, Tree]:
        """See Fingerprints: what the begin of its output says."""
        began = self._account.began
        config: dict[str, Tree] = {"file": str(self._tail.path)}
        if began.udp is not None:
            config["protocol"] = "UDP" if began.udp else "TCP"
        numbers = {"streams": began.streams, "length_bytes": began.length, "offered_bits_per_s": began.offered_bits}
        config |= {name: number for name, number in numbers.items() if number is not None}
        return generator("iperf3", began.version, config)

    def _poll_once(self, now_ns: int) -> Answer:
        if not self._one_at_a_time.acquire(blocking=False):
            raise SourceError(f"{self._tail.path} is still being read by the previous poll")
        try:
            return self._read(now_ns)
        finally:
            self._one_at_a_time.release()

    def _read(self, now_ns: int) -> Answer:
        deadline = time.monotonic() + self._budget_s
        reports: list[Report] = []
        while True:
            piece = self._tail.read()
            if piece is None:
                break
            reports += self._reports(piece, now_ns)
            if not piece.more or time.monotonic() > deadline:
                break
        if piece is None and not reports:
            return self._absent(now_ns)
        behind = piece is not None and piece.more
        self._account.take(reports, now_ns)
        if self._old:
            self._account.forget()
            self._old = behind
        if self._account.running and now_ns - self._news_ns > self._silence_ns:
            raise SourceError(
                f"{self._tail.path}: a test is running but nothing was written for "
                f"{show_seconds(round((now_ns - self._news_ns) * 1e-9))}: check whether iperf3 is still running"
            )
        text = f"{self._tail.path} grows faster than it is read: the rest follows in the next polls"
        fault = Fault("", "", text) if behind else None
        return self._account.answer(now_ns, *self._account.offered(now_ns), fault=fault)

    def _reports(self, piece: Piece, now_ns: int) -> list[Report]:
        reports: list[Report] = []
        if piece.anew:
            reports += self._reader.done()
            self._old = self._old and not self._seen
            self._seen, self._reader = True, AnyReader()
        if piece.lines:
            self._news_ns = now_ns
        reports += [Unread(f"a line of more than {MAX_LINE_BYTES} characters")] * piece.overlong
        for line in piece.lines:
            reports += self._reader.feed(line)
        return reports

    def _absent(self, now_ns: int) -> Answer:
        file = self._tail.path
        if self._seen:
            self._old = False
            raise SourceError(f"{file} was removed: reading continues when iperf3 creates it again")
        if now_ns - self._begin_ns <= self._wait_ns:
            return NOTHING
        raise SourceError(f"{file} does not exist: start iperf3, or set file: to where it writes")
