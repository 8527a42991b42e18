"""Collects a table's samples by column, and sorts them by time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from soakwatch.record.model import Values
from soakwatch.sources.tables.cells import numbers, whole
from soakwatch.sources.tables.columns import TIME_NAMES
from soakwatch.sources.tables.errors import DataError
from soakwatch.sources.tables.options import Options
from soakwatch.sources.tables.plain_lines import PlainCells, codes_of
from soakwatch.sources.tables.table import Chunk, Table
from soakwatch.sources.tables.times import Moments, TimeOptions, TimeReading, time_reading
from soakwatch.transfer.importing.reading_stack import PackedOnce, ReadingStack
from soakwatch.transfer.importing.stray_times import TimeSpread

Ints = NDArray[np.int64]
Labels = tuple[tuple[str, str], ...]

MAX_SERIES = 20_000
MAX_READINGS = 100_000_000
"""Maximum cells of one table: they stay in memory, eight to sixteen bytes each (``reading_stack``)."""
_SHOWN = 3
_LONG = ("metric", "value")
_OF_LONG: tuple[str, ...] = ("time", "target", "metric", "object", "value", "unit")


@dataclass(frozen=True, slots=True)
class UnnamedSeries:
    """One series of a table before it is named; ``given`` is the unit in its lines."""

    name: str
    target: str
    labels: Labels
    object: str = ""
    given: str | None = None


@dataclass(slots=True)
class BadCells:
    """Cells that are not numbers: their count and the first ones; also the count of good cells."""

    bad: int = 0
    good: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, lines: Ints, cells: Sequence[str], bad: NDArray[np.bool_], good: int) -> None:
        """Counts the cells of one chunk."""
        self.good += good
        wrong = np.flatnonzero(bad)
        self.bad += wrong.size
        for index in wrong[: _SHOWN - len(self.first)].tolist():
            self.first.append(f"line {lines[index]}: {cells[index][:40]!r}")

    def text(self) -> str:
        """The first bad cells, and how many more there are."""
        more = f" and {self.bad - len(self.first)} more" if self.bad > len(self.first) else ""
        return ", ".join(self.first) + more


@dataclass(frozen=True, slots=True, eq=False)
class Sorted:
    """A column's readings in order of time: numbers only, one per time, the last one in the table."""

    time_ns: Ints
    line: Ints
    value: Values
    disordered: int
    repeated: int


@dataclass(slots=True)
class Gathered:
    """The content of a table: readings by column, and bad cells."""

    stacks: dict[UnnamedSeries, ReadingStack] = field(default_factory=dict)
    troubles: dict[str, BadCells] = field(default_factory=dict)
    packed: PackedOnce = field(default_factory=PackedOnce)
    texts: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def gather(table: Table, options: Options, target: str, progress: Callable[[str], None] | None = None) -> Gathered:
    """Reads a table to its end; ``progress`` is called with how far it is. Raises DataError."""
    names = _Names(table, options)
    time_index, reading = names.time()
    where = f"{table.name}: column {table.columns[time_index]}"
    gathered = Gathered(notes=[*table.notes, *(f"{table.name}: {note}" for note in reading.notes)])
    long = names.long()
    bad_times, spread, readings = BadCells(), TimeSpread(), 0
    take = _Long(table, gathered, long, target) if long else _Wide(table, gathered, names, time_index, target)
    for chunk in table.chunks:
        moments = _moments(reading, chunk.cells[time_index])
        bad_times.add(chunk.line, chunk.cells[time_index], moments.bad, int((~moments.bad).sum()))
        spread.add(moments.time_ns[~moments.bad], chunk.line[~moments.bad])
        take.take(chunk, moments)
        readings += chunk.line.size * (1 if long else len(table.columns))
        if readings > MAX_READINGS:
            raise DataError(
                f"{table.name} has more than {MAX_READINGS:,} readings: import a part of it, or fewer columns (--skip)"
            )
        if progress is not None:
            progress(f"reading {table.name}: {int(chunk.line[-1]):,} lines")
    spread.check(where)
    if bad_times.bad:
        if bad_times.bad > bad_times.good:
            raise DataError(
                f"{where}: more than half of its cells are not times ({bad_times.text()}): "
                "give their format with --time-format, or name another column with --time"
            )
        lines = "1 line has" if bad_times.bad == 1 else f"{bad_times.bad} lines have"
        gathered.notes.append(f"{table.name}: {lines} no time and were left out ({bad_times.text()})")
    return gathered


def _moments(reading: TimeReading, cells: Sequence[str]) -> Moments:
    """The times of cells; of equal ones that follow each other, as in a long table, only the first is read."""
    if not isinstance(cells, PlainCells):
        return reading.read(cells)
    different, place = cells.without_repeats()
    moments = reading.read(different)
    return moments if len(different) == len(cells) else Moments(moments.time_ns[place], moments.bad[place])


