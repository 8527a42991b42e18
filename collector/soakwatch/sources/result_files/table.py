"""Reads a growing table (CSV): each line once, as ``soakwatch judge FILE`` would read it.

Delimiter, decimal sign and time format are set by the plan, or detected in the first lines. A repeated header is
skipped. Of several lines of one object and time the last counts, or their sum.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from soakwatch.core.regex import Pattern, user_regex
from soakwatch.sources.abc import SourceError
from soakwatch.sources.result_files.columns import ColumnMap, PlacedColumn, column_index, guessed, mapped
from soakwatch.sources.result_files.lines import Rows, cells_of, lines_in
from soakwatch.sources.result_files.result_file import SENDING, Moment, ParsedLines
from soakwatch.sources.result_files.times import ColumnTimes, TimeFormat
from soakwatch.sources.tables.cells import numbers
from soakwatch.sources.tables.columns import TIME_NAMES
from soakwatch.sources.tables.errors import DataError
from soakwatch.sources.tables.table import Table, table_in
from soakwatch_model.flow import BACK, REQUESTS, SENT
from soakwatch_model.metric import BY_NAME, COUNTER, GAUGE, flows
from soakwatch_model.sample import Sample

MAX_SERIES = 5_000
_SNIFFED = 60
_RATES = frozenset((*flows(SENT, kind=GAUGE), *flows(BACK, REQUESTS, kind=GAUGE)))
_COUNTS = frozenset((*flows(SENT, kind=COUNTER), *flows(BACK, REQUESTS, kind=COUNTER)))
_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")
_GROUPS = re.compile(r"\s*[+-]?\d{1,3}(,\d{3})+\s*")
_POINT = re.compile(r"\s*[+-]?\d+\.\d+\s*")
_OPTION = re.compile(r"--([a-z-]+)")
_KEYS = {"time": "time_column", "time-format": "time_format", "map": "columns"}


@dataclass(frozen=True, slots=True)
class TableFormat:
    """The plan's keys on a table's format; missing ones are detected in the file."""

    file: str
    target: str
    columns: Mapping[str, ColumnMap] = field(default_factory=dict)
    where: Mapping[str, str] = field(default_factory=dict)
    time_column: str | None = None
    times: TimeFormat = field(default_factory=TimeFormat)
    delimiter: str | None = None
    decimal: str | None = None


@dataclass(slots=True)
class _Layout:
    """A table's format. ``times`` is None if times are by arrival; ``sure`` is True if the decimal sign is certain."""

    columns: tuple[str, ...]
    delimiter: str
    decimal: str
    sure: bool
    time_index: int
    times: ColumnTimes | None
    read: tuple[PlacedColumn, ...]
    where: tuple[tuple[int, Pattern], ...]


