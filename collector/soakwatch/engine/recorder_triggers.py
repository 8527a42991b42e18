"""What makes flight recorders capture detail: events of their target, and new live findings."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Protocol

from soakwatch.core.event_kinds import FindingKey, capture_reason, is_internal, key_of, words_of
from soakwatch.record import StoredEvent
from soakwatch.record.findings import identity_of
from soakwatch_model.finding import Finding, Outcome

ALARMS = frozenset({Outcome.FAIL, Outcome.WARN})
RECENT_NS = 540_000_000_000  # a moment that a finding names is captured if it is not longer ago


class Hearing(Protocol):
    """A source that can capture what happened around a moment."""

    def capture_moment(self, when_ns: int, why: str, finding: FindingKey | None = None) -> None:
        """Something happened to its target; ``finding`` where a finding says so."""
        ...

    async def final_captures(self, end_ns: int) -> None:
        """The run has ended."""
        ...


class RecorderTriggers:
    """Tells sources to capture when something happened to their target; without a target, all of them.

    Nothing from before ``since_ns`` counts: that was captured before the monitor was restarted.
    """

    def __init__(self, since_ns: int | None = None) -> None:
        self._since_ns = since_ns
        self._sources: list[tuple[str, Hearing]] = []
        self._alarms: frozenset[str] | None = frozenset() if since_ns is None else None

    def add(self, target: str, source: Hearing) -> None:
        """One more source."""
        self._sources.append((target, source))

    def hear_event(self, stored: StoredEvent) -> None:
        """An event that was recorded; internal ones do not count."""
        event = stored.event
        if not is_internal(event.kind):
            self._tell(event.target, event.begin_ns, words_of(event.kind, event.object))

    def hear_findings(self, findings: Iterable[Finding], judged_ns: int) -> None:
        """The findings so far: what did not fail or warn before is captured, at its newest moment.

        The first findings of a resumed run are those from before.
        """
        alarms = {identity_of(finding): finding for finding in findings if finding.outcome in ALARMS}
        before, self._alarms = self._alarms, frozenset(alarms)
        if before is None:
            return
        for identity, finding in alarms.items():
            if identity not in before:
                moments = [mark.begin_ns for mark in finding.marks if judged_ns - RECENT_NS < mark.begin_ns]
                why = capture_reason(finding, finding.outcome)
                self._tell(finding.target, max(moments, default=judged_ns), why, key_of(finding))

    async def finish(self, end_ns: int) -> None:
        """The run has ended: what is wanted is taken as far as it goes."""
        await asyncio.gather(*(source.final_captures(end_ns) for _, source in self._sources))

    def _tell(self, target: str, when_ns: int, why: str, finding: FindingKey | None = None) -> None:
        if self._since_ns is not None and when_ns < self._since_ns:
            return
        for target_name, source in self._sources:
            if target in {"", target_name}:
                source.capture_moment(when_ns, why, finding)
