"""What is known of a run while it goes on: the one thing that every display shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from soakwatch_agent.sample import PollOutcome
from soakwatch_rules.rule import Finding


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """The account of one source so far."""

    label: str
    outcomes: Counter[PollOutcome]

    @property
    def due(self) -> int:
        """Polls that were due."""
        return self.outcomes.total()

    @property
    def got(self) -> int:
        """Polls that brought an answer."""
        return self.outcomes[PollOutcome.OK]

    @property
    def failed(self) -> int:
        """Polls that brought none, for whatever reason."""
        return self.due - self.got


@dataclass(frozen=True, slots=True)
class Status:
    """One moment of a run. ``load`` holds the newest figures of the generators by metric and object,
    without those of a generator that has fallen silent; ``doing`` is what keeps it after its end, in words, and
    ``behind`` a sentence about each database that does not have what it should."""

    run: str
    phase: str
    elapsed_s: float
    left_s: float
    sources: tuple[SourceStatus, ...]
    load: Mapping[tuple[str, str], float]
    findings: tuple[Finding, ...]
    judged_at_s: float | None
    events: tuple[str, ...]
    trouble: str | None
    doing: str = ""
    behind: tuple[str, ...] = ()
