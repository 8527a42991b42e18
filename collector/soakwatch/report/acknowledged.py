"""Findings that somebody has acknowledged: what was said of them. It changes no outcome."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from soakwatch.core.event_kinds import ACKNOWLEDGED
from soakwatch.core.formatting import utc
from soakwatch.record.source import StoredEvent
from soakwatch_model.finding import FindingName


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """What somebody said of a finding, and when (UTC ns)."""

    at_ns: int
    reason: str

    @property
    def words(self) -> str:
        """One line."""
        return f"{self.reason or 'no reason given'} ({utc(self.at_ns)} UTC)"


def acknowledgements(events: Iterable[StoredEvent]) -> Mapping[FindingName, tuple[Acknowledgement, ...]]:
    """What was said of each finding, in order of time.

    The event has the finding's target and object; its detail has the rule, the metric and the reason.
    """
    by_subject: dict[FindingName, list[Acknowledgement]] = {}
    for stored in sorted(events, key=lambda stored_event: (stored_event.event.begin_ns, stored_event.id)):
        event = stored.event
        if event.kind == ACKNOWLEDGED:
            about = (event.detail.get("rule", ""), event.target, event.detail.get("metric", ""), event.object)
            by_subject.setdefault(about, []).append(Acknowledgement(event.begin_ns, event.detail.get("reason", "")))
    return {about: tuple(given) for about, given in by_subject.items()}
