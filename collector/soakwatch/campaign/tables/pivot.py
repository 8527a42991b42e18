"""Tables over the axes of a campaign: rows, columns, and a view for each combination of the other axes; the best and
the worst of those cells of a table that can be compared, where their intervals tell them apart."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from soakwatch.campaign.campaign_model import Axis, Cell
from soakwatch.campaign.tables.cell_figures import EXCLUDED, NO_READING, CellData, CellFigure, CellVerdict
from soakwatch.campaign.tables.spec import FIGURES, VERDICT, TableSpec, takes

Mark = Literal["best", "worst", "tied best", "tied worst", ""]
K = TypeVar("K", bound=Hashable)
TRIFLING = 0.01
"""What two single runs may differ by, as a share of their value, without one being called better."""
Key = tuple[str, ...]
"""Values of some axes, in their order; the name of a figure where ``figures`` is among them."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What stands at a row and a column: ``verdict`` or ``figure`` of the cell ``data``. ``data`` is None where the
    matrix excludes the cell. ``shade`` is the number as a share of the largest of its figure in the view."""

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
    """Two axes (or lists of axes) of a table, with the ``entries`` by the values of rows and columns.

    ``of`` are the values of the other axes. ``figure`` is the figure that is shown, empty where rows or columns are
    figures. ``rivals`` are the axes whose values compete for best and worst; without any nothing is marked.
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
    rivals: tuple[str, ...] = ()

    def entry(self, row: Key, column: Key) -> Entry:
        """The entry at a row and a column."""
        return self.entries[row, column]


def views_of(table: TableSpec, axes: Sequence[Axis], cells: Sequence[CellData]) -> tuple[View, ...]:
    """The views of a table: one for each figure (unless rows or columns are figures) and for each combination of the
    axes that are neither in rows nor in columns. Rows and columns without a cell are left out."""
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
    placed: dict[tuple[Key, Key], CellData] = {}
    for data in cells:
        for name in names:
            placed[_key(data.cell, table.rows, name), _key(data.cell, table.columns, name)] = data
    rows = _ordered((row for row, _ in placed), table.rows, order, names)
    columns = _ordered((column for _, column in placed), table.columns, order, names)
    entries = {}
    for row in rows:
        for column in columns:
            name = figure or _named(row, table.rows) or _named(column, table.columns)
            entries[row, column] = _entry(name, placed.get((row, column)))
    rivals = table.rivals or _rivals(table, cells)
    marked = _marked(entries, rivals)
    return View(table.title, figure, of, table.rows, table.columns, rows, columns, marked, table.shows, rivals)


def _rivals(table: TableSpec, cells: Sequence[CellData]) -> tuple[str, ...]:
    """The only axis of a table with more than one value. Of two axes one may be the question (a size, a load) and not
    a rival: nobody but the file knows."""
    axes = [axis for axis in (*table.rows, *table.columns) if axis != FIGURES]
    several = [axis for axis in axes if len({data.cell.values.get(axis) for data in cells}) > 1]
    return tuple(several) if len(several) == 1 else ()


def _entry(name: str, data: CellData | None) -> Entry:
    if data is None:
        return Entry(name, None)
    if name == VERDICT:
        return Entry(name, data, verdict=data.verdict)
    return Entry(name, data, data.figures.get(name))


def _marked(entries: Mapping[tuple[Key, Key], Entry], rivals: Sequence[str]) -> dict[tuple[Key, Key], Entry]:
    """The entries with their marks and shades, each figure compared with itself alone, and only among the rivals."""
    made = dict(entries)
    for name in {entry.name for entry in entries.values()}:
        figures = {key: e.figure for key, e in entries.items() if e.name == name and e.figure is not None}
        groups: dict[Hashable, dict[tuple[Key, Key], CellFigure]] = {}
        for key, cell in figures.items() if rivals else ():
            data = entries[key].data
            values = {} if data is None else data.cell.values
            alike = tuple((axis, value) for axis, value in values.items() if axis not in rivals)
            groups.setdefault(alike, {})[key] = cell
        found = {key: mark for group in groups.values() for key, mark in marks(group).items()}
        shades = _shades(figures)
        for key, cell in figures.items():
            entry = entries[key]
            made[key] = Entry(entry.name, entry.data, cell, None, found.get(key, ""), shades.get(key))
    return made


