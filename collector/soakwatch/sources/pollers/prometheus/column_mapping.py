"""Series of an exporter as series of the catalogue: what ``Mapper`` makes of page after page, of all pages at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from soakwatch.sources.pollers.prometheus.exposition_page import PageSample
from soakwatch.sources.pollers.prometheus.query_api import ShownSeries
from soakwatch.sources.pollers.prometheus.sample_mapping import MAX_FAULTS, Mapper, exact, not_valid
from soakwatch_model.metric import BY_NAME, fault_of, slack_of
from soakwatch_model.sample import Fault

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Key = tuple[str, str]
"""Metric and object."""

_Sums = dict[tuple[int, str], tuple[float, float]]
_LATE = np.iinfo(np.int64).max
_MAPPED, _SHARE, _KEPT = range(3)  # the order of samples in what a page brings


@dataclass(frozen=True, slots=True, eq=False)
class MappedColumns:
    """Times in ns and values of each metric and object, in the order in which pages bring them; the faults of the pages
    in their order; the names that were mapped, and those that were not."""

    rows: Mapping[Key, tuple[Ints, Floats]]
    faults: Sequence[Fault]
    used: frozenset[str]
    unused: frozenset[str]


class _Column:
    """The values of one metric and object by page; of each the rank of its entry, and which series brought it first."""

    __slots__ = ("rank", "stage", "turn", "value")

    def __init__(self, pages: int, stage: int) -> None:
        self.value, self.stage = np.zeros(pages), stage
        self.rank, self.turn = np.full(pages, _LATE), np.full(pages, _LATE)

    @property
    def filled(self) -> NDArray[np.bool_]:
        """The pages that have a value."""
        return self.rank < _LATE

    def take(self, page: Ints, value: Floats, rank: int, turn: int, *, total: bool = False) -> None:
        """Values of some pages: the entry of the lowest rank counts, and with ``total`` the sum of its values."""
        before = self.rank[page]
        kept = np.where((before == rank) & total, self.value[page] + value, self.value[page])
        self.value[page] = np.where(rank < before, value, kept)
        self.rank[page] = np.minimum(before, rank)
        self.turn[page] = np.minimum(self.turn[page], turn)

    def place(self, page: int) -> tuple[int, int, int]:
        """Where among all that the pages bring it is on one of them."""
        return page, self.stage, int(self.turn[page])


class _Shares:
    """The sums of an entry of shares by page, those of its idle part, and the pages that have them."""

    __slots__ = ("idle", "there", "whole")

    def __init__(self, pages: int) -> None:
        self.whole, self.idle, self.there = np.zeros(pages), np.zeros(pages), np.zeros(pages, np.bool_)

    def take(self, page: Ints, value: Floats, *, idle: bool) -> None:
        """Adds values of some pages."""
        self.whole[page] += value
        self.idle[page] += value if idle else 0.0
        self.there[page] = True


@dataclass(slots=True, eq=False)
class _Made:
    """What is made of pages: a column for each key, sums of shares, and the faults with where they are."""

    pages: int
    columns: dict[Key, _Column] = field(default_factory=dict)
    shares: dict[tuple[int, str], _Shares] = field(default_factory=dict)
    faults: list[tuple[tuple[int, int, int], Fault]] = field(default_factory=list)

    def column(self, key: Key, stage: int) -> _Column:
        if key not in self.columns:
            self.columns[key] = _Column(self.pages, stage)
        return self.columns[key]


class ColumnMapper(Mapper):
    """A mapper that can map the pages of hours at once."""

    def map_columns(self, shown: Sequence[ShownSeries]) -> MappedColumns | None:
        """The same as ``map`` of all pages on which these series were shown, in order of time. None, and nothing is
        done, where only page after page tells it: a series is twice on a page, or has more faults than are named."""
        time_s, at = _pages(shown)
        if at is None:
            return None
        made = _Made(time_s.size)
        kept = [one.name not in self._of and self._keeps(one.name) for one in shown]
        subtrahends = self._subtrahends(shown, at, made.pages)
        for turn, (one, page) in enumerate(zip(shown, at, strict=True)):
            self._take(made, one, page, turn, subtrahends)
        last = self._take_columns_of_shares(made)
        for turn, (one, page) in enumerate(zip(shown, at, strict=True)):
            if kept[turn] and not self._take_kept(made, one, page, turn):
                return None
        for key, column in made.columns.items():
            _drop_impossible(made, key, column)
        faults = [fault for _, fault in sorted(made.faults, key=lambda fault: fault[0])]
        if max(Counter(place[0] for place, _ in made.faults).values(), default=0) > MAX_FAULTS:
            return None
        self._before = last
        names = {one.name for one in shown}
        used = names & (self._of.keys() | self._less)
        unused = frozenset(name for name in names - used if not self._keeps(name))
        return MappedColumns(_rows(made, np.rint(time_s * 1e9).astype(np.int64)), faults, frozenset(used), unused)

    def _subtrahends(self, shown: Sequence[ShownSeries], at: Sequence[Ints], pages: int) -> dict[object, Floats]:
        """By name and labels, the values that are taken off others; NaN on pages without."""
        found: dict[object, Floats] = {}
        for one, page in zip(shown, at, strict=True):
            if one.name in self._less:
                found.setdefault(_name(one.name, one.labels), np.full(pages, np.nan))[page] = one.value
        return found

    def _take(self, made: _Made, one: ShownSeries, page: Ints, turn: int, subtrahends: Mapping[object, Floats]) -> None:
        """Takes the values of a series to where they go."""
        for place in self._places_of(PageSample(one.name, one.labels, 0.0, one.kind)):
            entry, value, of = place.entry, np.array(one.value, dtype=np.float64), page
            if entry.less is not None:
                less = subtrahends.get(_name(entry.less, one.labels))
                value = value - (np.full(of.size, np.nan) if less is None else less[of])
            if not (good := np.isfinite(value)).all():
                for i in np.flatnonzero(~good).tolist():
                    fault = Fault(entry.metric, place.object, not_valid(one.name, one.value[i]))
                    made.faults.append(((int(of[i]), -1, turn), fault))
                value, of = value[good], of[good]
            if entry.idle is not None:
                pair = made.shares.setdefault((id(entry), place.object), _Shares(made.pages))
                pair.take(of, value, idle=place.idle)
            else:
                column = made.column((entry.metric, place.object), _MAPPED)
                column.take(of, value * entry.scale, place.rank, turn, total=entry.total)

    def _take_columns_of_shares(self, made: _Made) -> _Sums:
        """Adds the shares of each increase; returns the sums of the last page."""
        turn = 0
        for entry in self._of_shares if made.shares else ():
            for (owner, label), pair in made.shares.items():
                if owner != id(entry):
                    continue
                first = self._before.get((owner, label), (np.nan, np.nan))
                whole, idle = (
                    np.append(before, np.where(pair.there, each, np.nan)[:-1])
                    for before, each in zip(first, (pair.whole, pair.idle), strict=True)
                )
                column = made.column((entry.metric, label), _SHARE)
                new = np.flatnonzero(pair.there & (pair.whole > whole) & (pair.idle >= idle) & ~column.filled)
                busy = 1 - (pair.idle[new] - idle[new]) / (pair.whole[new] - whole[new])
                column.take(new, np.minimum(1.0, np.maximum(0.0, busy)), 0, turn)
                turn += 1
        last = made.pages - 1
        return {
            key: (float(pair.whole[last]), float(pair.idle[last]))
            for key, pair in made.shares.items()
            if pair.there[last]
        }

    def _take_kept(self, made: _Made, one: ShownSeries, page: Ints, turn: int) -> bool:
        """Takes a series that nothing maps as it is; whether it is the only one of its name and labels."""
        sample, value = self._kept(PageSample(one.name, one.labels, 0.0, one.kind), 0), np.array(one.value)
        key, good = (sample.metric, sample.object), np.isfinite(value)
        if key in made.columns:
            return False
        for i in np.flatnonzero(~good).tolist():
            made.faults.append(((int(page[i]), -1, _LATE), Fault(*key, not_valid(one.name, one.value[i]))))
        made.column(key, _KEPT).take(page[good], value[good], 0, turn)
        return True


def _rows(made: _Made, time_ns: Ints) -> dict[Key, tuple[Ints, Floats]]:
    """Times and values of each key, in the order in which a page brings the first."""
    filled = {key: mask for key, column in made.columns.items() if (mask := column.filled).any()}
    order = sorted(filled, key=lambda key: made.columns[key].place(int(np.argmax(filled[key]))))
    return {key: (time_ns[filled[key]], made.columns[key].value[filled[key]]) for key in order}


def _drop_impossible(made: _Made, key: Key, column: _Column) -> None:
    """Takes out what the metric cannot be, and says so."""
    entry, slack = BY_NAME.get(key[0]), slack_of(key[0])
    good = np.isfinite(column.value)
    if entry is None:
        good[:] = False
    elif entry.low is not None:
        good &= column.value >= entry.low - slack
    if entry is not None and entry.high is not None:
        good &= column.value <= entry.high + slack
    for page in np.flatnonzero(column.filled & ~good).tolist():
        text = fault_of(key[0], exact(key[0], float(column.value[page]))) or ""
        made.faults.append((column.place(page), Fault(*key, text)))
    column.rank[~good] = _LATE


def _name(name: str, labels: Mapping[str, str]) -> object:
    return name, tuple(sorted(labels.items()))


def _pages(shown: Iterable[ShownSeries]) -> tuple[Floats, list[Ints] | None]:
    """The times of all pages, and on which of them each series is; None if a series is on one of them twice."""
    times = [np.array(one.time_s, dtype=np.float64) for one in shown]
    every = np.unique(np.concatenate(times))
    at = [np.searchsorted(every, each) for each in times]
    return every, at if all(bool((page[1:] > page[:-1]).all()) for page in at) else None
