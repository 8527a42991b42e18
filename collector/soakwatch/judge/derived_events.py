"""Restarts and reboots that the samples prove although none was reported, for the monitor was away.

A probe reports the restarts that it sees. After a gap only the start time or boot id has changed; rules that judge per
life need the moment as an event.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from soakwatch.record import SeriesKey
from soakwatch_model.event import Event
from soakwatch_model.series import Series
from soakwatch_rules.events.incidents import witness_of
from soakwatch_rules.events.process_life import is_child_replaced

START_TIME_SLACK_S = 2.0  # the kernel's time of boot, on which start times rest, is rounded to the second
_SAME = 3  # readings within which a reported event and a change in the samples are the same


class StateRecord(Protocol):
    """What this module reads of a record."""

    def keys(self, metrics: Sequence[str] | None = None) -> tuple[SeriesKey, ...]:
        """The keys of its series."""
        ...

    def series(self, key: SeriesKey, begin_ns: int | None = None, end_ns: int | None = None) -> Series:
        """One series."""
        ...


def derived_events(record: StateRecord, events: Iterable[Event]) -> tuple[Event, ...]:
    """The restarts and reboots that the samples show and no event reports."""
    known = _KnownEvents(events)
    children = {(key.target, key.object): key for key in record.keys(["process.child"])}
    derived: list[Event] = []
    for key in record.keys(["process.start_time"]):
        own = children.get((key.target, key.object))
        child = None if own is None else record.series(own)
        derived += known.unreported(record.series(key), "process.restart", START_TIME_SLACK_S, child)
    for key in record.keys(["system.boot.id"]):
        derived += known.unreported(record.series(key), "reboot", 0.0)
    return tuple(derived)


class _KnownEvents:
    """Reported events sorted by time, so that each change is compared only with those near it."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._begins: dict[tuple[str, str, str], list[int]] = {}
        for event in events:
            if not event.expect:
                self._begins.setdefault((event.kind, event.target, event.object), []).append(event.begin_ns)
        for begins in self._begins.values():
            begins.sort()

    def unreported(self, series: Series, kind: str, slack: float, child: Series | None = None) -> Iterator[Event]:
        """The changes of a state that no event reports; for a ``child`` (a session, a worker) a replacement is only a
        start."""
        near_ns = _SAME * (series.cadence_s or 1.0) * 1e9
        for change in _changes(series, kind, slack):
            mere = child is not None and is_child_replaced(witness_of(change, "start", ""), child)
            event = replace(change, kind="process.start") if mere else change
            known = [self._begins.get((event.kind, target, series.object), []) for target in {"", series.target}]
            since_ns = int(event.detail["last_before_ns"]) - near_ns
            positions = [bisect_left(begins, since_ns) for begins in known]
            if not any(
                first < len(begins) and begins[first] <= event.begin_ns + near_ns
                for begins, first in zip(known, positions, strict=True)
            ):
                yield event


def _changes(series: Series, kind: str, slack: float) -> Iterator[Event]:
    series = series.finite()
    for index in np.flatnonzero(np.abs(np.diff(series.values)) > slack):
        begin_ns = int(series.time_ns[index + 1])
        detail = {"from": "the samples", "last_before_ns": str(int(series.time_ns[index]))}
        yield Event(kind, series.target, series.object, begin_ns, begin_ns, detail)
