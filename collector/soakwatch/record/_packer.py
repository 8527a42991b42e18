"""Which readings are admitted to the record, and the bytes in which a poll's readings are kept until compaction.

The readings of a poll are packed as 8-byte words, in the order of its layout: the series and, for each, whether the
word is a float64 (``d``), an int64 (``q``) or a uint64 (``Q``). Polls of one source mostly have one shape, so the
layout of the first serves the others: one dictionary lookup, one ``struct`` call, one comparison of arrays. A poll that
fails this comparison goes the slow way, reading by reading.

If several sources poll one target, each series comes from one of them at a time (``_owners``). Which readings of a poll
remain is computed on arrays too, and each such choice has a layout of its own.
"""

from __future__ import annotations

import hashlib
import sqlite3
import struct
from collections import OrderedDict, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from soakwatch.record._owners import NEVER, Mask, Owners
from soakwatch.record._rows import storable
from soakwatch.record.model import KEPT, Ints, Source
from soakwatch_model.metric import BY_NAME, clipped, fault_of
from soakwatch_model.sample import Fault, Poll, Sample

AHEAD_NS = 3_600_000_000_000
"""A reading may be this much later than the poll that brought it. A device that reports a later time is wrong, and that
time would make every later reading of the series look too early."""

_PLAIN = frozenset({int, float, bool})
_MAX_SHAPES = 64  # shapes of polls of a source that came last, 75 bytes a reading; more means that they do not repeat
_MAX_CHOICES = 16  # of the readings of one shape
_EXACT = 2**53  # integers up to here are floats without loss
_MAX_FLOAT = float(np.finfo(np.float64).max)

