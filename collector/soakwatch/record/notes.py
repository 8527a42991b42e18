"""What scripts and hooks write into the record: events and artifacts, beside the polls and never in their way."""

from __future__ import annotations

from collections.abc import Mapping

from soakwatch.core.errors import RecordError
from soakwatch.record import Artifact, Record
from soakwatch.record.queue import Committer
from soakwatch_rules.rule import Event

ORIGIN = "monitor"


class Notes:
    """A record that takes what it can: on a full disk a note is lost, and the outbox complains of the disk."""

    def __init__(self, record: Record, committer: Committer) -> None:
        self._record, self._committer = record, committer

    async def event(self, event: Event, origin: str = ORIGIN) -> int | None:
        """Add an event; its number, or None if the record did not take it."""
        try:
            return await self._committer.call(self._record.add_event, event.target, event, origin)
        except RecordError:
            return None

    async def ended(self, number: int, end_ns: int | None, told: Mapping[str, str]) -> None:
        """Say when an event ended, and what became of it."""
        try:
            await self._committer.call(self._record.end_event, number, end_ns, told)
        except RecordError:
            return

    async def keep(self, artifact: Artifact) -> str:
        """Keep a file; why it is not kept, or ""."""
        try:
            kept = await self._committer.call(self._record.keep_artifact, artifact)
        except RecordError:
            return "the record did not take it"
        return "" if kept else "all artifacts together would be too large"
