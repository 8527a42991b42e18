"""What judging reads of a record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from soakwatch.record import SeriesKey, StoredEvent, StoredFault
from soakwatch_model.case import Ledger
from soakwatch_model.series import Series
from soakwatch_model.window import Phase, Window


class JudgeableRecord(Protocol):
    """What judging reads of a record."""

    def meta(self, key: str) -> str | None:
        """The text stored under ``key``, or None."""
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
        """The keys of its series."""
        ...

    def series(self, key: SeriesKey, begin_ns: int | None = None, end_ns: int | None = None) -> Series:
        """One series."""
        ...

    def events(self) -> tuple[StoredEvent, ...]:
        """All events."""
        ...

    def faults(self) -> tuple[StoredFault, ...]:
        """What could not be read."""
        ...

    def ledgers(self, window: Window) -> tuple[Ledger, ...]:
        """The account of each source."""
        ...
