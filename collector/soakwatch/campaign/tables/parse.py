"""What is asked of a campaign's tables: by its file, by options, and where neither says, the usual figures and tables.

Every error names its line and the remedy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from soakwatch.campaign.campaign_model import Axis, Cell
from soakwatch.campaign.tables.spec import (
    FIGURES,
    VERDICT,
    Ceiling,
    Claim,
    Comparison,
    ExpectedLoss,
    Figure,
    Limit,
    LossLimit,
    Measured,
    MeasuredShape,
    Overload,
    Per,
    ScaleUp,
    Share,
    TableSpec,
    TablesSpec,
    Where,
)
from soakwatch.core.errors import SoakwatchError
from soakwatch.core.suggest import hint
from soakwatch.core.validation import problems, shown
from soakwatch.core.yaml import Document, Path, Plain, Problem, placeless, plan_error
from soakwatch.runs.key_figures import Better, FigureSpec, parse_figure

_FIGURE_KEYS = "figure, scale_up, share_of or expected_loss"
_SHAPES: Mapping[str, type[BaseModel]] = {
    "scale_up": ScaleUp,
    "share_of": Share,
    "expected_loss": Overload,
    "per": Per,
    "figure": MeasuredShape,
}
_SPARSE = 0.6
"""A matrix with fewer of its combinations than this share is a list: as a grid it would be holes."""
S = TypeVar("S", bound=BaseModel)


def tables_of(document: Document, axes: Sequence[Axis]) -> TablesSpec:
    """What the keys ``figures``, ``tables``, ``limits``, ``claims`` and ``compare`` of a campaign's file ask.

    Raises PlanError with every problem, each with its line and column.
    """
    spec, found = tables_and_problems(document, axes)
    if found:
        raise plan_error(document.origin, found)
    return spec


def tables_and_problems(document: Document, axes: Sequence[Axis]) -> tuple[TablesSpec, list[Problem]]:
    """The same with the problems instead of an error, for a caller that has more of them."""
    reader = _Reader(document, _values(axes))
    return reader.read(), reader.problems


def _tables_with(
    spec: TablesSpec, rows: Sequence[str], columns: Sequence[str], figures: Sequence[str], axes: Sequence[Axis]
) -> TablesSpec:
    """The spec with one table instead of its own. ``figures`` are names of its figures, or expressions.

    Raises PlanError for an axis that the matrix does not have, or an unknown figure.
    """
    table: dict[str, Plain] = {"rows": list(rows), "columns": list(columns)}
    data: Plain = {"tables": [{**table, "figures": list(figures)} if figures else table]}
    known = {figure.name: figure for figure in spec.figures}
    reader = _Reader(placeless(data, "the table"), _values(axes), figures=known)
    tables = reader.read().tables
    if reader.problems:
        raise plan_error("the table", reader.problems)
    return replace(spec, figures=tuple(known.values()), tables=tables)


def filled(spec: TablesSpec, axes: Sequence[Axis], cells: Sequence[Cell], usual: Iterable[FigureSpec]) -> TablesSpec:
    """The spec with the usual figures and tables where the file names none.

    The usual table is a list of all cells where there is one axis, or where most combinations are excluded. Otherwise
    it has the first two axes, with a view for each combination of the others, for the verdict and for each figure.
    """
    if not spec.named:
        measured = {known.spec.text: known.name for known in spec.measured}
        added = [Measured(one.text, one) for one in usual if one.text not in measured]
        names = tuple(measured.get(one.text, one.text) for one in usual)
        spec = replace(spec, figures=(*spec.figures, *added), named=names)
    tables = tuple(
        table if table.figures else table.model_copy(update={"figures": _shown(spec, table)}) for table in spec.tables
    ) or _usual_tables(spec, axes, cells)
    return replace(spec, tables=tables)


def _usual_tables(spec: TablesSpec, axes: Sequence[Axis], cells: Sequence[Cell]) -> tuple[TableSpec, ...]:
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
    """The spec with the one table that the options ask for; unchanged where they ask for none.

    ``table`` is ROWSxCOLUMNS, each one axis or several with commas. Raises SoakwatchError for an unknown axis or
    figure.
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
    return _tables_with(spec, row_axes, column_axes, figures, axes)


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


