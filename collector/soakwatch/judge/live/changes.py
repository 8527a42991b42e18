"""Every change of every series since the start, for rules that search a whole run for restarts.

A sample that equals both its neighbours is left out; the two sides of a change and of a gap stay. Of a series that
changes all the time, the last sample of each minute stays.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from soakwatch.judge.live.raw_values import typed
from soakwatch.judge.live.table_sets import TableSet, TableSets, set_of
from soakwatch.record.follow import Table, Words
from soakwatch.record.merge import in_time, unified
from soakwatch.record.minutes import MINUTE_NS
from soakwatch.record.model import Ints, Values
from soakwatch_rules.stats.medians import median

Part = tuple[Ints, Values]

_MAX_KEPT_WHOLE = 4  # changes in one batch (a minute, mostly) that are all kept
_GAP = 3  # distances of readings
_PIECES = 16
_MAX_CHANGES = 20_000  # readings of a series; then every second change is forgotten
_MAX_READINGS = 1_500_000  # of all series, or so many for each: 24 MB; then those with the most forget
_READINGS_OF_EACH = 500


class Changes:
    """The kept readings of each series."""

    def __init__(self) -> None:
        self._kept: dict[int, list[Part]] = {}
        self._size = 0  # readings that are kept
        self.forgotten = 0  # readings of series that change too often to keep every change
        self._last = TableSets[tuple[int, int, Words]]()  # the last reading, the usual distance, the last words
        self._newest: dict[int, TableSet] = {}  # of each source the set that came last

    def add(self, source: int, table: Table) -> set[int]:
        """Take the readings of a table; returns the series that changed, were away, or are new."""
        n = table.time_ns.size
        if not n:
            return set()
        key = set_of(table)
        switched = self._switched(source, key, table)
        before = self._last.get(source, key)
        if before is not None and int(table.time_ns[0]) <= before[0]:
            late = int(np.searchsorted(table.time_ns, before[0], side="right"))
            self._add_late(Table(table.series, table.kinds, table.time_ns[:late], table.words[:late]))
            rest = Table(table.series, table.kinds, table.time_ns[late:], table.words[late:])
            return set(table.series) | self.add(source, rest)
        time_ns, words = table.time_ns, table.words
        if before is not None:
            time_ns = np.concatenate([[before[0]], time_ns])
            words = np.concatenate([before[2][None, :], words])
        steps = np.diff(time_ns)
        usual_ns = int(median(steps)) if steps.size > 1 else (before[1] if before else 0)
        if before is not None and before[1]:
            usual_ns = min(usual_ns, before[1]) if usual_ns else before[1]
        self._last.keep(source, key, (int(time_ns[-1]), usual_ns, words[-1].copy()))
        gaps = steps > _GAP * usual_ns if usual_ns else np.zeros(steps.size, np.bool_)
        differs = words[1:] != words[:-1]
        moved = differs.any(axis=0) | bool(gaps.any())
        for column, series in enumerate(table.series):
            if series not in self._kept:
                first = 0 if before is None else 1
                self._keep(series, time_ns[first : first + 1], table.kinds[column], words[first : first + 1, column])
        changed = set()
        for column in np.flatnonzero(moved).tolist():
            rows = np.flatnonzero(differs[:, column] | gaps)
            keep = (
                _last_of_minutes(time_ns)
                if rows.size > _MAX_KEPT_WHOLE
                else np.unique(np.concatenate([rows, rows + 1]))
            )
            series = table.series[column]
            self._keep(series, time_ns[keep], table.kinds[column], words[keep, column])
            changed.add(series)
        return changed | switched if before is not None else set(table.series)

    def _switched(self, source: int, key: TableSet, table: Table) -> set[int]:
        """Keep both sides of each change that came just as the source began to send another set of series.

        Returns the series that changed."""
        before = self._newest.get(source)
        self._newest[source] = key
        kept = None if before is None or before == key else self._last.get(source, before)
        if before is None or kept is None:
            return set()
        (series, kinds), (last_ns, _, last) = before, kept
        places = {number: place for place, number in enumerate(series)}
        changed = set()
        for column, number in enumerate(table.series):
            place = places.get(number)
            if place is not None and (last[place] != table.words[0, column] or kinds[place] != table.kinds[column]):
                self._keep(number, np.array([last_ns]), kinds[place], last[place : place + 1])
                self._keep(number, table.time_ns[:1], table.kinds[column], table.words[:1, column])
                changed.add(number)
        return changed

    def _add_late(self, table: Table) -> None:
        """Take readings that belong between earlier ones: keep the first, the last, and both sides of every change."""
        differs = table.words[1:] != table.words[:-1]
        ends = np.array([0, table.time_ns.size - 1])
        for column, series in enumerate(table.series):
            rows = np.flatnonzero(differs[:, column])
            keep = _last_of_minutes(table.time_ns) if rows.size > _MAX_KEPT_WHOLE else np.concatenate([rows, rows + 1])
            keep = np.unique(np.concatenate([ends, keep]))
            self._keep(series, table.time_ns[keep], table.kinds[column], table.words[keep, column])

    def read(self, series: int) -> Part:
        """The kept readings of a series."""
        parts = self._kept.get(series, [])
        if len(parts) > 1:
            self._join(series)
        return joined(self._kept.get(series, []))

    @property
    def nbytes(self) -> int:
        """What it holds in memory."""
        return sum(time.nbytes + values.nbytes for parts in self._kept.values() for time, values in parts)

    def _keep(self, series: int, time_ns: Ints, kind: str, words: Words) -> None:
        parts = self._kept.setdefault(series, [])
        parts.append((time_ns.copy(), typed(kind, words)))
        self._size += time_ns.size
        if len(parts) > _PIECES:
            self._join(series)
            if self._size > max(_MAX_READINGS, _READINGS_OF_EACH * len(self._kept)):
                self._thin()

    def _join(self, series: int, most: int = _MAX_CHANGES) -> int:
        """Make one part of those of a series, and forget some of its changes beyond ``most``; returns its size."""
        whole = joined(self._kept[series])
        part = whole if whole[0].size <= most else _thinned(whole)
        self._size += part[0].size - sum(time_ns.size for time_ns, _ in self._kept[series])
        self._kept[series] = [part]
        self.forgotten += whole[0].size - part[0].size
        return int(part[0].size)

    def _thin(self) -> None:
        """Forget every second change of the series with the most, until a quarter of all is forgotten."""
        enough = self._size * 3 // 4
        sizes = {series: sum(time_ns.size for time_ns, _ in parts) for series, parts in self._kept.items()}
        while self._size > enough:
            series = max(sizes, key=lambda number: sizes[number])
            sizes[series] = self._join(series, most=0)


def _thinned(part: Part) -> Part:
    """The newest quarter stays whole, of the others every second pair."""
    time_ns, values = part
    keep: NDArray[np.bool_] = (np.arange(time_ns.size) // 2) % 2 == 0
    keep[-min(_MAX_CHANGES, time_ns.size) // 4 :] = True
    return time_ns[keep], values[keep]


def _last_of_minutes(time_ns: Ints) -> NDArray[np.int64]:
    minute = time_ns // MINUTE_NS
    return np.append(np.flatnonzero(minute[1:] != minute[:-1]), time_ns.size - 1)


def joined(parts: Collection[Part]) -> Part:
    """Several pieces of a series as one, in order of time, each time once."""
    if not parts:
        return np.empty(0, np.int64), np.empty(0, np.float64)
    return in_time(np.concatenate([time for time, _ in parts]), unified([value for _, value in parts]))
