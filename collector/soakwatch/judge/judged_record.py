"""What is judged: a record, seen through the narrowest window that suffices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from soakwatch.record import SeriesKey, StoredEvent, StoredFault
from soakwatch_model.case import Ledger
from soakwatch_model.series import Series
from soakwatch_model.window import Phase, Window


class JudgeableRecord(Protocol):
    """The parts of a record that judging needs."""

    def meta(self, key: str) -> str | None:
        """A text that the run left."""
        ...

    def roles(self) -> Mapping[str, str]:
        """Targets and their roles."""
        ...

    def window(self) -> Window:
        """First due time to last sample."""
        ...

    def phases(self) -> tuple[Phase, ...]:
        """The phases so far."""
        ...

    def keys(self, metrics: Sequence[str] | None = None) -> tuple[SeriesKey, ...]:
        """The series."""
        ...

    def series(self, key: SeriesKey, begin_ns: int | None = None, end_ns: int | None = None) -> Series:
        """One of them."""
        ...

    def events(self) -> tuple[StoredEvent, ...]:
        """What happened."""
        ...

    def faults(self) -> tuple[StoredFault, ...]:
        """What could not be read."""
        ...

    def ledgers(self, window: Window) -> tuple[Ledger, ...]:
        """The account of each source."""
        ...
