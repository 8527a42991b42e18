"""What a run starts with."""

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
    """What a run starts with: its plan, folder and start (UTC ns), and what an earlier monitor recorded.

    Set only if a run resumes after its monitor died: ``begun_ns`` (begins of the phases so far), ``planned_events``
    (those recorded), ``live_findings`` (identities of the newest), ``newest_event`` (number of the newest event),
    ``last_due_ns`` (by source) and ``searches`` (for the capacity). ``ceilings`` is what the driven generators can send
    together, by metric. ``polled_ns`` is when polling ended (UTC ns), if only the end of the run is left to do.
    ``stop_on_fail`` ends the run at the first live failure of any rule, ``stop_rules`` at one of these. ``sealing``
    says which key signs the record at the end.
    """

    plan: Plan
    folder: Path
    start_ns: int
    stop_on_fail: bool = False
    begun_ns: tuple[int, ...] = ()
    planned_events: tuple[Event, ...] = ()
    newest_event: int = 0
    live_findings: frozenset[str] = frozenset()
    last_due_ns: dict[int, int] | None = None
    stop_rules: frozenset[str] = frozenset()
    searches: tuple[CapacitySearch, ...] = ()
    ceilings: Mapping[str, float] = field(default_factory=dict)
    polled_ns: int | None = None
    sealing: Sealing = field(default_factory=Sealing)

    @property
    def unwatched_ns(self) -> int | None:
        """In a resumed run, a time after everything that the earlier monitor may have captured in detail."""
        return None if self.last_due_ns is None else max(self.last_due_ns.values(), default=0) + REACH_NS

    @property
    def resumed(self) -> bool:
        """True if an earlier monitor began this run."""
        return self.last_due_ns is not None
