"""Samples of an exporter as samples of the catalogue."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from soakwatch.core.regex import user_regex
from soakwatch.sources.pollers.prometheus.exposition_page import PageSample
from soakwatch.sources.pollers.prometheus.map_file import MapEntry
from soakwatch_model.metric import BY_NAME, COUNTER, fault_of
from soakwatch_model.sample import Fault, Sample, object_text

_FIELD = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_KEPT_KINDS = {"counter": "exporter.counter", "histogram": "exporter.counter", "summary": "exporter.counter"}
MAX_FAULTS = 20
"""Of one page."""
_MAX_PLACES = 50_000


@dataclass(frozen=True, slots=True)
class Mapped:
    """What a page brought: samples, faults, the names that were mapped, and those that were not."""

    samples: tuple[Sample, ...]
    faults: tuple[Fault, ...]
    used: frozenset[str]
    unused: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a series of a page goes: the entry that maps it, its rank, the object, and whether it counts as idle."""

    entry: MapEntry
    rank: int
    object: str
    idle: bool


class Mapper:
    """Maps page after page; it remembers the last counters, for shares of an increase, and where each series goes."""

    def __init__(self, entries: Iterable[MapEntry], keep: Sequence[str] = ()) -> None:
        self._of: dict[str, list[MapEntry]] = defaultdict(list)
        self._less: set[str] = set()
        self._rank: dict[int, int] = {}
        for rank, entry in enumerate(entries):
            self._rank[id(entry)] = rank
            self._of[entry.name].append(entry)
            if entry.less:
                self._less.add(entry.less)
        self._of_shares = [entry for some in self._of.values() for entry in some if entry.idle is not None]
        self._keep = tuple(keep)
        self._before: dict[tuple[int, str], tuple[float, float]] = {}
        self._places: dict[tuple[object, ...], tuple[_Place, ...]] = {}

    def map(self, page: Sequence[PageSample], now_ns: int) -> Mapped:
        """The samples of a page. A value that is not a number, or impossible, is a fault; later entries of the same
        series lose against earlier ones."""
        names = {exported.name for exported in page}
        subtrahends = {(s.name, tuple(sorted(s.labels.items()))): s.value for s in page if s.name in self._less}
        values: dict[tuple[str, str], float] = {}
        shares: dict[tuple[int, str], list[float]] = {}
        rank_of: dict[tuple[str, str], int] = {}
        faults: list[Fault] = []
        for exported in page:
            for place in self._places_of(exported):
                entry, value = place.entry, exported.value
                if entry.less is not None:
                    value -= subtrahends.get((entry.less, tuple(sorted(exported.labels.items()))), math.nan)
                if not math.isfinite(value):
                    faults.append(Fault(entry.metric, place.object, not_valid(exported.name, exported.value)))
                    continue
                if entry.idle is not None:
                    pair = shares.setdefault((id(entry), place.object), [0.0, 0.0])
                    pair[0] += value
                    pair[1] += value if place.idle else 0.0
                    continue
                key, rank = (entry.metric, place.object), place.rank
                value *= entry.scale
                if rank < rank_of.get(key, len(self._rank)):
                    values[key], rank_of[key] = value, rank
                elif entry.total and rank_of[key] == rank:
                    values[key] += value
        self._take_shares(shares, values)
        samples = [Sample(metric, label, exact(metric, value), now_ns) for (metric, label), value in values.items()]
        kept = [
            self._kept(exported, now_ns)
            for exported in page
            if exported.name not in self._of and self._keeps(exported.name)
        ]
        faults += [s for s in kept if isinstance(s, Fault)]
        good = []
        for sample in (*samples, *(s for s in kept if isinstance(s, Sample))):
            text = fault_of(sample.metric, sample.value)
            if text is None:
                good.append(sample)
            else:
                faults.append(Fault(sample.metric, sample.object, text))
        used = names & (self._of.keys() | self._less)
        unused = {name for name in names - used if not self._keeps(name)}
        return Mapped(tuple(good), tuple(faults[:MAX_FAULTS]), frozenset(used), frozenset(unused))

    def _places_of(self, exported: PageSample) -> tuple[_Place, ...]:
        """Where the values of a series go; found once for each series."""
        entries = self._of.get(exported.name)
        if entries is None:
            return ()
        name = exported.name, *exported.labels.items()
        places = self._places.get(name)
        if places is None:
            labels = exported.labels
            places = tuple(
                _Place(entry, self._rank[id(entry)], _object(entry, labels), _is_idle(entry, labels))
                for entry in entries
                if _wanted(entry.where, labels)
            )
            if len(self._places) >= _MAX_PLACES:  # of exporters whose series come and go
                self._places.clear()
            self._places[name] = places
        return places

    def _take_shares(self, shares: dict[tuple[int, str], list[float]], values: dict[tuple[str, str], float]) -> None:
        for entry in self._of_shares if shares else ():
            for (owner, label), (whole, idle) in shares.items():
                if owner != id(entry):
                    continue
                last = self._before.get((owner, label))
                self._before[owner, label] = whole, idle
                if last is not None and whole > last[0] and idle >= last[1]:
                    busy = 1 - (idle - last[1]) / (whole - last[0])
                    values.setdefault((entry.metric, label), min(1.0, max(0.0, busy)))
        self._before = {key: value for key, value in self._before.items() if key in shares}

    def _keeps(self, name: str) -> bool:
        return any(fnmatchcase(name, glob) for glob in self._keep)

    @staticmethod
    def _kept(exported: PageSample, now_ns: int) -> Sample | Fault:
        metric = _KEPT_KINDS.get(exported.kind, "exporter.gauge")
        if exported.kind == "summary" and not exported.name.endswith(("_count", "_sum")):
            metric = "exporter.gauge"  # a quantile
        labels = ",".join(f"{key}={value}" for key, value in sorted(exported.labels.items()))
        label = object_text(name=exported.name, labels=labels)
        if not math.isfinite(exported.value):
            return Fault(metric, label, not_valid(exported.name, exported.value))
        return Sample(metric, label, exact(metric, exported.value), now_ns)


def _is_idle(entry: MapEntry, labels: object) -> bool:
    return entry.idle is not None and _wanted(entry.idle, labels)


def _wanted(where: dict[str, str], labels: object) -> bool:
    assert isinstance(labels, dict)
    return all(user_regex(pattern).fullmatch(labels.get(name, "")) for name, pattern in where.items())


def _object(entry: MapEntry, labels: object) -> str:
    assert isinstance(labels, dict)
    order = BY_NAME[entry.metric].labels
    filled = {name: _FIELD.sub(lambda match: str(labels.get(match[1], "")), entry.labels[name])[:200] for name in order}
    return object_text(**filled)


def not_valid(name: str, value: float) -> str:
    """Why a value is no sample, in one sentence."""
    return f"{name} is {value}, which is not a valid sample"


def exact(metric: str, value: float) -> float:
    """Counters without a fraction as whole numbers, so that no digit is lost."""
    return int(value) if BY_NAME[metric].kind == COUNTER and value.is_integer() and abs(value) < 2**63 else value
