"""A record as it was at a moment: what a run would have been judged by, had it ended then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from soakwatch.judge.judged_record import JudgeableRecord
from soakwatch.record import SeriesKey, StoredEvent, StoredFault
from soakwatch_model.case import Ledger
from soakwatch_model.event import Event
from soakwatch_model.series import Series
from soakwatch_model.window import Phase, Window

_FIRST_ID = 2**62


@dataclass(frozen=True, slots=True)
class Until:
    """A record of which nothing after ``end_ns`` is seen, with some ``more`` events."""

    record: JudgeableRecord
    end_ns: int
    more: tuple[Event, ...] = ()

    def meta(self, key: str) -> str | None:
        """The text stored under ``key``, or None."""
        return self.record.meta(key)

    def roles(self) -> Mapping[str, str]:
        """Targets and their roles."""
        return self.record.roles()

    def window(self) -> Window:
        """First due time to the moment, or to the last sample before."""
        whole = self.record.window()
        return Window(whole.begin_ns, max(whole.begin_ns, min(whole.end_ns, self.end_ns)))

    def phases(self) -> tuple[Phase, ...]:
        """The phases that had begun by then."""
        return tuple(
            Phase(phase.name, Window(phase.window.begin_ns, min(phase.window.end_ns, self.end_ns)))
            for phase in self.record.phases()
            if phase.window.begin_ns < self.end_ns
        )

    def keys(self, metrics: Sequence[str] | None = None) -> tuple[SeriesKey, ...]:
        """The keys of its series."""
        return self.record.keys(metrics)

    def series(self, key: SeriesKey, begin_ns: int | None = None, end_ns: int | None = None) -> Series:
        """One series up to the moment."""
        return self.record.series(key, begin_ns, self.end_ns if end_ns is None else min(end_ns, self.end_ns))

    def events(self) -> tuple[StoredEvent, ...]:
        """The events that had begun by then, and the added ones."""
        kept = (stored for stored in self.record.events() if stored.event.begin_ns < self.end_ns)
        return (*kept, *(StoredEvent(_FIRST_ID + n, "monitor", event) for n, event in enumerate(self.more)))

    def faults(self) -> tuple[StoredFault, ...]:
        """What could not be read by then."""
        return tuple(fault for fault in self.record.faults() if fault.first_ns < self.end_ns)

    def ledgers(self, window: Window) -> tuple[Ledger, ...]:
        """The account of each source."""
        return self.record.ledgers(window)
