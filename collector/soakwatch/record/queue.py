"""Polls on their way into the record: batched, written in a thread of their own, held when the disk is full."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import replace
from itertools import islice
from typing import ParamSpec, Protocol, TypeVar

from soakwatch.core.errors import RecordError
from soakwatch.core.log_throttle import ThrottledLog
from soakwatch.record.model import MONITOR_ORIGIN, Artifact
from soakwatch.record.writer import Record
from soakwatch_model.event import Event
from soakwatch_model.sample import NOTHING, Poll, PollOutcome

P = ParamSpec("P")
R = TypeVar("R")

MAX_WAITING_SAMPLES = 200_000  # about 60 MB: what waits for room on the disk before the oldest readings are given up


def _nothing_wrong() -> str:
    return ""


def _nothing_more() -> None:
    pass


class PollRecord(Protocol):
    """The part of the record that takes polls."""

    def put(self, polls: list[Poll]) -> None:
        """Write one durable batch."""
        ...


class Committer:
    """The outbox of a run. ``take`` never blocks and never fails; ``commit`` writes what is waiting.

    A batch that cannot be written waits, in order, and is tried again with the next one, oldest poll first. Beyond
    ``MAX_WAITING_SAMPLES`` the oldest readings are dropped, but their polls stay, as missed with the reason: a gap is
    never silent.
    """

    def __init__(self, record: PollRecord, now_ns: Callable[[], int], *, threaded: bool = True) -> None:
        self._record, self._now_ns = record, now_ns
        self._waiting: deque[Poll] = deque()
        self._thread: Executor | None = ThreadPoolExecutor(1, "record") if threaded else None
        self._complaint = ThrottledLog("record")
        self._held = 0
        self._given_up = 0
        self.trouble: str | None = None  # why the last batch could not be written; None when all is well

    async def enter(self, stack: AsyncExitStack) -> None:
        """Close the record's thread with the caller's stack."""
        if self._thread is not None:
            stack.callback(self._close)

    async def call(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call a function in the record's thread."""
        if self._thread is None:
            return work(*args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: work(*args, **kwargs))

    def _close(self) -> None:
        thread, self._thread = self._thread, None  # later calls run in the caller's thread
        if thread is not None:
            thread.shutdown()

    def take(self, poll: Poll) -> None:
        """Queue one poll."""
        self._waiting.append(poll)
        self._held += len(poll.answer.samples)
        while self._held > MAX_WAITING_SAMPLES and self._given_up < len(self._waiting):
            old = self._waiting[self._given_up]
            self._held -= len(old.answer.samples)
            reason = f"its samples were dropped: {self.trouble or 'the record was too slow'}"
            self._waiting[self._given_up] = replace(old, outcome=PollOutcome.MISSED, error=reason, answer=NOTHING)
            self._given_up += 1

    async def commit(self, check: Callable[[], str] = _nothing_wrong, then: Callable[[], None] = _nothing_more) -> str:
        """Write what is waiting as one batch; on failure it goes on waiting.

        ``check`` is called before it, and ``then`` after it, in the record's thread and in the same visit to it: each
        visit costs two switches of threads. If ``check`` returns why nothing can be written, that is returned, and
        nothing else is done.
        """
        # The oldest poll alone shows whether there is room again: packing all to find out would use a core.
        trial = self.trouble is not None
        why, written = await self._put(1 if trial else len(self._waiting), check, then)
        if written and trial:
            why, written = await self._put(len(self._waiting), check, then)
        if written:
            self.trouble = None  # only once all are written: a disk that takes one poll and not the next is full
            self._complaint.well()
        return why

    async def _put(self, many: int, check: Callable[[], str], then: Callable[[], None]) -> tuple[str, bool]:
        """Write the ``many`` oldest polls. Returns what ``check`` said, and whether they were written."""
        batch = list(islice(self._waiting, many))

        def visit() -> tuple[str, RecordError | None]:
            if why := check():
                return why, None
            if batch:
                self._record.put(batch)
            try:
                then()
            except RecordError as error:  # the batch is written all the same
                return "", error
            return "", None

        try:
            why, failure = await self.call(visit)
        except RecordError as error:
            self.trouble = str(error)
            self._complaint.failed(self._now_ns(), self.trouble)
            return "", False
        if why:
            return why, False
        for _ in batch:
            self._held -= len(self._waiting.popleft().answer.samples)
        self._given_up = max(0, self._given_up - len(batch))
        if failure is not None:
            raise failure
        return "", True


class Notes:
    """A record that takes what it can: on a full disk a note is lost, and the outbox reports the disk."""

    def __init__(self, record: Record, committer: Committer) -> None:
        self._record, self._committer = record, committer

    async def event(self, event: Event, origin: str = MONITOR_ORIGIN) -> int | None:
        """Add an event. Returns its number, or None if the record did not take it."""
        try:
            return await self._committer.call(self._record.add_event, event.target, event, origin)
        except RecordError:
            return None

    async def do(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call a function in the record's thread, in order. Raises what ``work`` raises."""
        return await self._committer.call(work, *args, **kwargs)

    async def ended(self, number: int, end_ns: int | None, detail: Mapping[str, str]) -> None:
        """Set when an event ended, and add to its detail."""
        try:
            await self._committer.call(self._record.end_event, number, end_ns, detail)
        except RecordError:
            return

    async def keep(self, artifact: Artifact) -> str:
        """Keep a file. Returns why it was not kept, or ""."""
        try:
            kept = await self._committer.call(self._record.keep_artifact, artifact)
        except RecordError:
            return "the record did not take it"
        return "" if kept else "all artifacts together would be too large"
