"""Turns a table's samples into named series with units, and notes what was guessed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from soakwatch.core.suggest import hint
from soakwatch.record.model import Values
from soakwatch.sources.tables.cells import middle
from soakwatch.sources.tables.columns import MEMORY, MEMORY_SHARE, OTHERWISE, Naming, naming, outside, scale_of
from soakwatch.sources.tables.errors import DataError
from soakwatch.sources.tables.options import Options, checked
from soakwatch.sources.tables.table import opened
from soakwatch.transfer.importing.gather import Gathered, Ints, Sorted, UnnamedSeries, gather, in_order
from soakwatch.transfer.importing.plausibility import possible
from soakwatch_model.roles import DUT, GENERATOR

Key = tuple[str, str, str]
_SHOWN = 3


@dataclass(frozen=True, slots=True, eq=False)
class ImportedSeries:
    """One series for a record: finite readings, strictly increasing in time, in ``unit``."""

    target: str
    role: str
    metric: str
    object: str
    unit: str
    kind: str
    growth: str | None
    column: str
    time_ns: Ints = field(repr=False)  # asyncio.run() makes texts of what a task returns
    value: Values = field(repr=False)
    refused: str = ""  # why readings were dropped; "" if none were
    refused_share: float = 0.0
    suspected_metric: str = ""  # the metric that the column's name means, if its unit is unknown


@dataclass(frozen=True, slots=True)
class Imported:
    """The content of one file. ``notes`` are sentences for people."""

    file: str
    target: str
    series: tuple[ImportedSeries, ...]
    notes: tuple[str, ...]


def read_table(path: str, target: str, options: Options, progress: Callable[[str], None] | None = None) -> Imported:
    """All series of one file; ``progress`` is called with how far it is.

    Raises DataError, in one sentence with line and remedy.
    """
    options = checked(options)
    with opened(path, options.delimiter, options.decimal) as table:
        file = table.name
        gathered = gather(table, options, target, progress)
    _check_options(file, gathered, options)
    notes = [*gathered.notes, *_of_cells(file, gathered, options)]
    done: dict[Key, ImportedSeries] = {}
    disordered = repeated = 0
    guesses: dict[str, list[str]] = {}
    axes: dict[bytes, Ints] = {}
    axis: tuple[Ints, Ints] | None = None
    for column in sorted(gathered.stacks, key=lambda column: column.name not in options.meanings):  # then the guesses
        ordered = in_order(gathered.stacks.pop(column))
        if not ordered.time_ns.size:
            continue
        disordered, repeated = max(disordered, ordered.disordered), max(repeated, ordered.repeated)
        series, column_notes, guess = _settled(file, column, ordered, options, done)
        notes.extend(note for note in column_notes if note not in notes)
        if guess and column.name not in guesses.setdefault(guess, []):
            guesses[guess].append(column.name)
        if series is not None:
            if axis is None or axis[0] is not series.time_ns:
                same = hashlib.blake2b(series.time_ns.data, digest_size=16).digest()
                axis = series.time_ns, axes.setdefault(same, series.time_ns)
            # Most columns of a table have the same times.
            done[series.target, series.metric, series.object] = replace(series, time_ns=axis[1])
    notes.extend(f"{file}: {guess}: {', '.join(columns)}" for guess, columns in guesses.items())
    if disordered:
        notes.append(f"{file}: {disordered} {_lines(disordered)} out of order: sorted by time")
    if repeated:
        notes.append(
            f"{file}: {repeated} {_lines(repeated)} at a time that exists already: the last one counts"
            " (--by COLUMN distinguishes objects)"
        )
    if not done:
        raise DataError(f"{file} has no samples")
    series_all = tuple(load_apart(done.values(), target))
    return Imported(file, target, series_all, tuple(notes))


def _lines(number: int) -> str:
    return "line is" if number == 1 else "lines are"


def _check_options(file: str, gathered: Gathered, options: Options) -> None:
    """Raises DataError if options name metrics that a long table does not have."""
    known = {column.name for column in gathered.stacks} | set(gathered.troubles) | set(gathered.texts)
    if "value" in gathered.troubles:
        for name, option in options.named().items():
            if option in {"--map", "--unit", "--kind", "--growth"} and name not in known:
                raise DataError(f"{file}: {option}: no line has the metric {name!r}{hint(name, known - {'value'})}")


def _of_cells(file: str, gathered: Gathered, options: Options) -> Iterator[str]:
    """Notes on cells that are not numbers. Raises DataError if most are not."""
    named = {**options.meanings, **options.units, **options.kinds}
    for column in gathered.texts:
        if column in named:
            raise DataError(f"{file}: column {column} is text, not numbers: map another column")
    if gathered.texts:
        yield f"{file}: not imported because it is text: {', '.join(gathered.texts)}"
    for column, bad_cells in gathered.troubles.items():
        if not bad_cells.bad:
            continue
        if bad_cells.bad > bad_cells.good:
            raise DataError(
                f"{file}: column {column}: more than half of its cells are not numbers ({bad_cells.text()}): "
                f"fix them, or leave the column out with --skip '{column}'"
            )
        cells = "1 cell is not a number" if bad_cells.bad == 1 else f"{bad_cells.bad} cells are not numbers"
        yield f"{file}: column {column}: {cells} and counted as missing ({bad_cells.text()})"


def _settled(
    file: str, column: UnnamedSeries, ordered: Sorted, options: Options, done: Mapping[Key, ImportedSeries]
) -> tuple[ImportedSeries | None, list[str], str]:
    """The series of one column, None if no reading is possible; notes; and how its unit was guessed."""
    labels = dict(column.labels)
    try:
        named = _with_object(naming(column.name, column.target, options, labels, column.given), column)
    except DataError as error:
        raise DataError(f"{file}: {error}") from None
    sizes = np.abs(ordered.value.astype(np.float64))
    scale, guess = scale_of(column.name, named, float(sizes.max()), middle(sizes))
    # Without a unit, "memory" between 0 and 100 can only be a percentage.
    if scale is None and named.metric == MEMORY and (share := _as_share(column, ordered, options)) is not None:
        named = _with_object(share, column)
        scale, guess = named.scale, f"read as {MEMORY_SHARE} in %, because it lies between 0 and 100{OTHERWISE}"
    notes: list[str] = []
    suspected = ""
    twin = done.get((column.target, named.metric, named.object))
    # An unknown unit, or a metric that another column is already: the column becomes imported.NAME.
    if scale is None or (twin is not None and not named.imported):
        if twin is not None and column.name in options.meanings:
            raise DataError(
                f"{file}: columns {twin.column} and {column.name} would both be {named.metric} of the same "
                "object: give them labels, such as --map COLUMN=METRIC,process=NAME"
            )
        suspected = named.metric if scale is None else ""
        if scale is not None and twin is not None:
            guess = ""
            notes = [f"{file}: {twin.column} is {named.metric}, so {column.name} stays separate (override with --map)"]
        named = _with_object(outside(column.name, options, labels), column)
        scale = named.scale or 1.0
    plain, number = named.metric, 1
    while (column.target, named.metric, named.object) in done:
        number += 1
        named = replace(named, metric=f"{plain}_{number}")
    value: Values = ordered.value
    if scale != 1.0:
        with np.errstate(all="ignore"):
            value = ordered.value.astype(np.float64) * scale
    series = ImportedSeries(
        *(column.target, options.role_of(column.target), named.metric, named.object, named.unit, named.kind),
        *(named.growth, column.name),
        *(ordered.time_ns, value),
        suspected_metric=suspected,
    )
    return _within(file, series, ordered.line, notes), notes, guess


def _as_share(column: UnnamedSeries, ordered: Sorted, options: Options) -> Naming | None:
    """The naming of a column called memory without a unit, if its readings can only be percentages."""
    low, high = float(ordered.value.min()), float(ordered.value.max())
    if "used" in column.name.lower() or not (low >= 0 and 1 < high <= 100):
        return None
    as_percent = replace(options, units={**options.units, column.name: "%"})
    return naming(column.name, column.target, as_percent, dict(column.labels), column.given)


def _with_object(named: Naming, column: UnnamedSeries) -> Naming:
    """The naming with the line's object, if it has one."""
    return replace(named, object=column.object) if column.object else named


