"""The record of a running run, with its write queue and its notes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from soakwatch.record import Record
from soakwatch.record.queue import Committer, Notes


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
