"""A record with a fault laid over it: read through it, changed on the way, never written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from soakwatch.record import RecordView, SeriesKey, StoredEvent, StoredFault
from soakwatch_model.case import Ledger
from soakwatch_model.series import Series
from soakwatch_model.window import Phase, Window

_EVER_NS = 2**63 - 1
Change = Callable[[Series], Series]
"""What a fault does to a series; it must not change its input, which is shared."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What a fault changes of a record. ``series`` has the change of each series that rules judge; ``silent`` is the id
    of a source with the window in which it does not answer."""

    series: Mapping[SeriesKey, Change]
    silent: tuple[int, Window] | None = None


class ReadOnce:
    """A record whose series and accounts are read once and kept, since many faults are laid over them."""

    def __init__(self, view: RecordView) -> None:
        self.view = view
        self.window = view.window()
        self.roles = view.roles()
        self.phases = view.phases()
        self.events = view.events()
        self.faults = view.faults()
        self.metas = view.metas()
        self._series: dict[SeriesKey, Series] = {}
        self._ledgers: dict[Window, tuple[Ledger, ...]] = {}
        self._keys: dict[tuple[str, ...] | None, tuple[SeriesKey, ...]] = {}

    def series(self, key: SeriesKey) -> Series:
        """One whole series."""
        if key not in self._series:
            self._series[key] = self.view.series(key)
        return self._series[key]

    @property
    def every(self) -> frozenset[SeriesKey]:
        """The keys of all series."""
        return frozenset(self.keys())

    def keys(self, metrics: Sequence[str] | None = None) -> tuple[SeriesKey, ...]:
        """The keys of all series, or those of these metrics."""
        wanted = None if metrics is None else tuple(metrics)
        if wanted not in self._keys:
            self._keys[wanted] = self.view.keys(wanted)
        return self._keys[wanted]

    def ledgers(self, window: Window, silent: tuple[int, Window] | None) -> tuple[Ledger, ...]:
        """The accounts of a window; those with a silence are not cached, since each is different."""
        if silent is not None:
            return self.view.ledgers(window, dict([silent]))
        if window not in self._ledgers:
            self._ledgers[window] = self.view.ledgers(window)
        return self._ledgers[window]


@dataclass(frozen=True, slots=True, eq=False)
class Overlay:
    """The copy of a record that is judged: as recorded, except for what the fault changes."""

    record: ReadOnce
    fault: Fault = field(default_factory=lambda: Fault({}))

    def meta(self, key: str) -> str | None:
        """The text stored under ``key``, or None."""
        return self.record.metas.get(key)

    def roles(self) -> Mapping[str, str]:
        """Targets and their roles."""
        return self.record.roles

    def window(self) -> Window:
        """First due time to last sample."""
        return self.record.window

    def phases(self) -> tuple[Phase, ...]:
        """The phases."""
        return self.record.phases

    def keys(self, metrics: Sequence[str] | None = None) -> tuple[SeriesKey, ...]:
        """The series."""
        return self.record.keys(metrics)

    def series(self, key: SeriesKey, begin_ns: int | None = None, end_ns: int | None = None) -> Series:
        """One series with the fault applied."""
        series = self.record.series(key)
        change = self.fault.series.get(key)
        if change is not None and len(series):
            series = change(series)
        return series.between(-_EVER_NS if begin_ns is None else begin_ns, _EVER_NS if end_ns is None else end_ns)

    def events(self) -> tuple[StoredEvent, ...]:
        """All events."""
        return self.record.events

    def faults(self) -> tuple[StoredFault, ...]:
        """What could not be read."""
        return self.record.faults

    def ledgers(self, window: Window) -> tuple[Ledger, ...]:
        """The account of each source; polls of a silent one were due and timed out."""
        return self.record.ledgers(window, self.fault.silent)
