"""What a source reports about itself, and what of that is new: its identity, and metrics that come less often than
polls.
"""

from __future__ import annotations

from soakwatch.core.event_kinds import IDENTITY
from soakwatch.sources.abc import Facts
from soakwatch_agent.sample import Event


class SourceFacts:
    """The newest facts of one source. ``cadences`` are seconds by metric; ``unreported`` says that they changed."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._identity: dict[str, str] | None = None
        self.cadences: dict[str, float] = {}
        self.unreported = False

    def update(self, facts: Facts, now_ns: int) -> tuple[Event, ...]:
        """Take the facts of a poll; returns the event of a source whose identity differs from before, if so."""
        if dict(facts.cadences) != self.cadences:
            self.cadences, self.unreported = dict(facts.cadences), True
        identity, before = dict(facts.identity), self._identity
        if identity == before:
            return ()
        self._identity = identity
        detail = dict(identity)
        if facts.notes:
            detail["notes"] = "; ".join(facts.notes)
        if before is not None:
            keys = [key for key in sorted({*before, *identity}) if before.get(key) != identity.get(key)]
            detail["changed"] = "; ".join(
                f"{key} was {before.get(key, 'unknown')}, is {identity.get(key, 'unknown')}" for key in keys
            )
        return (Event(IDENTITY, self._label, now_ns, None, detail),)
