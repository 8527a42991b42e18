"""The door of the record: which readings come in, and the bytes in which a poll's readings are kept until sealing.

The readings of a poll are packed as 8-byte words, in the order of its layout: the series and, for each, whether the
word is a float64 (``d``), an int64 (``q``) or a uint64 (``Q``). Polls of one source mostly look alike, so what is
worked out for the first is remembered for the rest: one look into a dictionary, one ``struct`` call, one comparison
of arrays. Whatever that comparison does not pass goes the slow way, reading by reading.
"""

from __future__ import annotations

import hashlib
import sqlite3
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from soakwatch.record.model import Source
from soakwatch.record.text import storable
from soakwatch_agent.metric import BY_NAME, fault_of
from soakwatch_agent.sample import Fault, Poll, Sample

AHEAD_NS = 3_600_000_000_000
"""A reading may be this much later than the poll that brought it; a device that claims more lies, and one such lie
would make every later reading of the series come too early."""

_EXACT = 2**53  # integers up to here are floats without loss
_LARGEST = float(np.finfo(np.float64).max)
_NEVER = np.iinfo(np.int64).min
_PLAIN = frozenset({int, float, bool})
_REMEMBERED = 256  # shapes of polls; more means that they do not repeat

Shape = tuple[int, tuple[str, ...], tuple[str, ...], tuple[type, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The order in which the readings of a poll are packed, with the bounds that the catalogue sets for each."""

    id: int
    series: NDArray[np.int64]
    packer: struct.Struct
    low: NDArray[np.float64]
    high: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Packed:
    """The readings of one poll as they are kept: ``offsets`` are int64 nanoseconds from the poll's start, one for
    all readings or one each; None where all are 0."""

    layout: int
    count: int
    offsets: bytes | None
    data: bytes
    faults: tuple[Fault, ...]


@dataclass(frozen=True, slots=True)
class _Reading:
    series: int
    kind: str
    value: float
    time_ns: int
    metric: str
    whole: bool  # it came as an integer
    plain: bool  # it came under the names and with the type that it is kept with


class Intake:
    """Admits readings and packs them; writes new series and layouts through ``connection`` as they appear.

    Whoever rolls back a transaction must make a new Intake, for this one remembers what was rolled back.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._ids: dict[tuple[str, str, str], int] = {}
        self._kinds: dict[int, str] = {}  # a series that once was d or Q stays so, where that loses nothing
        self._layouts: dict[Shape, Layout] = {}
        self._last: NDArray[np.int64] = np.full(64, _NEVER, dtype=np.int64)
        rows = connection.execute("SELECT id, target, metric, object, last_ns FROM series")
        for series, target, metric, name, last_ns in rows:
            self._ids[target, metric, name] = series
            self._saw(series, _NEVER if last_ns is None else last_ns)
        columns = {
            layout: np.frombuffer(series, dtype="<u4").astype(np.int64)
            for layout, series in connection.execute("SELECT id, series FROM layout")
        }
        for start_ns, layout, offsets in connection.execute("SELECT start_ns, layout, offsets FROM poll WHERE layout"):
            times = start_ns + (np.zeros(1, np.int64) if offsets is None else np.frombuffer(offsets, dtype="<i8"))
            np.maximum.at(self._last, columns[layout], times)

    def pack(self, source: Source, poll: Poll, *, late: bool = False) -> Packed:
        """The bytes of a poll's readings; those that cannot be are left out and come back as faults.

        Readings of a ``late`` poll may be earlier than those before them: whoever reads the series sorts them.
        """
        samples = poll.answer.samples
        if not samples:
            return Packed(0, 0, None, b"", ())
        values = [sample.value for sample in samples]
        shape = (
            source.id,
            tuple([sample.metric for sample in samples]),
            tuple([sample.object for sample in samples]),
            tuple(map(type, values)),
        )
        layout = self._layouts.get(shape)
        packed = None if layout is None else self._pack_known(layout, poll, samples, values, late=late)
        return packed or self._pack_new(source, poll, shape, late=late)

    def last_of(self, series: Sequence[int]) -> list[tuple[int, int]]:
        """(time of the latest reading, series) of each."""
        return [(int(self._last[one]), one) for one in series]

    def forget_layouts(self) -> None:
        """Forget what polls looked like: their layouts were removed from the record."""
        self._layouts.clear()

    def _pack_known(
        self, layout: Layout, poll: Poll, samples: Sequence[Sample], values: Sequence[float], *, late: bool
    ) -> Packed | None:
        try:
            data = layout.packer.pack(*values)
            numbers = np.array(values, dtype=np.float64)
            stamps = [sample.time_ns for sample in samples]
            first = stamps[0]
            alike = stamps.count(first) == len(stamps)
            times = np.array(first if alike else stamps, dtype=np.int64)
        except (struct.error, OverflowError, TypeError, ValueError):
            return None
        last = self._last[layout.series]
        after = (times > poll.start_ns - AHEAD_NS) & (times != last) if late else times > last
        fits = (numbers >= layout.low) & (numbers <= layout.high) & after
        if not fits.all() or times.max() > poll.start_ns + poll.duration_ns + AHEAD_NS:
            return None
        self._last[layout.series] = np.maximum(last, times)
        return Packed(layout.id, len(values), _offsets(times, poll.start_ns), data, ())

    def _pack_new(self, source: Source, poll: Poll, shape: Shape, *, late: bool) -> Packed:
        faults: list[Fault] = []
        readings: list[_Reading] = []
        seen: dict[int, int] = {}  # the latest time of each series in this poll
        for sample in poll.answer.samples:
            admitted = self._admit(source, poll, sample, seen if late else None)
            if isinstance(admitted, Fault):
                faults.append(admitted)
            else:
                readings.append(admitted)
                self._saw(admitted.series, admitted.time_ns)
                seen[admitted.series] = admitted.time_ns
        if not readings:
            return Packed(0, 0, None, b"", tuple(faults))
        layout = self._layout(readings)
        repeats = len(set(layout.series.tolist())) < len(readings)
        if not faults and not repeats and all(reading.plain for reading in readings):
            if len(self._layouts) >= _REMEMBERED:
                self._layouts.clear()
            self._layouts[shape] = layout
        times = np.array([reading.time_ns for reading in readings], dtype=np.int64)
        if bool((times == times[0]).all()):
            times = times[:1]
        data = layout.packer.pack(*[reading.value for reading in readings])
        return Packed(layout.id, len(readings), _offsets(times, poll.start_ns), data, tuple(faults))

    def _admit(self, source: Source, poll: Poll, sample: Sample, late: Mapping[int, int] | None) -> _Reading | Fault:
        """``late`` has the latest times in a poll that came late; None for one that did not."""
        metric, name, value, time_ns = storable(sample.metric), storable(sample.object), sample.value, sample.time_ns
        plain = type(value) in _PLAIN and metric == sample.metric and name == sample.object
        if isinstance(value, int | np.integer):
            value = int(value)
            if not -(2**63) <= value < 2**64:
                return Fault(metric, name, f"{metric}: a reading was refused: it does not fit into 64 bits")
        elif isinstance(value, float | np.floating):
            value = float(value)
        else:
            return Fault(metric, name, f"{metric}: a reading was refused: it is not a number")
        refused = fault_of(metric, value)
        if refused is not None:
            return Fault(metric, name, refused)
        if time_ns > poll.start_ns + poll.duration_ns + AHEAD_NS or not _NEVER < time_ns < -_NEVER:
            return Fault(metric, name, f"{metric}: a reading was refused: its time is more than an hour ahead")
        series = self._series(source, metric, name)
        last_ns = self._last[series] if late is None else late.get(series, poll.start_ns - AHEAD_NS)
        if time_ns <= last_ns or time_ns == self._last[series]:
            return Fault(metric, name, f"{metric}: a reading was refused: it is not later than the one before it")
        kind = self._kind(series, value)
        kept = float(value) if kind == "d" else value
        return _Reading(series, kind, kept, time_ns, metric, isinstance(value, int), plain)

    def _kind(self, series: int, value: float) -> str:
        before = self._kinds.get(series, "q")
        if isinstance(value, float) or (before == "d" and -_EXACT <= value <= _EXACT):
            kind = "d"
        elif value >= 2**63 or (before == "Q" and value >= 0):
            kind = "Q"
        else:
            kind = "q"
        if before != "d":
            self._kinds[series] = kind
        return kind

    def _series(self, source: Source, metric: str, name: str) -> int:
        known = self._ids.get((source.target, metric, name))
        if known is not None:
            return known
        entry = BY_NAME[metric]
        series = self._connection.execute(
            "INSERT INTO series (target, metric, object, source, unit, kind) VALUES (?,?,?,?,?,?)",
            (source.target, metric, name, source.id, entry.unit, entry.kind),
        ).lastrowid
        assert series is not None
        self._ids[source.target, metric, name] = series
        self._saw(series, _NEVER)
        return series

    def _layout(self, readings: Sequence[_Reading]) -> Layout:
        series = np.array([reading.series for reading in readings], dtype=np.int64)
        kinds = "".join([reading.kind for reading in readings])
        columns = series.astype("<u4").tobytes()
        digest = hashlib.blake2b(columns + kinds.encode(), digest_size=16).digest()
        found = self._connection.execute("SELECT id FROM layout WHERE digest=?", (digest,)).fetchone()
        number = found[0] if found else None
        if number is None:
            number = self._connection.execute(
                "INSERT INTO layout (series, kinds, digest) VALUES (?,?,?)", (columns, kinds, digest)
            ).lastrowid
            assert number is not None
        low, high = np.array([_bounds(reading) for reading in readings], dtype=np.float64).T
        return Layout(number, series, struct.Struct("<" + kinds), low, high)

    def _saw(self, series: int, time_ns: int) -> None:
        if series >= self._last.size:
            grown = np.full(max(series + 1, 2 * self._last.size), _NEVER, dtype=np.int64)
            grown[: self._last.size] = self._last
            self._last = grown
        self._last[series] = max(time_ns, int(self._last[series]))


def _bounds(reading: _Reading) -> tuple[float, float]:
    metric = BY_NAME[reading.metric]
    low = -_LARGEST if metric.low is None else metric.low
    high = _LARGEST if metric.high is None else metric.high
    if reading.whole and reading.kind == "d":  # a larger integer would lose digits here: it goes the slow way
        return max(low, float(-_EXACT)), min(high, float(_EXACT))
    return low, high


def _offsets(times: NDArray[np.int64], start_ns: int) -> bytes | None:
    offsets = np.atleast_1d(times) - start_ns
    return offsets.astype("<i8").tobytes() if offsets.any() else None
