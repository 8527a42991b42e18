"""The load of a run as one series a generator, whatever it reports: requests, packets, bits or users.

A generator's load is the first metric of ``LOADS`` of which it has readings. Counters become rates between two
readings; a counter that restarted gives none. Of readings less than 1 ms apart only the first counts, as so short an
interval gives no rate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from soakwatch.record import RecordView
from soakwatch.record.follow import Batch, NewSeries
from soakwatch.record.merge import in_time, unified
from soakwatch.record.model import Ints, SeriesKey, Values
from soakwatch.transfer.sinks.block import NO_LINES, Block
from soakwatch.transfer.sinks.lines import decimals, key, numbers
from soakwatch_model.flow import BACK, BITS, BYTES, DRIVE, PACKETS, REQUESTS, SENT, USERS
from soakwatch_model.metric import BY_NAME, flows
from soakwatch_model.roles import GENERATOR
from soakwatch_model.series import Series, trait_of

MEASUREMENT = "soakwatch_load"
_BITS_OF = {"By": 8.0}
LOADS: Mapping[str, tuple[str, float]] = {
    name: (word, _BITS_OF.get(BY_NAME[name].unit, 1.0))
    for word, side, what in (
        ("requests", BACK, (REQUESTS,)),
        ("packets", SENT, (PACKETS,)),
        ("bits", SENT, (BITS, BYTES)),
        ("users", DRIVE, (USERS,)),
    )
    for name in reversed(flows(side, *what))
}
"""Metrics that can be the load, best first: what they count, and a factor."""
APART_NS = 1_000_000
_SEEN = 64  # readings looked back on to find the newest one before a feed began
_RANKS = {metric: rank for rank, metric in enumerate(LOADS)}


def loads_of(view: RecordView) -> Mapping[str, SeriesKey]:
    """The load series of each generator of a record. Raises RecordError."""
    roles = view.roles()
    chosen: dict[str, SeriesKey] = {}
    for name in sorted(view.keys(LOADS), key=preference):
        if roles.get(name.target) == GENERATOR:
            chosen.setdefault(name.target, name)
    return chosen


def load_of(metric: str, time_ns: Ints, value: Values) -> tuple[Ints, NDArray[np.float64]]:
    """Readings of one of ``LOADS`` in order of time as a load; values that are not finite are left out."""
    time_ns, value = apart(time_ns, value)
    series = Series("", metric, "", trait_of(metric, "1", "gauge"), time_ns, value)
    if BY_NAME[metric].kind == "counter":
        series = series.rate()
    series = series.finite()
    return series.time_ns, series.values * LOADS[metric][1]


def apart(time_ns: Ints, value: Values, least_ns: int = APART_NS) -> tuple[Ints, Values]:
    """Drop readings less than ``least_ns`` after the last one kept.

    >>> apart(np.array([0, 5, 9, 20]), np.array([1.0, 2.0, 3.0, 4.0]), 9)[0].tolist()
    [0, 9, 20]
    """
    if time_ns.size < 2 or bool((np.diff(time_ns) >= least_ns).all()):
        return time_ns, value
    kept = [0]
    times: list[int] = time_ns.tolist()
    for index, reading_ns in enumerate(times):
        if reading_ns - times[kept[-1]] >= least_ns:
            kept.append(index)
    return time_ns[kept], value[kept]


def preference(name: SeriesKey) -> tuple[int, bool, str]:
    """Sort key of series that can be the load: lowest for the best metric, and for the whole generator before a
    part."""
    return _RANKS[name.metric], bool(name.object), name.object


@dataclass(slots=True)
class LoadLines:
    """The load line of each generator of a record, as readings arrive."""

    path: Path
    run: str
    _series: dict[int, NewSeries] = field(default_factory=dict)
    _chosen: dict[str, int] = field(default_factory=dict)
    _last: dict[int, tuple[Ints, Values]] = field(default_factory=dict)  # the newest reading kept of a series

    def know(self, series: Iterable[NewSeries]) -> None:
        """Add series that appeared; a better one becomes the load from now on."""
        for new in series:
            if new.key.metric not in LOADS:
                continue
            self._series[new.number] = new
            known = self._chosen.get(new.key.target)
            if known is None or preference(new.key) < preference(self._series[known].key):
                self._chosen[new.key.target] = new.number

    def block(self, batch: Batch, roles: Mapping[str, str], grain_ns: int) -> Block:
        """The lines of a batch of polls. Raises RecordError."""
        if not self._chosen:
            return NO_LINES
        parts: dict[int, list[tuple[Ints, Values]]] = {}
        chosen = {
            number
            for target, number in self._chosen.items()
            if roles.get(target) == GENERATOR and self._series[number].source == batch.source
        }
        for table in batch.tables if chosen else ():
            for column, number in enumerate(table.series):
                if number in chosen:
                    values = numbers(table.words[:, column], table.kinds[column])
                    parts.setdefault(number, []).append((table.time_ns, values))
        lines = [line for number, some in parts.items() for line in self._lines(number, some, batch, grain_ns)]
        return Block.of(lines)

    def _lines(self, number: int, parts: list[tuple[Ints, Values]], batch: Batch, grain_ns: int) -> Iterator[bytes]:
        name = self._series[number].key
        time_ns, value = in_time(np.concatenate([times for times, _ in parts]), unified([part for _, part in parts]))
        if number not in self._last and batch.first_seq > 1:
            self._last[number] = self._before(name, int(time_ns[0]))
        known = self._last.get(number)
        if known is not None and known[0].size:
            later = time_ns > known[0][-1]
            time_ns, value = np.concatenate([known[0], time_ns[later]]), unified([known[1], value[later]])
        time_ns, value = apart(time_ns, value)
        self._last[number] = time_ns[-1:], value[-1:]
        times, load = load_of(name.metric, time_ns, value)
        if known is not None and known[0].size:
            new = times > known[0][-1]
            times, load = times[new], load[new]
        what = LOADS[name.metric][0]
        tags = {"run": self.run, "target": name.target, "role": GENERATOR, "what": what}
        head = key(MEASUREMENT, tags, {}).encode(errors="replace")
        for reading_ns, reading in zip((times // grain_ns * grain_ns).tolist(), decimals(load), strict=True):
            yield b"%b value=%b %d" % (head, reading, reading_ns)

    def _before(self, name: SeriesKey, begin_ns: int) -> tuple[Ints, Values]:
        """The newest reading before ``begin_ns``, for a feed that starts in the middle."""
        with RecordView.open(self.path) as view:
            series = view.series(name, None, begin_ns)
        time_ns, value = apart(series.time_ns[-_SEEN:], series.value[-_SEEN:])
        return time_ns[-1:], value[-1:]
