"""What a run sets out with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from soakwatch.core.event_kinds import REACH_NS
from soakwatch.judge.capacity import CapacitySearch
from soakwatch.plan import Plan
from soakwatch.runs.sealing import Sealing
from soakwatch_model.event import Event


@dataclass(frozen=True, slots=True)
class RunContext:
    """What a run sets out with: its plan, where it is kept, when it began, and what of it is already recorded.

    ``begun_ns`` (the begins of the phases so far), ``planned_events`` (those recorded so far) and ``live_findings``
    (the identities of the newest live findings) are not empty, ``heard`` (the number of the newest event so far) is
    not 0, and ``last_due_ns`` is not None, only where a run goes on after its monitor died. ``searches`` are those
    for the capacity that an earlier monitor made, ``ceilings`` what the driven generators can send together, by
    metric. ``polled_ns`` is when polling ended (UTC ns), of a run of which only the end is left to be made.
    ``stop_on_fail`` ends the run at the first live failure of any rule, ``stop_rules`` of one of these. ``sealing``
    says by what key the record is signed at its end.
    """

    plan: Plan
    folder: Path
    start_ns: int
    stop_on_fail: bool = False
    begun_ns: tuple[int, ...] = ()
    planned_events: tuple[Event, ...] = ()
    heard: int = 0
    live_findings: frozenset[str] = frozenset()
    last_due_ns: dict[int, int] | None = None
    stop_rules: frozenset[str] = frozenset()
    searches: tuple[CapacitySearch, ...] = ()
    ceilings: Mapping[str, float] = field(default_factory=dict)
    polled_ns: int | None = None
    sealing: Sealing = field(default_factory=Sealing)

    @property
    def unwatched_ns(self) -> int | None:
        """Of a resumed run, the time after everything that its earlier monitor may have captured in detail."""
        return None if self.last_due_ns is None else max(self.last_due_ns.values(), default=0) + REACH_NS

    @property
    def resumed(self) -> bool:
        """Whether an earlier monitor began this run."""
        return self.last_due_ns is not None