def _within(file: str, series: ImportedSeries, line: Ints, notes: list[str]) -> ImportedSeries | None:
    """The series without impossible readings; notes these and clipped ones."""
    value, good, over = possible(series.metric, series.value)
    if over:
        notes.append(
            f"{file}: column {series.column}: {over} {'reading' if over == 1 else 'readings'} slightly outside 0 to "
            f"100 % (up to {float(series.value[good].max()):.2%}), clipped"
        )
        series = replace(series, value=value)
    refused = int((~good).sum())
    if not refused:
        return series
    first = np.flatnonzero(~good)[:_SHOWN].tolist()
    shown = ", ".join(f"line {line[index]}: {value[index]:g}" for index in first)
    if 2 * refused > good.size:
        raise DataError(
            f"{file}: column {series.column}: more than half of its samples are impossible for {series.metric} in "
            f"{series.unit} ({shown}): give its unit with --unit '{series.column}=…', or map it to another metric"
        )
    why = f"{refused} {'reading' if refused == 1 else 'readings'} out of range: dropped ({shown})"
    notes.append(f"{file}: column {series.column}: {why}")
    return replace(
        series, time_ns=series.time_ns[good], value=value[good], refused=why, refused_share=refused / good.size
    )


def load_apart(series: Iterable[ImportedSeries], target: str) -> Iterator[ImportedSeries]:
    """Moves a generator's readings to a target of their own, so that rules take them for the load."""
    imported = list(series)
    others = {item.target for item in imported if not item.metric.startswith("load.")}
    for item in imported:
        if item.role != DUT or not item.metric.startswith("load."):
            yield item
        elif item.target == target or item.target in others:
            yield replace(item, target=f"{item.target}-load", role=GENERATOR)
        else:
            yield replace(item, role=GENERATOR)
