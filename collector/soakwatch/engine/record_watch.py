"""Checks every second that a run's record is where it belongs, and saves it elsewhere if it is not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from soakwatch.core.event_kinds import RECORD_RESCUED
from soakwatch.engine.run_record import RunRecord
from soakwatch_model.event import Event

_RETRY_NS: Final = 10 * 10**9
_TOLD_NS: Final = 60 * 10**9


class RecordWatch:
    """Watches the record's file. If another file has taken its place, the record is ``relocated`` to another folder."""

    def __init__(self, out: RunRecord, now_ns: Callable[[], int]) -> None:
        self._out, self._now_ns = out, now_ns
        self._begun_at = out.record.path
        self._relocated = asyncio.Event()
        self._retry_ns = 0
        self._unsaved = ""
        self.rescue = ""  # sentence on the last rescue; "" if there was none
        self._saved_ns = 0

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

    async def check(self) -> None:
        """Saves the record if its file was taken away; after a failure it is retried every 10 s."""
        record, call = self._out.record, self._out.queue.call
        why = await call(record.displaced)
        now_ns = self._now_ns()
        if not why:
            self._unsaved = ""
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
        self.rescue, self._saved_ns = f"{before}: {why}; all of it was saved {where} and the run went on", now_ns
        if self.relocated:
            self._relocated.set()
        detail = {"reason": why, "saved": str(record.path)}
        await self._out.notes.event(Event(RECORD_RESCUED, "", str(before), now_ns, now_ns, detail))