def in_order(stack: ReadingStack) -> Sorted:
    """Sorts a column's readings; empties the stack, to save memory."""
    time_ns, line, value = stack.emptied()
    if value.dtype.kind == "f":
        there = ~np.isnan(value)
        if not bool(there.all()):
            time_ns, line, value = time_ns[there], line[there], value[there]
    steps = np.diff(time_ns)
    disordered = int((steps < 0).sum())
    if disordered:
        order = np.argsort(time_ns, kind="stable")
        time_ns, line, value = time_ns[order], line[order], value[order]
        steps = np.diff(time_ns)
    last = np.append(steps > 0, True) if time_ns.size else np.zeros(0, dtype=np.bool_)
    repeated = int((~last).sum())
    if repeated:
        time_ns, line, value = time_ns[last], line[last], value[last]
    return Sorted(time_ns, line, value, disordered, repeated)


def _check_first_column(table: Table, reading: Callable[[int], TimeReading]) -> None:
    """Raises DataError unless the first column, whose name is no time's, reads like growing times."""
    sample = table.sample[0]
    try:
        moments = reading(0).read(sample)
    except DataError:
        grows = False
    else:
        steps = np.diff(moments.time_ns[~moments.bad])
        grows = 10 * int((steps > 0).sum()) >= 9 * steps.size and 2 * int(moments.bad.sum()) <= len(sample)
    if not grows:
        raise DataError(f"{table.name}: no column looks like times: name it with --time; {_listed(table.columns)}")


def _listed(columns: Sequence[str]) -> str:
    more = " …" if len(columns) > 20 else ""
    return f"columns: {', '.join(columns[:20])}{more}"


class _Names:
    """Resolves the columns that options give by name or number."""

    def __init__(self, table: Table, options: Options) -> None:
        self._table, self._options = table, options
        self._plain = ["".join(c for c in name.lower() if c.isalnum()) for name in table.columns]
        if not self.long():
            for column, option in options.named().items():
                self.index(column, option)

    def index(self, column: str, option: str) -> int:
        """The index of a column. Raises DataError, with the nearest name."""
        from soakwatch.core.suggest import hint

        columns = self._table.columns
        if column in columns:
            return columns.index(column)
        if column.isdecimal() and 1 <= int(column) <= len(columns):
            return int(column) - 1
        raise DataError(f"{self._table.name}: {option}: there is no column {column!r}{hint(column, columns)}")

    def time(self) -> tuple[int, TimeReading]:
        """The column of times and how to read it: the one given, else the first with a usual name that reads like
        times, else the first column, if it reads like growing times."""
        if self._options.time is not None:
            index = self.index(self._options.time, "--time")
            return index, self._reading(index)
        called = [self._plain.index(word) for word in TIME_NAMES if word in self._plain]
        for index in called:
            with suppress(DataError):
                return index, self._reading(index)
        if called:
            return called[0], self._reading(called[0])  # raises
        _check_first_column(self._table, self._reading)
        return 0, self._reading(0)

    def _reading(self, index: int) -> TimeReading:
        options, table = self._options, self._table
        timing = TimeOptions(options.time_format, options.zone, options.start_ns, table.decimal)
        return time_reading(table.sample[index], timing, f"{table.name}: column {table.columns[index]}")

    def long(self) -> Mapping[str, int]:
        """The columns of a long table by name; empty for a wide one."""
        indexes = {word: self._plain.index(word) for word in _OF_LONG if word in self._plain}
        return indexes if all(word in indexes for word in _LONG) else {}

    def skipped(self) -> set[int]:
        """Columns to leave out."""
        return {self.index(column, "--skip") for column in self._options.skip}

    def by(self) -> list[int]:
        """Columns that distinguish objects."""
        return [self.index(column, "--by") for column in self._options.by]

    def exact(self) -> set[int]:
        """Columns of counters, whose values may exceed a float's precision."""
        counted = {column for column, kind in self._options.kinds.items() if kind == "counter"}
        return {self.index(column, "--kind") for column in counted}


