"""The record of a running run: its write queue and notes, its events, and the watch that it is where it belongs."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from soakwatch.core.event_kinds import CLOCK_STEP, RECORD_DAMAGED, RECORD_RESCUED
from soakwatch.record import Record, StoredEvent
from soakwatch.record.queue import Committer, Notes
from soakwatch.runs.clock_steps import step_words
from soakwatch.runs.watching import event_words, worth_showing
from soakwatch_model.event import Event

MAX_SHOWN = 5
_RETRY_NS: Final = 10 * 10**9
_TOLD_NS: Final = 60 * 10**9


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A record and its writers; all writes run in the record's thread, by ``queue.call``."""

    record: Record
    queue: Committer
    notes: Notes


def run_record(record: Record, now_ns: Callable[[], int], *, threaded: bool) -> RunRecord:
    """Wraps a record that is open for writing with its queue and notes."""
    queue = Committer(record, now_ns, threaded=threaded)
    return RunRecord(record, queue, Notes(record, queue))


class Heartbeat:
    """Records how long the monitor has run since it was (re)started; at most every 10 s, since it costs a commit."""

    EVERY_NS = 10_000_000_000

    def __init__(self, out: RunRecord, now_ns: Callable[[], int]) -> None:
        self._out, self._now_ns = out, now_ns
        self._last_ns = 0

    async def start(self, end_ns: int) -> None:
        """The monitor starts now; if the planned end has passed, at that end, or the time after it would be judged.
        Raises RecordError."""
        self._last_ns = min(self._now_ns(), end_ns)
        await self._out.queue.call(self._out.record.begin_span, self._last_ns)

    @property
    def due(self) -> bool:
        """True if the last heartbeat is at least 10 s old."""
        return self._now_ns() - self._last_ns >= self.EVERY_NS

    async def beat(self, now_ns: int) -> None:
        """Records that the monitor runs at ``now_ns``. Raises RecordError."""
        if now_ns > self._last_ns:
            self._last_ns = now_ns
            await self._out.queue.call(self._out.record.heartbeat, now_ns)


class EventFeed:
    """Reads every event of a record once; an earlier monitor acted on those up to number ``handled``.

    ``fetch`` belongs to each commit, whose visit to the record's thread it shares.
    """

    def __init__(self, out: RunRecord, handled: int) -> None:
        self._out, self._handled = out, handled
        self._newest = 0  # number of the last event fetched
        self._added = -1  # how many events this process had added then
        self._fetched: deque[StoredEvent] = deque()
        self._shown: deque[str] = deque(maxlen=MAX_SHOWN)  # the newest only: a storm may last for days
        self._steps: deque[str] = deque(maxlen=MAX_SHOWN)

    def is_new(self, stored: StoredEvent) -> bool:
        """True if no earlier monitor has acted on it."""
        return stored.id > self._handled

    def fetch(self) -> None:
        """Fetches the events since the last call; for the record's thread. Raises RecordError."""
        record = self._out.record
        added = record.events_added
        for stored in record.events_after(self._newest):
            self._newest = stored.id
            self._fetched.append(stored)
        self._added = added

    async def read(self, *, fresh: bool = False) -> Sequence[StoredEvent]:
        """The events since the last call, with all that this process added, and those of others until the last
        ``fetch``, or with ``fresh`` until now. The first call returns also those before a resume. Raises RecordError.
        """
        if fresh or self._out.record.events_added != self._added:
            await self._out.queue.call(self.fetch)
        events = [self._fetched.popleft() for _ in range(len(self._fetched))]
        for stored in events:
            if worth_showing(stored):
                self._shown.appendleft(event_words(stored))
            if stored.event.kind == CLOCK_STEP:
                self._steps.append(step_words(stored))
        return events

    @property
    def shown(self) -> tuple[str, ...]:
        """The newest events in words, newest first."""
        return tuple(self._shown)

    @property
    def clock_steps(self) -> tuple[str, ...]:
        """The newest steps of the monitor's wall clock in words, oldest first."""
        return tuple(self._steps)


class RecordWatch:
    """Watches the record's file. If another file has taken its place, the record is ``relocated`` to another folder."""

    def __init__(self, out: RunRecord, now_ns: Callable[[], int]) -> None:
        self._out, self._now_ns = out, now_ns
        self._begun_at = out.record.path
        self._relocated = asyncio.Event()
        self._retry_ns = 0
        self._unsaved = ""
        self.rescue = ""  # sentence on the last rescue or damage; "" if there was none
        self._saved_ns = 0
        self._lost_polls = 0  # as many of those that the record counted have had their event

    @property
    def relocated(self) -> bool:
        """True if the record is in another folder than the run's, because another file took its place."""
        return self._out.record.path != self._begun_at

    @property
    def trouble(self) -> str | None:
        """What is wrong now, or was just rescued; None if all is well."""
        if self._unsaved:
            return self._unsaved
        if self.relocated:
            return (
                f"{self._begun_at} is no longer this run's record: the run goes on in {self._out.record.path.parent},"
                " without its page, its sinks and live judging until it ends"
            )
        if self.rescue and self._now_ns() - self._saved_ns < _TOLD_NS:
            return self.rescue
        return None

    async def wait_relocated(self) -> None:
        """Returns once the run is relocated."""
        await self._relocated.wait()

    async def heed(self, why: str) -> None:
        """Saves the record if its file was taken away, which ``Record.displaced`` said; after a failure it is retried
        every 10 s."""
        record, call = self._out.record, self._out.queue.call
        now_ns = self._now_ns()
        if not why:
            self._unsaved = ""
            if lost := record.lost_polls - self._lost_polls:
                await self._tell_damage(lost)
            return
        if now_ns < self._retry_ns:
            return
        before = record.path
        if failure := await call(record.rescue):
            self._retry_ns = now_ns + _RETRY_NS
            self._unsaved = (
                f"{before}: {why}, and no copy of it could be written ({failure}): all of this run is lost unless there"
                " is room for a copy before it ends"
            )
            return
        self._unsaved = ""
        where = f"in {record.path.parent}" if self.relocated else "there again"
        lost, self._lost_polls = record.lost_polls - self._lost_polls, record.lost_polls
        what = f"all but its last {lost} polls" if lost else "all of it"
        self.rescue, self._saved_ns = f"{before}: {why}; {what} was saved {where} and the run went on", now_ns
        if self.relocated:
            self._relocated.set()
        detail = {"reason": why, "saved": str(record.path), **({"lost": f"{lost} polls"} if lost else {})}
        await self._out.notes.event(Event(RECORD_RESCUED, "", str(before), now_ns, now_ns, detail))

    async def _tell_damage(self, lost: int) -> None:
        """Says that polls were deleted, here and in the record, whose seal shows it as well."""
        record, now_ns = self._out.record, self._now_ns()
        self._lost_polls = record.lost_polls
        polls = f"{lost} {'poll' if lost == 1 else 'polls'}"
        self.rescue, self._saved_ns = f"{record.path}: another program deleted {polls} from it; the run goes on", now_ns
        await self._out.notes.event(Event(RECORD_DAMAGED, "", str(record.path), now_ns, now_ns, {"lost": polls}))