class TableReader:
    """Reads the lines of a growing table."""

    def __init__(self, table_format: TableFormat, begin_ns: int, *, arrival: bool) -> None:
        self._format, self._begin_ns, self._arrival = table_format, begin_ns, arrival
        self._last: dict[tuple[str, str], int] = {}  # time of each series' last sample, ns
        self._counted: dict[tuple[str, str], float] = {}
        self._sums: dict[tuple[str, str], float] = {}
        self._sums_ns = 0
        self._notes: tuple[str, ...] = ()
        self._table: _Layout | None = None
        self.begin()

    def begin(self) -> None:
        """A new file, perhaps in another format."""
        self._rows = Rows()
        self._held: list[str] = []
        self._before, self._table = self._table, None

    def take(self, lines: Sequence[str], moment: Moment) -> ParsedLines:
        """See ``result_file.Reader``. Raises SourceError if the plan does not fit the table."""
        taken = ParsedLines()
        rows, torn = self._rows.whole(lines)
        if torn:
            taken.cannot(f"{torn[0][:80]!r} has an unclosed quote", len(torn))
        if self._table is None and self._before is not None and rows and not self._held:
            self._table = self._before if _continues(self._before, rows[0]) else None
        try:
            if self._table is None:
                self._held += rows
                rows, self._held = self._held, self._held[:_SNIFFED]
                if len(rows) < 2:
                    return taken  # nothing below the header yet
                self._table, self._notes = self._sniffed(rows)
                self._held = []
            self._read(self._table, rows, moment, taken)
        except DataError as error:
            raise SourceError(in_plan_words(str(error))) from None
        return taken

    def ended(self, moment: Moment) -> list[Sample]:
        """See ``result_file.Reader``. Sums are complete once a later time comes; by arrival at once."""
        taken = ParsedLines()
        if moment.arrival:
            self._give_sums({}, taken)
        return taken.samples

    def notes(self) -> tuple[str, ...]:
        """See ``result_file.Reader``."""
        return self._notes

    def _sniffed(self, rows: Sequence[str]) -> tuple[_Layout, tuple[str, ...]]:
        table_format = self._format
        table = table_in(
            io.StringIO("\n".join(rows[:_SNIFFED])), table_format.file, table_format.delimiter, table_format.decimal
        )
        time_index = self._time_index(table)
        times = None
        if not self._arrival:
            who = f"{table_format.file}: column {table.columns[time_index]}"
            times = ColumnTimes(table.sample[time_index], table_format.times, table.decimal, who)
        where = tuple(
            (column_index(table.columns, name, "where"), user_regex(form)) for name, form in table_format.where.items()
        )
        notes: tuple[str, ...] = ()
        if table_format.columns:
            read = mapped(table.columns, table_format.columns, table_format.target)
        else:
            read, notes = guessed(
                table.columns, frozenset({time_index, *(index for index, _ in where)}), table_format.target
            )
        if not read:
            raise DataError(
                f"{table_format.file}: no column has a known name: map them in columns; {', '.join(table.columns)}"
            )
        sure = table_format.decimal is not None or table.delimiter == "," or table.decimal == ","
        layout = _Layout(table.columns, table.delimiter, table.decimal, sure, time_index, times, read, where)
        return layout, tuple(in_plan_words(note) for note in (*table.notes, *notes))

    def _time_index(self, table: Table) -> int:
        if self._format.time_column is not None:
            return column_index(table.columns, self._format.time_column, "time_column")
        plain = ["".join(c for c in name.lower() if c.isalnum()) for name in table.columns]
        index = next((plain.index(word) for word in TIME_NAMES if word in plain), None)
        if index is None and not self._arrival:
            raise DataError(
                f"{self._format.file}: no column is called time: name it (time_column), or use time: arrival"
            )
        return -1 if index is None else index

    def _read(self, layout: _Layout, rows: Sequence[str], moment: Moment, taken: ParsedLines) -> None:
        lines = self._cells(layout, rows, taken)
        if not lines:
            return
        if layout.times is None:
            good, time_ns = [True] * len(lines), [moment.now_ns] * len(lines)
        else:
            good, time_ns = layout.times.read([row[layout.time_index] for row in lines], moment)
            taken.newest_ns = layout.times.newest_ns
        for row, right in zip(lines, good, strict=True):
            if not right:
                taken.cannot(f"{row[layout.time_index][:40]!r} is not a time, or ahead of now")
        _learn_decimal(layout, lines, self._format.file)
        values = {}
        for column in layout.read:
            read = numbers([row[column.index] for row in lines], layout.decimal)
            values[column.index] = (read.value * column.scale).tolist()
            for index in np.flatnonzero(read.bad).tolist():
                taken.cannot(f"{column.name}: {lines[index][column.index][:40]!r} is not a number")
        positions: dict[tuple[str, str], int] = {}
        for index, row in enumerate(lines):
            if not good[index] or time_ns[index] < self._begin_ns or (moment.old and moment.arrival):
                continue
            if self._sums and time_ns[index] > self._sums_ns:
                self._give_sums(positions, taken)
            for column in layout.read:
                value = values[column.index][index]
                if np.isfinite(value):
                    self._note(column, row, value, time_ns[index], positions, taken)

    def _cells(self, layout: _Layout, rows: Sequence[str], taken: ParsedLines) -> list[list[str]]:
        matching = []
        for text in rows:
            row = cells_of(text, layout.delimiter)
            if text.startswith("#") or _is_header(row, layout.columns):
                continue
            if len(row) < len(layout.columns):
                taken.cannot(f"{text[:80]!r} has {len(row)} cells instead of {len(layout.columns)}", lines_in(text))
            elif all(form.fullmatch(row[index].strip()) for index, form in layout.where):
                matching.append(row)
        return matching

    def _note(
        self,
        column: PlacedColumn,
        row: Sequence[str],
        value: float,
        time_ns: int,
        positions: dict[tuple[str, str], int],
        taken: ParsedLines,
    ) -> None:
        key = column.metric, column.object(row)
        value = _exact(column, row[column.index], value)
        if not column.total:
            self._give(key, value, time_ns, positions, taken)
        elif time_ns >= self._sums_ns:
            self._sums_ns = time_ns
            self._sums[key] = self._sums.get(key, 0) + value

    def _give_sums(self, positions: dict[tuple[str, str], int], taken: ParsedLines) -> None:
        sums, self._sums = self._sums, {}
        for key, total in sums.items():
            self._give(key, total, self._sums_ns, positions, taken)

    def _give(
        self,
        key: tuple[str, str],
        value: float,
        time_ns: int,
        positions: dict[tuple[str, str], int],
        taken: ParsedLines,
    ) -> None:
        last = self._last.get(key, 0)
        if last == 0 and len(self._last) >= MAX_SERIES:
            raise SourceError(f"{self._format.file} yields more than {MAX_SERIES} series: is a label a running number?")
        if time_ns < last or (time_ns == last and key not in positions):
            return  # reported already, or out of order
        sample = Sample(key[0], key[1], value, time_ns)
        if time_ns == last:
            taken.samples[positions[key]] = sample
            if not self._arrival:
                taken.remark(f"several lines have {key[0]} at one time: the last counts (use labels or total: true)")
        else:
            positions[key] = len(taken.samples)
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
    """Replaces the import's option names in a sentence by plan keys.

    >>> in_plan_words("give their format with --time-format")
    'give their format with time_format:'
    """
    return _OPTION.sub(lambda match: f"{_KEYS.get(match[1], match[1])}:", sentence)


