"""What a campaign is shown as where its file does not say: the usual figures and the usual tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod

from soakwatch.campaign.model import Axis, Cell
from soakwatch.campaign.tables.parse import tables_with
from soakwatch.campaign.tables.spec import FIGURES, VERDICT, Measured, TableSpec, TablesSpec
from soakwatch.core.errors import SoakwatchError
from soakwatch.runs.figures import FigureSpec

_SPARSE = 0.6
"""A matrix with fewer of its combinations than this share is a list: as a grid it would be holes."""


def filled(spec: TablesSpec, axes: Sequence[Axis], cells: Sequence[Cell], usual: Iterable[FigureSpec]) -> TablesSpec:
    """The same with figures and tables where it names none.

    The tables are a list of all cells where there is one axis or most combinations are excluded; else the verdict and
    each figure over the first two axes, with a view for each combination of the others.
    """
    if not spec.named:
        measured = {known.spec.text: known.name for known in spec.measured}
        added = [Measured(one.text, one) for one in usual if one.text not in measured]
        names = tuple(measured.get(one.text, one.text) for one in usual)
        spec = replace(spec, figures=(*spec.figures, *added), named=names)
    tables = tuple(
        table if table.figures else table.model_copy(update={"figures": _shown(spec, table)}) for table in spec.tables
    ) or usual_tables(spec, axes, cells)
    return replace(spec, tables=tables)


def usual_tables(spec: TablesSpec, axes: Sequence[Axis], cells: Sequence[Cell]) -> tuple[TableSpec, ...]:
    """The tables of a campaign that names none."""
    names = tuple(axis.name for axis in axes)
    figures = (VERDICT, *spec.named)
    full = prod(len(axis.values) for axis in axes)
    if len(names) == 1 or len(cells) < _SPARSE * full:
        return (TableSpec(rows=names, columns=(FIGURES,), figures=figures),)
    return (TableSpec(rows=names[:1], columns=names[1:2], figures=figures),)


def _shown(spec: TablesSpec, table: TableSpec) -> tuple[str, ...]:
    return spec.named if FIGURES in (*table.rows, *table.columns) and spec.named else (VERDICT, *spec.named)


def asked_table(
    spec: TablesSpec,
    axes: Sequence[Axis],
    table: str | None = None,
    rows: str | None = None,
    columns: str | None = None,
    figures: Sequence[str] = (),
) -> TablesSpec:
    """The same with the one table that options ask for; unchanged where they ask for none.

    ``table`` is ROWSxCOLUMNS, each one axis or several with commas. Raises SoakwatchError for an axis or a figure that
    nobody knows.
    """
    if table is None and rows is None and columns is None and not figures:
        return spec
    names = [axis.name for axis in axes]
    if table is not None:
        if rows is not None or columns is not None:
            raise SoakwatchError("--table says what rows and columns are: leave out --rows and --columns")
        rows, columns = _halves(table, [*names, FIGURES])
    if rows is None:
        rest = columns.split(",") if columns else [FIGURES]
        rows = ",".join(name for name in names if name not in rest) or FIGURES
    row_axes, column_axes = _axes(rows), _axes(columns or FIGURES)
    return tables_with(spec, row_axes, column_axes, figures, axes)


def _halves(table: str, names: Sequence[str]) -> tuple[str, str]:
    """Rows and columns of ROWSxCOLUMNS; names of axes may have an x themselves."""
    known = set(names)
    for place, sign in enumerate(table):
        if sign in "x×":
            halves = table[:place], table[place + 1 :]
            if all(set(_axes(half)) <= known and half.strip() for half in halves):
                return halves
    raise SoakwatchError(
        f"--table {table}: write two axes with an x between them, such as {names[0]}x{names[-2]}; "
        f"the axes are {', '.join(names[:-1])}, and 'figures' stands for the figures"
    )


def _axes(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