def _values(axes: Sequence[Axis]) -> Mapping[str, tuple[str, ...]]:
    return {axis.name: tuple(value.name for value in axis.values) for axis in axes}


@dataclass(slots=True)
class _Reader:
    document: Document
    axes: Mapping[str, tuple[str, ...]]
    problems: list[Problem] = field(default_factory=list)
    figures: dict[str, Figure] = field(default_factory=dict)
    named: list[str] = field(default_factory=list)

    def read(self) -> TablesSpec:
        for path, value in self._items("figures"):
            name = self._figure(path, value)
            self.named += [each for each in name if each in self.figures and each not in self.named]
        limits = [self._limit(path, value) for path, value in self._items("limits")]  # tables name their figures too
        tables = [self._table(path, value) for path, value in self._items("tables")]
        claims = [self._claim(path, value) for path, value in self._items("claims")]
        comparisons = [self._compare(path, value) for path, value in self._items("compare", single=True)]
        return TablesSpec(
            tuple(self.figures.values()),
            tuple(self.named),
            tuple(table for table in tables if table is not None),
            tuple(limit for limit in limits if limit is not None),
            tuple(claim for claim in claims if claim is not None),
            tuple(comparison for comparison in comparisons if comparison is not None),
        )

    def _items(self, key: str, *, single: bool = False) -> list[tuple[Path, Plain]]:
        data = self.document.data
        value = data.get(key) if isinstance(data, dict) else None
        if value is None:
            return []
        if isinstance(value, list):
            return [((key, index), self._as_written((key, index), item)) for index, item in enumerate(value)]
        if single:
            return [((key,), self._as_written((key,), value))]
        self._problem((key,), f"{key}: expected a list, found {shown(value)}")
        return []

    def _as_written(self, path: Path, value: Plain) -> Plain:
        """Numbers as they stand in the file where they name values of axes: 7.10 is not 7.1."""
        if isinstance(value, dict):
            return {key: self._as_written((*path, key), inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._as_written((*path, index), inner) for index, inner in enumerate(value)]
        return self.document.changed.get(path, value)

    def _figure(self, path: Path, value: Plain) -> tuple[str, ...]:
        """Reads one item of ``figures`` and returns the names of what it makes; none where it is wrong."""
        if isinstance(value, str):
            return (self._measured(path, value, value),)
        kind = next((key for key in _SHAPES if isinstance(value, dict) and key in value), None)
        if kind is None:
            self._problem(path, f"expected an expression, or keys with {_FIGURE_KEYS}, found {shown(value)}")
            return ()
        shape = self._shape(_SHAPES[kind], path, value)
        if isinstance(shape, MeasuredShape):
            at = shape.ceiling
            known = at is not None and self._value((*path, "ceiling"), at.axis, "axis", at.of, "of")
            ceiling = at if known else None
            return (self._measured((*path, "figure"), shape.figure, shape.name, shape.better, ceiling),)
        if isinstance(shape, Overload):
            overload = self._overload(path, shape)
            return () if overload is None else self._losses(overload)
        if isinstance(shape, Per):
            of, per = self._refer((*path, "figure"), shape.of), self._refer((*path, "per"), shape.per)
            less = None if shape.less is None else self._refer((*path, "less"), shape.less)
            name = shape.name or (f"{of} per {per}" if less is None else f"{of} less {less} per {per}")
            return (self._put(path, _with(shape, name=name, of=of, per=per, less=less)),)
        if isinstance(shape, ScaleUp):
            of = self._refer((*path, "scale_up"), shape.of)
            if self._axis((*path, "along"), shape.along) and self._numbers((*path, "along"), shape.along):
                return (self._put(path, _with(shape, name=shape.name or f"relative scale-up of {of}", of=of)),)
        if isinstance(shape, Share):
            of = self._refer((*path, "share_of"), shape.of)
            if self._value(path, shape.along, "along", shape.to, "to"):
                words = f"cost of {of}" if shape.cost else f"{of}, share of {shape.to}"
                return (self._put(path, _with(shape, name=shape.name or words, of=of)),)
        return ()

    def _table(self, path: Path, value: Plain) -> TableSpec | None:
        shape = self._shape(TableSpec, path, value)
        if shape is None:
            return None
        known = True
        for key, names in (("rows", shape.rows), ("columns", shape.columns)):
            for index, name in enumerate(names):
                place = (*path, key, index) if (*path, key, index) in self.document.values else (*path, key)
                known = (name == FIGURES or self._axis(place, name)) and known
        both = (*shape.rows, *shape.columns)
        twice = next((name for name in both if both.count(name) > 1), None)
        if twice is not None:
            self._problem((*path, "columns"), f"{twice!r} is in rows and columns more than once: name it once")
        if shape.figure is not None and shape.figures:
            self._problem((*path, "figures"), "a table has either figure or figures: write one list", key=True)
        figures = [] if shape.figure is None else [self._name((*path, "figure"), shape.figure)]
        figures += [self._name((*path, "figures", index), name) for index, name in enumerate(shape.figures)]
        self._where(path, shape.where)
        for index, name in enumerate(shape.rivals):
            place = (*path, "rivals", index) if (*path, "rivals", index) in self.document.values else (*path, "rivals")
            known = self._axis(place, name) and known
        return None if not known or twice is not None else _with(shape, figures=tuple(figures))

    def _limit(self, path: Path, value: Plain) -> Limit | LossLimit | None:
        if isinstance(value, dict) and "expected_loss" in value:
            loss = self._shape(LossLimit, path, value)
            overload = None if loss is None else self._overload(path, loss)
            if loss is None or overload is None:
                return None
            self._losses(overload, loss.excess)
            self._where(path, loss.where)
            return _with(loss, loss=overload.loss, offered=overload.offered, received=overload.received)
        shape = self._shape(Limit, path, value)
        if shape is None:
            return None
        if (shape.at_least is None) == (shape.at_most is None):
            self._problem(path, "a limit has one of at_least and at_most: write two limits for both ends")
        name = self._refer((*path, "figure"), shape.figure)
        self._where(path, shape.where)
        return _with(shape, figure=name)

    def _claim(self, path: Path, value: Plain) -> Claim | None:
        shape = self._shape(Claim, path, value)
        if shape is None:
            return None
        if shape.value == 0:
            self._problem((*path, "value"), "value: a tolerance in percent has no meaning of 0: write a limit instead")
        name = self._refer((*path, "figure"), shape.figure)
        self._where(path, shape.where)
        return _with(shape, figure=name)

    def _compare(self, path: Path, value: Plain) -> Comparison | None:
        shape = self._shape(Comparison, path, value)
        if shape is None:
            return None
        names = tuple(self._refer((*path, "figures", index), name) for index, name in enumerate(shape.figures))
        self._where(path, shape.where)
        return _with(shape, figures=names) if self._value(path, shape.axis, "axis", shape.to, "to") else None

    def _overload(self, path: Path, shape: Overload) -> Overload | None:
        """The overload with its figures by their names."""
        loss = self._refer((*path, "expected_loss"), shape.loss)
        offered = self._refer((*path, "offered"), shape.offered)
        received = self._refer((*path, "received"), shape.received)
        if not self._axis((*path, "along"), shape.along):
            return None
        return _with(shape.overload, loss=loss, offered=offered, received=received)

    def _losses(self, overload: Overload, most: float | None = None) -> tuple[str, ...]:
        """Adds the two figures that an overload has beside its loss: expected and excess loss. An excess above ``most``
        gets a note."""
        made = []
        for words, excess in (("expected loss", False), ("excess loss", True)):
            known = self.figures.get(words)
            taken = known is not None and (not isinstance(known, ExpectedLoss) or known.overload != overload)
            name = f"{words} of {overload.loss}" if taken else words
            if name not in self.figures or most is not None:
                self.figures[name] = ExpectedLoss(name, overload, excess, most or 0.0)
            made.append(name)
        return tuple(made)

    def _measured(
        self, path: Path, text: str, name: str, better: Better | None = None, ceiling: Ceiling | None = None
    ) -> str:
        """The figure of an expression, under its name; the expression itself where it has none."""
        spec = self._expression(path, text, "")
        return text if spec is None else self._put(path, Measured(name or text, spec, better, ceiling))

    def _refer(self, path: Path, text: str) -> str:
        """A figure that is named somewhere: one of those above by its name, or an expression."""
        if text in self.figures:
            return text
        same = next((f.name for f in self.figures.values() if isinstance(f, Measured) and f.spec.text == text), None)
        if same is not None:
            return same
        near = hint(text, [name for name in self.figures if name != text])
        near = near if "did you mean" in near else ""
        spec = self._expression(path, text, f"no figure has the name {text!r}{near}; as an expression: ")
        if spec is not None:
            self.figures[text] = Measured(text, spec)
        return text

    def _expression(self, path: Path, text: str, what: str) -> FigureSpec | None:
        try:
            return parse_figure(text)
        except SoakwatchError as error:
            self._problem(path, f"{what}{error}")
            return None

    def _name(self, path: Path, text: str) -> str:
        return VERDICT if text == VERDICT else self._refer(path, text)

    def _put(self, path: Path, figure: Figure) -> str:
        if figure.name in {VERDICT, FIGURES}:
            self._problem(path, f"a figure cannot have the name {figure.name!r}: tables use it")
        if figure.name in self.named:
            self._problem(path, f"two figures have the name {figure.name!r}: give one of them another 'name'")
        self.figures[figure.name] = figure
        return figure.name

    def _where(self, path: Path, given: Where) -> None:
        for axis, values in given.items():
            place = (*path, "where", axis)
            for value in values if self._axis(place, axis, key=True) else ():
                self._has_value(place, axis, value)

    def _axis(self, path: Path, name: str, *, key: bool = False) -> bool:
        if name not in self.axes:
            self._problem(path, f"the matrix has no axis {name!r}{hint(name, self.axes)}", key=key)
        return name in self.axes

    def _value(self, path: Path, axis: str, axis_key: str, value: str, value_key: str) -> bool:
        return self._axis((*path, axis_key), axis) and self._has_value((*path, value_key), axis, value)

    def _has_value(self, path: Path, axis: str, value: str) -> bool:
        known = value in self.axes[axis]
        if not known:
            self._problem(path, f"the axis {axis!r} has no value {value!r}{hint(value, self.axes[axis])}")
        return known

    def _numbers(self, path: Path, axis: str) -> bool:
        wrong = next((value for value in self.axes[axis] if number_of(value) is None), None)
        if wrong is not None:
            text = f"the axis {axis!r} has the value {wrong!r}: scale-up needs numbers above 0, such as 1, 2, 4"
            self._problem(path, text)
        return wrong is None

    def _shape(self, model: type[S], path: Path, value: Plain) -> S | None:
        try:
            return model.model_validate(value)
        except ValidationError as error:
            self.problems += problems(self.document, path, model, error)
            return None

    def _problem(self, path: Path, text: str, *, key: bool = False) -> None:
        self.problems.append(self.document.problem(path, text, key=key))


def _with(model: S, **values: object) -> S:
    return model.model_copy(update=values)


def number_of(value: str) -> float | None:
    """The number above 0 that a value of an axis begins with; None where there is none.

    >>> number_of("8"), number_of("8 cores"), number_of("imix"), number_of("0")
    (8.0, 8.0, None, None)
    """
    word = value.split(" ", maxsplit=1)[0].rstrip("%")
    try:
        number = float(word)
    except ValueError:
        return None
    return number if 0 < number < float("inf") else None