def _shades(figures: Mapping[tuple[Key, Key], CellFigure]) -> dict[tuple[Key, Key], float]:
    """Each number as a share of the largest; none where there is nothing to compare."""
    known = {key: cell.median for key, cell in figures.items() if cell.median is not None}
    most = max(known.values(), default=0.0)
    if len(known) < 2 or most <= 0:
        return {}
    return {key: max(0.0, value) / most for key, value in known.items()}


def _key(cell: Cell, axes: Iterable[str], figure: str = "") -> Key:
    return tuple(figure if axis == FIGURES else cell.values.get(axis, "") for axis in axes)


def _named(key: Key, axes: Sequence[str]) -> str:
    return key[axes.index(FIGURES)] if FIGURES in axes else ""


def _combinations(cells: Sequence[CellData], axes: Sequence[str], order: Mapping[str, Mapping[str, int]]) -> list[Key]:
    return list(_ordered((_key(data.cell, axes) for data in cells), axes, order, ()))


def _ordered(
    keys: Iterable[Key], axes: Sequence[str], order: Mapping[str, Mapping[str, int]], names: Sequence[str]
) -> tuple[Key, ...]:
    def rank(key: Key) -> list[int]:
        places = []
        for axis, value in zip(axes, key, strict=True):
            places.append(names.index(value) if axis == FIGURES else order[axis].get(value, len(order[axis])))
        return places

    return tuple(sorted(dict.fromkeys(keys), key=rank))


def marks(cells: Mapping[K, CellFigure]) -> dict[K, Mark]:
    """Which cells of one figure are the best and the worst, by the figure's direction.

    A cell has the mark if its interval (with fewer than six runs: from the lowest to the highest run) overlaps that of
    no cell behind it; of single runs, if it is more than 1 % of the value away from the next. Cells of exactly the same
    median are tied and have it together. No mark with fewer than two different values, for a figure without a
    direction, or where the generator's limit hides which device is better.

    >>> marks({name: CellFigure("", "higher", value) for name, value in {"a": 3.0, "b": 5.0, "c": 5.0}.items()})
    {'b': 'tied best', 'c': 'tied best', 'a': 'worst'}
    """
    known = {key: cell for key, cell in cells.items() if cell.median is not None and cell.better and cell.ranked}
    if len({cell.median for cell in known.values()}) < 2:
        return {}
    made: dict[K, Mark] = {}
    for word, sign in (("best", 1.0), ("worst", -1.0)):
        top = _front(known, sign)
        if word == "best" and any(known[key].note for key in top):
            continue
        for key in top:
            made[key] = "tied best" if word == "best" else "tied worst"
            if len(top) == 1:
                made[key] = "best" if word == "best" else "worst"
    return made


def _front(cells: Mapping[K, CellFigure], sign: float) -> list[K]:
    """The cells of the best (sign 1) or the worst median (-1), if no other's interval reaches theirs."""

    def rank(cell: CellFigure) -> float:
        assert cell.median is not None
        return cell.median * sign * (1 if cell.better == "higher" else -1)

    most = max(rank(cell) for cell in cells.values())
    top = [key for key, cell in cells.items() if rank(cell) == most]
    others = [cell for key, cell in cells.items() if key not in top]
    return top if all(apart(cells[key], other) for key in top for other in others) else []


def apart(one: CellFigure, other: CellFigure) -> bool:
    """Whether the bounds of two cells do not overlap; of a single run also whether they are more than ``TRIFLING``
    apart, as a share of the larger: nobody knows how far its runs lie apart."""
    (low, high), (least, most) = bounds(one), bounds(other)
    gap = max(least - high, low - most)
    if min(one.n, other.n) > 1:
        return gap > 0
    return gap > TRIFLING * max(abs(low), abs(high), abs(least), abs(most))


def bounds(cell: CellFigure) -> tuple[float, float]:
    """Where the median lies: its interval, else the range of the runs, else the one number there is."""
    assert cell.median is not None
    if cell.low is not None and cell.high is not None:
        return cell.low, cell.high
    if cell.least is not None and cell.most is not None:
        return cell.least, cell.most
    return cell.median, cell.median
