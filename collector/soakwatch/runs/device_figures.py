"""The figures of each device that a display has room for: memory, CPU, and loss or latency, with their change.

The topics of the catalogue say which metrics these are. Of several processes the one that grew most since the begin of
the run is shown. A figure that was not read lately is left out: its last value would look like the present one.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from soakwatch.core.errors import RecordError
from soakwatch.core.formatting import quantity
from soakwatch.record import RecordView, SeriesKey
from soakwatch.record.model import Values
from soakwatch_model.metric import BY_NAME, GAUGE
from soakwatch_model.metric_queries import shown_in
from soakwatch_model.roles import DUT, GENERATOR
from soakwatch_model.sample import object_labels
from soakwatch_model.shown import CPU, LATENCY, LOSS, MEMORY, PROCESS_CPU, PROCESS_MEMORY
from soakwatch_rules.wording.quantities import counted

EVERY_NS = 5 * 10**9
"""So often the record is read for them, or less often where that costs more than ``_SHARE`` of a core."""
_SHARE = 1 / 500
_FRESH_NS, _FRESH_INTERVALS = 30 * 10**9, 3
_FIRST_NS, _FIRST_READINGS = 60 * 10**9, 10  # the begin, whose median an outlier of the start does not move
_MAX_SERIES = 200
_ROWS: Mapping[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    DUT: (
        ("memory", (PROCESS_MEMORY, MEMORY)),
        ("CPU", (CPU, PROCESS_CPU)),
        ("latency", (LATENCY,)),
        ("loss", (LOSS,)),
    ),
    GENERATOR: (("latency", (LATENCY,)), ("loss", (LOSS,))),
}
_METRICS: Mapping[str, tuple[str, ...]] = {
    topic: tuple(name for name in shown_in(topic) if BY_NAME[name].kind == GAUGE)
    for topic in dict.fromkeys(topic for rows in _ROWS.values() for _, topics in rows for topic in topics)
}


@dataclass(frozen=True, slots=True)
class _Reading:
    """The first and the newest value of a series, in the metric's unit."""

    key: SeriesKey
    first: float
    newest: float

    @property
    def grown(self) -> float:
        return self.newest - self.first


class DeviceFigures:
    """Reads the figures from a record that may still be written. ``now_ns`` is any monotonic clock, ``cpu_ns`` that of
    the CPU time of a thread."""

    def __init__(
        self, folder: Path, now_ns: Callable[[], int], cpu_ns: Callable[[], int] = time.thread_time_ns
    ) -> None:
        self._folder, self._now_ns, self._cpu_ns = folder, now_ns, cpu_ns
        self._first: dict[SeriesKey, float] = {}
        self._lines: tuple[str, ...] = ()
        self._due_ns: int | None = None

    def lines(self) -> tuple[str, ...]:
        """One line a target: devices first, those whose memory grew most before the others. If the record cannot be
        read, the lines of the last time."""
        now_ns = self._now_ns()
        if self._due_ns is None or now_ns >= self._due_ns:
            begun_ns = self._cpu_ns()
            with suppress(RecordError), RecordView.open(self._folder) as view:
                self._lines = self._of(view)
            self._due_ns = now_ns + max(EVERY_NS, round((self._cpu_ns() - begun_ns) / _SHARE))
        return self._lines

    def _of(self, view: RecordView) -> tuple[str, ...]:
        last_ns = view.last_ns
        if last_ns is None:
            return ()
        fresh = dict.fromkeys(view.roles(), _FRESH_NS)
        for source in view.sources():
            fresh[source.target] = max(fresh.get(source.target, _FRESH_NS), _FRESH_INTERVALS * source.interval_ns)
        keys: dict[str, dict[str, list[SeriesKey]]] = {}  # by target and metric
        for key in view.only_keys([name for names in _METRICS.values() for name in names]):
            keys.setdefault(key.target, {}).setdefault(key.metric, []).append(key)
        told: list[tuple[bool, float, str]] = []
        for target, role in view.roles().items():
            own = keys.get(target, {})
            chosen = [
                (word, reading)
                for word, topics in _ROWS.get(role, ())
                if (reading := self._chosen(view, own, topics, last_ns - fresh[target])) is not None
            ]
            if chosen:
                growth = next((reading.grown for word, reading in chosen if word == "memory"), 0.0)
                words = _together(chosen)
                told.append((role != DUT, -growth, f"{target}: {words}"))
        return tuple(line for *_, line in sorted(told))

    def _chosen(
        self, view: RecordView, keys: Mapping[str, Sequence[SeriesKey]], topics: Iterable[str], since_ns: int
    ) -> _Reading | None:
        """The series that grew most, of the first metric of these topics that was read lately."""
        for metric in (name for topic in topics for name in _METRICS[topic]):
            own = keys.get(metric, ())[:_MAX_SERIES]
            tails = [key for key in own if "quantile=p99" in key.object] or own
            readings = [reading for key in tails if (reading := self._reading(view, key, since_ns)) is not None]
            if readings:
                return max(readings, key=lambda reading: reading.grown)
        return None

    def _reading(self, view: RecordView, key: SeriesKey, since_ns: int) -> _Reading | None:
        newest = view.series(key, since_ns).value
        if not newest.size:
            return None
        if key not in self._first:
            begin_ns = view.window().begin_ns
            first = view.series(key, begin_ns, begin_ns + _FIRST_NS).value[:_FIRST_READINGS]
            if first.size < _FIRST_READINGS and view.window().end_ns < begin_ns + _FIRST_NS:
                return _Reading(key, _median(first), float(newest[-1]))
            self._first[key] = _median(first) if first.size else float(view.series(key).value[0])
        return _Reading(key, self._first[key], float(newest[-1]))


def _median(first: Values) -> float:
    """Of a few readings: numpy's would load its masked arrays, a MiB that a run has no other use for."""
    return float(statistics.median(first.tolist()))


def _together(chosen: Sequence[tuple[str, _Reading]]) -> str:
    """The figures in a line. A process is named once."""
    parts: list[str] = []
    named = ""
    for word, reading in chosen:
        process = object_labels(reading.key.object).get("process", "")
        of_whom = process not in {named, reading.key.target}  # a target of one process has its name
        parts.append(_words(f"its {word}" if process and process == named else word, reading, of_whom))
        named = process or named
    return ", ".join(parts)


def _words(word: str, reading: _Reading, of_whom: bool) -> str:  # noqa: FBT001
    """A figure with its change, and the process that it is of.

    >>> _words("memory", _Reading(SeriesKey("fw", "process.memory.usage", "process=bgpd"), 2**20, 3 * 2**20), True)
    'memory of bgpd 3 MiB (+2 MiB)'
    """
    unit = BY_NAME[reading.key.metric].unit
    labels = object_labels(reading.key.object)
    of = f" of {labels['process']}" if of_whom and "process" in labels else ""
    tail = " p99" if labels.get("quantile") == "p99" else ""
    points = round(100 * abs(reading.grown))
    grown = counted(points, "point") if unit == "1" else quantity(abs(reading.grown), unit)
    change = (
        "" if reading.grown == 0 or (unit == "1" and not points) else f" ({'+' if reading.grown > 0 else '-'}{grown})"
    )
    return f"{word}{tail}{of} {quantity(reading.newest, unit)}{change}"
