"""A table (CSV) that grows: each line is read once, as ``soakwatch judge FILE`` would read it.

How the file is written (delimiter, decimal sign, form of the times) is told from its first lines, or by the plan. A
header that comes again is left out. Of several lines of one object at one time the last counts, or their sum.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from soakwatch.sources.abc import SourceError
from soakwatch.sources.result_files.columns import ColumnMap, Placed, guessed, mapped, place
from soakwatch.sources.result_files.following import SENDING, Moment, Taken
from soakwatch.sources.result_files.lines import Rows, cells_of, lines_in
from soakwatch.sources.result_files.times import ColumnTimes, TimesTold
from soakwatch.sources.tables.cells import numbers
from soakwatch.sources.tables.columns import TIME_NAMES
from soakwatch.sources.tables.errors import DataError
from soakwatch.sources.tables.table import Table, table_in
from soakwatch_agent.metric import BY_NAME, COUNTER
from soakwatch_agent.sample import Sample

MOST_SERIES = 5_000
_SNIFFED = 60
_RATES = frozenset({"load.tx.packet.rate", "load.tx.bit.rate", "load.request.rate"})
_COUNTS = frozenset({"load.tx.packets", "load.tx.bytes", "load.requests"})
_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")
_GROUPS = re.compile(r"\s*[+-]?\d{1,3}(,\d{3})+\s*")
_POINT = re.compile(r"\s*[+-]?\d+\.\d+\s*")
_OPTION = re.compile(r"--([a-z-]+)")
_KEYS = {"time": "time_column", "time-format": "time_format", "map": "columns"}


@dataclass(frozen=True, slots=True)
class TableTold:
    """What the plan says of a table; what it does not say shows in the file."""

    file: str
    target: str
    columns: Mapping[str, ColumnMap] = field(default_factory=dict)
    where: Mapping[str, str] = field(default_factory=dict)
    time_column: str | None = None
    times: TimesTold = field(default_factory=TimesTold)
    delimiter: str | None = None
    decimal: str | None = None


@dataclass(slots=True)
class _Known:
    """How a table is written. ``times`` is None where they are not read; ``sure`` if its decimal sign is known."""

    columns: tuple[str, ...]
    delimiter: str
    decimal: str
    sure: bool
    at_time: int
    times: ColumnTimes | None
    read: tuple[Placed, ...]
    where: tuple[tuple[int, re.Pattern[str]], ...]


class TableReader:
    """Lines of a growing table."""

    def __init__(self, told: TableTold, begin_ns: int, *, arrival: bool) -> None:
        self._told, self._begin_ns, self._arrival = told, begin_ns, arrival
        self._last: dict[tuple[str, str], int] = {}  # the time of the last sample of each series
        self._counted: dict[tuple[str, str], float] = {}
        self._sums: dict[tuple[str, str], float] = {}
        self._sums_ns = 0
        self._notes: tuple[str, ...] = ()
        self._table: _Known | None = None
        self.begin()

    def begin(self) -> None:
        """Another file: it may be written in another way."""
        self._rows = Rows()
        self._held: list[str] = []
        self._before, self._table = self._table, None

    def take(self, lines: Sequence[str], moment: Moment) -> Taken:
        """See Reader. Raises SourceError for a table that the plan does not fit."""
        taken = Taken()
        rows, torn = self._rows.whole(lines)
        if torn:
            taken.cannot(f"{torn[0][:80]!r} has a quote that is not closed", len(torn))
        if self._table is None and self._before is not None and rows and not self._held:
            self._table = self._before if _goes_on(self._before, rows[0]) else None
        try:
            if self._table is None:
                self._held += rows
                rows, self._held = self._held, self._held[:_SNIFFED]
                if len(rows) < 2:
                    return taken  # no line below the header
                self._table, self._notes = self._sniffed(rows)
                self._held = []
            self._read(self._table, rows, moment, taken)
        except DataError as error:
            raise SourceError(in_plan_words(str(error))) from None
        return taken

    def ended(self, moment: Moment) -> list[Sample]:
        """See Reader. Sums are complete when a line of a later time has come; by arrival they are now."""
        taken = Taken()
        if moment.arrival:
            self._give_sums({}, taken)
        return taken.samples

    def notes(self) -> tuple[str, ...]:
        """See Reader."""
        return self._notes

    def _sniffed(self, rows: Sequence[str]) -> tuple[_Known, tuple[str, ...]]:
        told = self._told
        table = table_in(io.StringIO("\n".join(rows[:_SNIFFED])), told.file, told.delimiter, told.decimal)
        at_time = self._time_place(table)
        times = None
        if not self._arrival:
            who = f"{told.file}: column {table.columns[at_time]}"
            times = ColumnTimes(table.sample[at_time], told.times, table.decimal, who)
        where = tuple((place(table.columns, name, "where"), re.compile(form)) for name, form in told.where.items())
        notes: tuple[str, ...] = ()
        if told.columns:
            read = mapped(table.columns, told.columns, told.target)
        else:
            read, notes = guessed(table.columns, frozenset({at_time, *(at for at, _ in where)}), told.target)
        if not read:
            raise DataError(f"{told.file}: no column tells what it is: map them in columns; {', '.join(table.columns)}")
        sure = told.decimal is not None or table.delimiter == "," or table.decimal == ","
        made = _Known(table.columns, table.delimiter, table.decimal, sure, at_time, times, read, where)
        return made, tuple(in_plan_words(note) for note in (*table.notes, *notes))

    def _time_place(self, table: Table) -> int:
        if self._told.time_column is not None:
            return place(table.columns, self._told.time_column, "time_column")
        plain = ["".join(c for c in name.lower() if c.isalnum()) for name in table.columns]
        found = next((plain.index(word) for word in TIME_NAMES if word in plain), None)
        if found is None and not self._arrival:
            raise DataError(
                f"{self._told.file}: no column is called time: name it (time_column), or take time: arrival"
            )
        return -1 if found is None else found

    def _read(self, known: _Known, rows: Sequence[str], moment: Moment, taken: Taken) -> None:
        lines = self._cells(known, rows, taken)
        if not lines:
            return
        if known.times is None:
            good, time_ns = [True] * len(lines), [moment.now_ns] * len(lines)
        else:
            good, time_ns = known.times.read([row[known.at_time] for row in lines], moment)
            taken.newest_ns = known.times.newest_ns
        for row, right in zip(lines, good, strict=True):
            if not right:
                taken.cannot(f"{row[known.at_time][:40]!r} is no time, or one ahead of now")
        _learn_decimal(known, lines, self._told.file)
        values = {}
        for one in known.read:
            read = numbers([row[one.at] for row in lines], known.decimal)
            values[one.at] = (read.value * one.scale).tolist()
            for at in np.flatnonzero(read.bad).tolist():
                taken.cannot(f"{one.name}: {lines[at][one.at][:40]!r} is no number")
        places: dict[tuple[str, str], int] = {}
        for at, row in enumerate(lines):
            if not good[at] or time_ns[at] < self._begin_ns or (moment.old and moment.arrival):
                continue
            if self._sums and time_ns[at] > self._sums_ns:
                self._give_sums(places, taken)
            for one in known.read:
                value = values[one.at][at]
                if np.isfinite(value):
                    self._note(one, row, value, time_ns[at], places, taken)

    def _cells(self, known: _Known, rows: Sequence[str], taken: Taken) -> list[list[str]]:
        found = []
        for text in rows:
            row = cells_of(text, known.delimiter)
            if text.startswith("#") or _is_header(row, known.columns):
                continue
            if len(row) < len(known.columns):
                taken.cannot(f"{text[:80]!r} has {len(row)} cells of {len(known.columns)}", lines_in(text))
            elif all(form.fullmatch(row[at].strip()) for at, form in known.where):
                found.append(row)
        return found

    def _note(
        self,
        one: Placed,
        row: Sequence[str],
        value: float,
        time_ns: int,
        places: dict[tuple[str, str], int],
        taken: Taken,
    ) -> None:
        key = one.metric, one.object(row)
        value = _exact(one, row[one.at], value)
        if not one.total:
            self._give(key, value, time_ns, places, taken)
        elif time_ns >= self._sums_ns:
            self._sums_ns = time_ns
            self._sums[key] = self._sums.get(key, 0) + value

    def _give_sums(self, places: dict[tuple[str, str], int], taken: Taken) -> None:
        sums, self._sums = self._sums, {}
        for key, total in sums.items():
            self._give(key, total, self._sums_ns, places, taken)

    def _give(
        self, key: tuple[str, str], value: float, time_ns: int, places: dict[tuple[str, str], int], taken: Taken
    ) -> None:
        last = self._last.get(key, 0)
        if last == 0 and len(self._last) >= MOST_SERIES:
            raise SourceError(f"{self._told.file} makes more than {MOST_SERIES} series: is a label a running number?")
        if time_ns < last or (time_ns == last and key not in places):
            return  # told already, or too late
        sample = Sample(key[0], key[1], value, time_ns)
        if time_ns == last:
            taken.samples[places[key]] = sample
            if not self._arrival:
                taken.doubt(f"several lines tell {key[0]} at one time: the last counts (labels or total: true)")
        else:
            places[key] = len(taken.samples)
            taken.samples.append(sample)
        self._last[key] = time_ns
        if key[0] == SENDING:
            taken.active = value > 0
        elif key[0] in _RATES:
            taken.active = value > 0 or bool(taken.active)
        elif key[0] in _COUNTS:
            before = self._counted.get(key)
            self._counted[key] = value
            taken.active = taken.active if before is None else (value != before or bool(taken.active))


def in_plan_words(sentence: str) -> str:
    """A sentence of the import, whose options are keys here.

    >>> in_plan_words("say how they are written with --time-format")
    'say how they are written with time_format:'
    """
    return _OPTION.sub(lambda match: f"{_KEYS.get(match[1], match[1])}:", sentence)


def _goes_on(known: _Known, row: str) -> bool:
    """Whether a file without a header goes on with the columns of the one before: its writer did not see it cut."""
    cells = cells_of(row, known.delimiter)
    figures = numbers([cells[one.at] for one in known.read if one.at < len(cells)], known.decimal)
    return len(cells) == len(known.columns) and bool(np.isfinite(figures.value).any())


def _is_header(row: Sequence[str], columns: Sequence[str]) -> bool:
    """Whether a line is the header again: most of its cells are names of columns."""
    same = sum(" ".join(cell.split()) == name for cell, name in zip(row, columns, strict=False))
    return 2 * same > len(columns)


def _exact(one: Placed, cell: str, value: float) -> float:
    """Whole counts as whole numbers, so that no digit is lost."""
    if BY_NAME[one.metric].kind != COUNTER:
        return value
    text = cell.strip()
    if one.scale == 1.0 and text.isdecimal() and len(text) < 20:
        return int(text)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _learn_decimal(known: _Known, lines: Sequence[Sequence[str]], file: str) -> None:
    """A comma in numbers that comes only later, where cells are not parted by commas. Raises DataError."""
    if known.sure:
        return
    cells = [row[one.at] for row in lines for one in known.read]
    commas = [cell for cell in cells if _COMMA.fullmatch(cell)]
    if any(_POINT.fullmatch(cell) for cell in cells):
        known.sure = True
    elif commas and all(_GROUPS.fullmatch(cell) for cell in commas):
        raise DataError(f"{file}: {commas[0].strip()} may mean two numbers: say decimal: ',' or decimal: '.'")
    elif commas:
        known.decimal, known.sure = ",", True