Shape = tuple[tuple[str, ...], tuple[str, ...], tuple[type, ...]]
"""The metrics, objects and types of the readings of a poll."""


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The order in which the readings of a poll are packed, with the bounds that the catalogue sets for each."""

    id: int
    series: NDArray[np.int64]
    packer: struct.Struct
    low: NDArray[np.float64]
    high: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Choices:
    """A shape of polls of which some readings may be left out: its series, and the layout of each choice so far."""

    series: Ints
    layouts: dict[bytes, Layout | None] = field(default_factory=dict)


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
class Reading:
    """One reading that was admitted."""

    series: int
    kind: str
    value: float
    time_ns: int
    metric: str
    whole: bool  # it came as an integer
    plain: bool  # it came under the names and with the type that it is kept with


class PollPacker:
    """Admits readings and packs them; writes new series and layouts through ``connection`` as they appear.

    After a rollback the caller must make a new one: this one remembers what was rolled back.
    """

    def __init__(self, connection: sqlite3.Connection, sources: Mapping[int, Source]) -> None:
        self._connection = connection
        self._owners = Owners(connection, sources)
        self._ids: dict[tuple[str, str, str], int] = {}
        self._kinds: dict[int, str] = {}  # a series that once was d or Q stays so, where that loses nothing
        self._shapes: defaultdict[int, OrderedDict[Shape, Layout | Choices]] = defaultdict(OrderedDict)  # by source
        self._names: dict[str, str] = {}  # metrics and objects, each once: a poll brings new texts of the same letters
        for series, target, metric, name in connection.execute("SELECT id, target, metric, object FROM series"):
            self._ids[target, metric, name] = series
        self._left_out_once: set[tuple[int, str]] = set(  # each metric that is left out is a fault once
            connection.execute("SELECT source, metric FROM fault WHERE object='' AND text LIKE ?", (f"%{KEPT}",))
        )

    def pack(self, source: Source, poll: Poll, *, late: bool = False) -> Packed:
        """Pack a poll's readings. Those that are refused are left out and come back as faults.

        Readings of a ``late`` poll may be earlier than those before them: readers of the series sort them.
        """
        samples = poll.answer.samples
        if not samples:
            return Packed(0, 0, None, b"", ())
        metrics, objects, values, stamps = zip(*samples, strict=True)
        shape = metrics, objects, tuple(map(type, values))
        known = self._shapes[source.id].get(shape)
        if known is not None:
            self._shapes[source.id].move_to_end(shape)
        packed = None
        if isinstance(known, Layout):
            packed = self._pack_known(known, poll, stamps, values, late=late)
        elif known is not None:
            packed = self._pack_chosen(known, poll, stamps, values, late=late)
        return packed or self._pack_new(source, poll, shape, late=late)

    def last_of(self, series: Sequence[int]) -> list[tuple[int, int]]:
        """(time of the latest reading, series) of each."""
        return [(int(self._owners.last[number]), number) for number in series]

    def forget_layouts(self) -> None:
        """Forget the layouts of polls: they were removed from the record."""
        self._shapes.clear()

    def sources_changed(self) -> None:
        """Take note of sources that were added, or that report a metric less often than was known."""
        self._owners.sources_changed()
        self._shapes.clear()

    def _pack_known(
        self, layout: Layout, poll: Poll, stamps: Sequence[int], values: Sequence[float], *, late: bool
    ) -> Packed | None:
        try:
            data = layout.packer.pack(*values)
            numbers = np.array(values, dtype=np.float64)
            times = _times_of(stamps)
        except (struct.error, OverflowError, TypeError, ValueError):
            return None
        last = self._owners.last[layout.series]
        after = (times > poll.start_ns - AHEAD_NS) & (times != last) if late else times > last
        fits = (numbers >= layout.low) & (numbers <= layout.high) & after
        if not fits.all() or times.max() > poll.start_ns + poll.duration_ns + AHEAD_NS:
            return None
        self._owners.last[layout.series] = np.maximum(last, times)
        return Packed(layout.id, len(values), _offsets_of(times, poll.start_ns), data, ())

    def _pack_chosen(
        self, choices: Choices, poll: Poll, stamps: Sequence[int], values: Sequence[float], *, late: bool
    ) -> Packed | None:
        try:
            times = _times_of(stamps)
            taken = self._owners.takes(poll.source, choices.series, times, late=late)
            choice = taken.tobytes()
            if choice not in choices.layouts:
                return None
            layout = choices.layouts[choice]
            if layout is None:
                return Packed(0, 0, None, b"", ())
            if len(values) > layout.series.size:
                values = list(compress(values, taken.tolist()))
                times = times if times.size == 1 else times[taken]
            data = layout.packer.pack(*values)
            numbers = np.array(values, dtype=np.float64)
        except (struct.error, OverflowError, TypeError, ValueError):
            return None
        after = times > (poll.start_ns - AHEAD_NS if late else self._owners.floor(poll.source, layout.series))
        fits = (numbers >= layout.low) & (numbers <= layout.high) & after & (times != self._owners.last[layout.series])
        if not fits.all() or times.max() > poll.start_ns + poll.duration_ns + AHEAD_NS:
            return None
        self._owners.took(poll.source, layout.series, times, late=late)
        return Packed(layout.id, len(values), _offsets_of(times, poll.start_ns), data, ())

    def _pack_new(self, source: Source, poll: Poll, shape: Shape, *, late: bool) -> Packed:
        faults: list[Fault] = []
        readings: list[Reading] = []
        seen: dict[int, int] = {}  # the latest time of each series in this poll
        left = self._left_out(source, poll, late=late) if self._owners.shared(source.target) else {}
        notes = [fault for series in left.values() if (fault := self._note_once(source, series)) is not None]
        for index, sample in enumerate(poll.answer.samples):
            if index in left:
                continue
            admitted = self._admit(source, poll, sample, seen, late=late)
            if isinstance(admitted, Fault):
                faults.append(admitted)
            else:
                readings.append(admitted)
                seen[admitted.series] = admitted.time_ns
        layout = self._layout(readings) if readings else None
        if not faults and all(reading.plain for reading in readings):
            self._remember(source, shape, layout, readings, left)
        if layout is None:
            return Packed(0, 0, None, b"", (*notes, *faults))
        times = np.array([reading.time_ns for reading in readings], dtype=np.int64)
        self._owners.took(source.id, layout.series, times, late=late)
        if bool((times == times[0]).all()):
            times = times[:1]
        data = layout.packer.pack(*[reading.value for reading in readings])
        return Packed(layout.id, len(readings), _offsets_of(times, poll.start_ns), data, (*notes, *faults))

    def _remember(
        self, source: Source, shape: Shape, layout: Layout | None, readings: Sequence[Reading], left: Mapping[int, int]
    ) -> None:
        """Keep the layout of a poll for the next polls of the same shape."""
        count = len(readings) + len(left)
        series, taken = np.zeros(count, dtype=np.int64), np.ones(count, dtype=np.bool_)
        for index, number in left.items():
            series[index], taken[index] = number, False
        series[taken] = [reading.series for reading in readings]
        if len(set(series.tolist())) < count:
            return  # a series more than once
        shapes = self._shapes[source.id]
        known = shapes.get(shape)
        if known is None:
            shape = self._once(shape[0]), self._once(shape[1]), shape[2]
            if len(shapes) >= _MAX_SHAPES:
                shapes.popitem(last=False)
        if not self._owners.shared(source.target):
            assert layout is not None
            shapes[shape] = layout
            return
        choices = known if isinstance(known, Choices) and len(known.layouts) < _MAX_CHOICES else Choices(series)
        choices.layouts[taken.tobytes()] = layout
        shapes[shape] = choices

    def _once(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple([self._names.setdefault(name, name) for name in names])

    def _left_out(self, source: Source, poll: Poll, *, late: bool) -> dict[int, int]:
        """The readings that another source brings: series by position in the poll."""
        known = [
            (index, series, sample.time_ns)
            for index, sample in enumerate(poll.answer.samples)
            if (series := self._ids.get((source.target, storable(sample.metric), storable(sample.object)))) is not None
            and NEVER < sample.time_ns < -NEVER
        ]
        if not known:
            return {}
        positions, series, times = np.array(known, dtype=np.int64).T
        left: Mask = ~self._owners.takes(source.id, series, times, late=late)
        return dict(zip(positions[left].tolist(), series[left].tolist(), strict=True))

    def _note_once(self, source: Source, series: int) -> Fault | None:
        metric = self._owners.metrics[series]
        if (source.id, metric) in self._left_out_once:
            return None
        self._left_out_once.add((source.id, metric))
        return Fault(metric, "", f"{self._owners.name(series)}{KEPT}")

    def _admit(
        self, source: Source, poll: Poll, sample: Sample, seen: Mapping[int, int], *, late: bool
    ) -> Reading | Fault:
        """``seen`` has the latest time of each series in this poll."""
        metric, name, value, time_ns = storable(sample.metric), storable(sample.object), sample.value, sample.time_ns
        plain = type(value) in _PLAIN and metric == sample.metric and name == sample.object
        if isinstance(value, int | np.integer):
            value = int(value)
            if not -(2**63) <= value < 2**64:
                return Fault(metric, name, f"{metric}: a sample was refused: it does not fit into 64 bits")
        elif isinstance(value, float | np.floating):
            value = float(value)
        else:
            return Fault(metric, name, f"{metric}: a sample was refused: it is not a number")
        value = clipped(metric, value)
        refused = fault_of(metric, value)
        if refused is not None:
            return Fault(metric, name, refused)
        if time_ns > poll.start_ns + poll.duration_ns + AHEAD_NS or not NEVER < time_ns < -NEVER:
            return Fault(metric, name, f"{metric}: a sample was refused: its time is more than an hour ahead")
        series = self._series(source, metric, name)
        floor = poll.start_ns - AHEAD_NS if late else self._owners.floor_of(source.id, series)
        if time_ns <= max(floor, seen.get(series, NEVER)) or time_ns == self._owners.last[series]:
            return Fault(metric, name, f"{metric}: a sample was refused: it is not later than the one before it")
        kind = self._kind(series, value)
        kept = float(value) if kind == "d" else value
        return Reading(series, kind, kept, time_ns, metric, isinstance(value, int), plain)

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
        self._owners.add(series, metric, source.id)
        return series

    def _layout(self, readings: Sequence[Reading]) -> Layout:
        series = np.array([reading.series for reading in readings], dtype=np.int64)
        kinds = "".join([reading.kind for reading in readings])
        columns = series.astype("<u4").tobytes()
        digest = hashlib.blake2b(columns + kinds.encode(), digest_size=16).digest()
        row = self._connection.execute("SELECT id FROM layout WHERE digest=?", (digest,)).fetchone()
        number = row[0] if row else None
        if number is None:
            number = self._connection.execute(
                "INSERT INTO layout (series, kinds, digest) VALUES (?,?,?)", (columns, kinds, digest)
            ).lastrowid
            assert number is not None
        low, high = np.array([_bounds(reading) for reading in readings], dtype=np.float64).T
        return Layout(number, series, struct.Struct("<" + kinds), low, high)


def _bounds(reading: Reading) -> tuple[float, float]:
    """The lowest and the highest reading that the catalogue allows and a word of this kind can hold."""
    metric = BY_NAME[reading.metric]
    low = -_MAX_FLOAT if metric.low is None else metric.low
    high = _MAX_FLOAT if metric.high is None else metric.high
    if reading.whole and reading.kind == "d":  # a larger integer would lose digits here: it goes the slow way
        return max(low, float(-_EXACT)), min(high, float(_EXACT))
    return low, high


def _times_of(stamps: Sequence[int]) -> Ints:
    """When each sample was read; one time where it is the same for all."""
    first = stamps[0]
    return np.array([first] if stamps.count(first) == len(stamps) else stamps, dtype=np.int64)


def _offsets_of(times: NDArray[np.int64], start_ns: int) -> bytes | None:
    """The times of readings as a row keeps them; None where all are the start."""
    offsets = np.atleast_1d(times) - start_ns
    return offsets.astype("<i8").tobytes() if offsets.any() else None
