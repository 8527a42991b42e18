"""Tables over the axes of a campaign: rows, columns, and a view for each combination of the other axes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from soakwatch.campaign.model import Axis, Cell
from soakwatch.campaign.tables.cells import EXCLUDED, NO_READING, CellData, CellFigure, CellVerdict
from soakwatch.campaign.tables.marks import Mark, apart, marks
from soakwatch.campaign.tables.spec import FIGURES, VERDICT, TableSpec, takes

Key = tuple[str, ...]
"""Values of some axes, in their order; the name of a figure where ``figures`` is among them."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What stands at a row and a column. ``data`` is None for what the matrix excludes; ``verdict`` or ``figure`` is
    what is shown of it. ``shade`` is its place from the worst (0) to the best (1) of its table, where there is one."""

    name: str
    data: CellData | None
    figure: CellFigure | None = None
    verdict: CellVerdict | None = None
    mark: Mark = ""
    shade: float | None = None

    @property
    def absent(self) -> str:
        """Why there is nothing to show; empty where there is something."""
        if self.data is None:
            return EXCLUDED
        if self.verdict is not None:
            return self.verdict.reason if self.verdict.outcome is None else ""
        if self.figure is None:
            return f"no figure {self.name}"
        return (self.figure.reason or NO_READING) if self.figure.median is None else ""

    @property
    def short(self) -> str:
        """Why there is nothing to show, in a word or two."""
        if self.data is None:
            return EXCLUDED
        if self.verdict is not None:
            return self.verdict.short
        return "no figure" if self.figure is None else self.figure.short or NO_READING


@dataclass(frozen=True, slots=True)
class View:
    """Two axes (or lists of axes) of a table: ``entries`` by the values of rows and columns.

    ``of`` are the values of the other axes. ``figure`` is the one that is shown, empty where rows or columns are
    figures.
    """

    title: str
    figure: str
    of: Mapping[str, str]
    row_axes: tuple[str, ...]
    column_axes: tuple[str, ...]
    rows: tuple[Key, ...]
    columns: tuple[Key, ...]
    entries: Mapping[tuple[Key, Key], Entry]
    shows: tuple[str, ...] = ("interval",)

    def entry(self, row: Key, column: Key) -> Entry:
        """What stands there."""
        return self.entries[row, column]


@dataclass(frozen=True, slots=True)
class _Place:
    row: Key
    column: Key
    name: str
    data: CellData | None = field(default=None)


def views_of(table: TableSpec, axes: Sequence[Axis], cells: Sequence[CellData]) -> tuple[View, ...]:
    """The views of a table: one for each figure, unless rows or columns are figures, and for each combination of the
    axes that stand in neither. Rows and columns without a cell are left out."""
    kept = [data for data in cells if takes(table.where, data.cell)]
    order = {axis.name: {value.name: place for place, value in enumerate(axis.values)} for axis in axes}
    used = {*table.rows, *table.columns}
    other = tuple(axis.name for axis in axes if axis.name not in used)
    figures = ([], table.figures) if FIGURES in used else (table.figures, ())
    made = []
    for name in figures[0] or [""]:
        for rest in _combinations(kept, other, order):
            within = [data for data in kept if _key(data.cell, other) == rest]
            names = [name] if name else list(figures[1])
            made.append(_view(table, name, dict(zip(other, rest, strict=True)), within, names, order))
    return tuple(made)


def _view(
    table: TableSpec,
    figure: str,
    of: Mapping[str, str],
    cells: Sequence[CellData],
    names: Sequence[str],
    order: Mapping[str, Mapping[str, int]],
) -> View:
    by_key: dict[tuple[Key, Key], _Place] = {}
    rows: dict[Key, None] = {}
    columns: dict[Key, None] = {}
    for data in _sorted(cells, order):
        for name in names:
            row, column = _key(data.cell, table.rows, name), _key(data.cell, table.columns, name)
            rows[row] = columns[column] = None
            by_key[row, column] = _Place(row, column, name, data)
    row_keys = _ordered(rows, table.rows, order, names)
    column_keys = _ordered(columns, table.columns, order, names)
    entries = {}
    for row in row_keys:
        for column in column_keys:
            name = figure or _named(row, table.rows) or _named(column, table.columns)
            place = by_key.get((row, column), _Place(row, column, name))
            entries[row, column] = _entry(place)
    marked = _marked(entries)
    return View(table.title, figure, of, table.rows, table.columns, row_keys, column_keys, marked, table.shows)


def _entry(place: _Place) -> Entry:
    if place.data is None:
        return Entry(place.name, None)
    if place.name == VERDICT:
        return Entry(place.name, place.data, verdict=place.data.verdict)
    return Entry(place.name, place.data, place.data.figures.get(place.name))


def _marked(entries: Mapping[tuple[Key, Key], Entry]) -> dict[tuple[Key, Key], Entry]:
    """The entries with their marks and shades: of each figure among its own kind."""
    made = dict(entries)
    for name in {entry.name for entry in entries.values()}:
        figures = {key: e.figure for key, e in entries.items() if e.name == name and e.figure is not None}
        found, shades = marks(figures), _shades(figures)
        for key, cell in figures.items():
            entry = entries[key]
            made[key] = Entry(entry.name, entry.data, cell, None, found.get(key, ""), shades.get(key))
    return made


def _shades(figures: Mapping[tuple[Key, Key], CellFigure]) -> dict[tuple[Key, Key], float]:
    rivals = {key: cell for key, cell in figures.items() if cell.better and cell.ranked}
    known = {key: cell.median for key, cell in rivals.items() if cell.median is not None}
    if len(set(known.values())) < 2:
        return {}
    low, high = min(known.values()), max(known.values())
    if not apart(rivals[min(known, key=known.__getitem__)], rivals[max(known, key=known.__getitem__)]):
        return {}  # shades of what cannot be told apart would show a difference that is none
    up = next(iter(figures[key].better for key in known)) == "higher"
    return {key: ((value - low) if up else (high - value)) / (high - low) for key, value in known.items()}


def _key(cell: Cell, axes: Iterable[str], figure: str = "") -> Key:
    return tuple(figure if axis == FIGURES else cell.values.get(axis, "") for axis in axes)


def _named(key: Key, axes: Sequence[str]) -> str:
    return key[axes.index(FIGURES)] if FIGURES in axes else ""


def _combinations(cells: Sequence[CellData], axes: Sequence[str], order: Mapping[str, Mapping[str, int]]) -> list[Key]:
    return list(_ordered(dict.fromkeys(_key(data.cell, axes) for data in cells), axes, order, ()))


def _sorted(cells: Sequence[CellData], order: Mapping[str, Mapping[str, int]]) -> list[CellData]:
    return sorted(cells, key=lambda data: [order[axis].get(value, 0) for axis, value in data.cell.values.items()])


def _ordered(
    keys: Iterable[Key], axes: Sequence[str], order: Mapping[str, Mapping[str, int]], names: Sequence[str]
) -> tuple[Key, ...]:
    def rank(key: Key) -> list[int]:
        places = []
        for axis, value in zip(axes, key, strict=True):
            places.append(names.index(value) if axis == FIGURES else order[axis].get(value, len(order[axis])))
        return places

    return tuple(sorted(keys, key=rank))
