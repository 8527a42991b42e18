"""Triggers flight recorders to capture detail: on events of their target, and on new live findings."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Protocol

from soakwatch.core.event_kinds import FindingKey, capture_reason, event_name, is_internal, key_of
from soakwatch.record import StoredEvent
from soakwatch.record.findings import identity_of
from soakwatch_model.finding import Finding, Outcome

ALARMS = frozenset({Outcome.FAIL, Outcome.WARN})
RECENT_NS = 540_000_000_000  # a finding's moment is captured if not longer ago; recorders keep 600 s


class CapturesMoments(Protocol):
    """A source that can capture detail around a moment."""

    def capture_moment(self, when_ns: int, why: str, finding: FindingKey | None = None) -> None:
        """Something happened to its target at ``when_ns``; ``finding`` if a finding says so."""
        ...

    async def final_captures(self, end_ns: int) -> None:
        """Answers of captures still running at the end of the run."""
        ...


class RecorderTriggers:
    """Makes sources capture detail when something happened to their target; without a target, all sources.

    Moments before ``since_ns`` are ignored: they were captured before the monitor was restarted.
    """

    def __init__(self, since_ns: int | None = None) -> None:
        self._since_ns = since_ns
        self._sources: list[tuple[str, CapturesMoments]] = []
        self._alarms: frozenset[str] | None = frozenset() if since_ns is None else None

    def add(self, target: str, source: CapturesMoments) -> None:
        """Adds a source."""
        self._sources.append((target, source))

    def on_event(self, stored: StoredEvent) -> None:
        """Takes a recorded event; internal ones are ignored."""
        event = stored.event
        if not is_internal(event.kind):
            self._tell(event.target, event.begin_ns, event_name(event.kind, event.object))

    def on_findings(self, findings: Iterable[Finding], judged_ns: int) -> None:
        """Takes the current findings: a new fail or warn is captured at its newest moment.

        The first findings of a resumed run are known from before.
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
        """The run ended: stores captures still running as far as they got."""
        await asyncio.gather(*(source.final_captures(end_ns) for _, source in self._sources))

    def _tell(self, target: str, when_ns: int, why: str, finding: FindingKey | None = None) -> None:
        if self._since_ns is not None and when_ns < self._since_ns:
            return
        for target_name, source in self._sources:
            if target in {"", target_name}:
                source.capture_moment(when_ns, why, finding)
