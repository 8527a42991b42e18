"""What a run sets out with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from soakwatch.noteworthy import REACH_NS
from soakwatch.plan import Plan


@dataclass(frozen=True, slots=True)
class Course:
    """What a run sets out with: its plan, where it is kept, when it began, and what of it is already recorded.

    ``begun_ns`` (the begins of the phases so far) is not empty, ``events_begun`` above zero and ``last_due_ns`` not
    None only where a run goes on after its monitor died.
    """

    plan: Plan
    folder: Path
    start_ns: int
    stop_on_fail: bool = False
    begun_ns: tuple[int, ...] = ()
    events_begun: int = 0
    last_due_ns: dict[int, int] | None = None

    @property
    def unwatched_ns(self) -> int | None:
        """Of a resumed run, the time behind everything that its earlier life may have looked at closer."""
        return None if self.last_due_ns is None else max(self.last_due_ns.values(), default=0) + REACH_NS

    @property
    def resumed(self) -> bool:
        """Whether an earlier life of the monitor began this run."""
        return self.last_due_ns is not None