class _Wide:
    """A table with a line per time and a column per series; with --by, a series for each value of that column."""

    def __init__(self, table: Table, gathered: Gathered, names: _Names, time_index: int, target: str) -> None:
        self._table, self._gathered, self._target = table, gathered, target
        self._by, self._exact = names.by(), names.exact()
        left = {time_index, *self._by, *names.skipped()}
        self._read = []
        for index, column in enumerate(table.columns):
            if index in left:
                continue
            counted = numbers(table.sample[index], table.decimal)
            if bool(counted.bad.any()) and bool(np.isnan(counted.value).all()):
                gathered.texts.append(column)
            else:
                self._read.append(index)
        if not self._read:
            raise DataError(f"{table.name}: no column but the times has numbers; {_listed(table.columns)}")

    def take(self, chunk: Chunk, moments: Moments) -> None:
        """Takes the readings of a chunk."""
        whole_chunk = not bool(moments.bad.any())
        timed = ~moments.bad
        pieces = [
            (labels, mask, *self._timed(chunk, moments, mask, whole_chunk and mask is None))
            for labels, mask in self._objects(chunk, timed)
        ]
        for index in self._read:
            name, cells = self._table.columns[index], chunk.cells[index]
            value, bad = numbers(cells, self._table.decimal)
            trouble = self._gathered.troubles.setdefault(name, BadCells())
            trouble.add(chunk.line, cells, bad, int((~np.isnan(value)).sum()))
            exact = whole(cells) if index in self._exact else None
            kept: Values = value if exact is None else exact
            for labels, mask, time_ns, line in pieces:
                stack = _stack(self._gathered, UnnamedSeries(name, self._target, labels), self._table.name)
                stack.add(time_ns, line, kept if time_ns.size == kept.size else kept[timed if mask is None else mask])

    def _timed(
        self,
        chunk: Chunk,
        moments: Moments,
        mask: NDArray[np.bool_] | None,
        every: bool,  # noqa: FBT001
    ) -> tuple[Ints, Ints]:
        if every:
            return moments.time_ns, chunk.line
        chosen = ~moments.bad if mask is None else mask
        return moments.time_ns[chosen], chunk.line[chosen]

    def _objects(self, chunk: Chunk, timed: NDArray[np.bool_]) -> Iterator[tuple[Labels, NDArray[np.bool_] | None]]:
        if not self._by:
            yield (), None
            return
        keys, coded = codes_of([chunk.cells[index] for index in self._by])
        names = [re.sub(r"[^A-Za-z0-9_.]+", "_", self._table.columns[index]) for index in self._by]
        for code, key in enumerate(keys):
            mask = (coded == code) & timed
            if bool(mask.any()):
                yield tuple(zip(names, (cell.strip() for cell in key), strict=True)), mask


class _Long:
    """A table with a line per reading: time, metric, value, and optionally target, object and unit."""

    def __init__(self, table: Table, gathered: Gathered, indexes: Mapping[str, int], target: str) -> None:
        self._table, self._gathered, self._target, self._indexes = table, gathered, target, indexes
        self._columns: dict[tuple[str, ...], UnnamedSeries] = {}
        self._units: dict[tuple[str, ...], tuple[str, int]] = {}

    def take(self, chunk: Chunk, moments: Moments) -> None:
        """Takes the readings of a chunk."""
        cells = chunk.cells[self._indexes["value"]]
        value, bad = numbers(cells, self._table.decimal)
        self._gathered.troubles.setdefault("value", BadCells()).add(
            chunk.line, cells, bad, int((~np.isnan(value)).sum())
        )
        exact = whole(cells)
        blank = ("",) * len(cells)
        words = ("target", "metric", "object", "unit")
        keys, coded = codes_of([chunk.cells[self._indexes[w]] if w in self._indexes else blank for w in words])
        order = np.argsort(coded.astype(np.uint16) if len(keys) < 2**16 else coded, kind="stable")  # by radix
        edges = np.searchsorted(coded[order], np.arange(len(keys) + 1))
        for code, key in enumerate(keys):
            rows = order[edges[code] : edges[code + 1]]
            rows = rows[~moments.bad[rows]]
            if rows.size:
                column = self._column(key, int(chunk.line[rows[0]]))
                kept: Values = value[rows] if exact is None else exact[rows]
                _stack(self._gathered, column, self._table.name).add(moments.time_ns[rows], chunk.line[rows], kept)

    def _column(self, key: tuple[str, ...], line: int) -> UnnamedSeries:
        known = self._columns.get(key)
        if known is not None:
            return known
        target, metric, name, unit = (cell.strip() for cell in key)
        if not metric:
            raise DataError(f"{self._table.name}:{line}: no metric in this line")
        target = target or self._target
        known_unit, first = self._units.setdefault((target, metric, name), (unit, line))
        if known_unit != unit:
            raise DataError(
                f"{self._table.name}:{line}: {metric} is in {unit or 'no unit'} here and in "
                f"{known_unit or 'no unit'} in line {first}: use one unit for all of a series"
            )
        column = UnnamedSeries(metric, target, (), name, unit or None)
        self._columns[key] = column
        return column


def _stack(gathered: Gathered, column: UnnamedSeries, name: str) -> ReadingStack:
    stack = gathered.stacks.get(column)
    if stack is None:
        if len(gathered.stacks) >= MAX_SERIES:
            raise DataError(f"{name} has more than {MAX_SERIES} series: is its object (or --by) a running number?")
        stack = gathered.stacks[column] = ReadingStack(gathered.packed)
    return stack