def _continues(layout: _Layout, row: str) -> bool:
    """True if a file without a header continues the previous table: it was truncated while its writer went on."""
    cells = cells_of(row, layout.delimiter)
    figures = numbers([cells[column.index] for column in layout.read if column.index < len(cells)], layout.decimal)
    return len(cells) == len(layout.columns) and bool(np.isfinite(figures.value).any())


def _is_header(row: Sequence[str], columns: Sequence[str]) -> bool:
    """True if a line repeats the header: most of its cells are column names."""
    same = sum(" ".join(cell.split()) == name for cell, name in zip(row, columns, strict=False))
    return 2 * same > len(columns)


def _exact(column: PlacedColumn, cell: str, value: float) -> float:
    """A whole count as int, so that no digit is lost."""
    if BY_NAME[column.metric].kind != COUNTER:
        return value
    text = cell.strip()
    if column.scale == 1.0 and text.isdecimal() and len(text) < 20:
        return int(text)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _learn_decimal(layout: _Layout, lines: Sequence[Sequence[str]], file: str) -> None:
    """Detects a decimal comma in later lines, unless commas separate cells. Raises DataError."""
    if layout.sure:
        return
    cells = [row[column.index] for row in lines for column in layout.read]
    commas = [cell for cell in cells if _COMMA.fullmatch(cell)]
    if any(_POINT.fullmatch(cell) for cell in cells):
        layout.sure = True
    elif commas and all(_GROUPS.fullmatch(cell) for cell in commas):
        raise DataError(f"{file}: {commas[0].strip()} is ambiguous: set decimal: ',' or decimal: '.'")
    elif commas:
        layout.decimal, layout.sure = ",", True
