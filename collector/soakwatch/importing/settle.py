"""From gathered readings to series under their names and in their units, with everything a person must be told."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from soakwatch.core.roles import DUT, GENERATOR
from soakwatch.core.suggest import hint
from soakwatch.importing.gather import Column, Gathered, Ints, Sorted, gather, in_order
from soakwatch.importing.possible import possible
from soakwatch.record.model import Values
from soakwatch.sources.tables.cells import middle
from soakwatch.sources.tables.columns import MEMORY, MEMORY_SHARE, OTHERWISE, Naming, naming, outside, scale_of
from soakwatch.sources.tables.errors import DataError
from soakwatch.sources.tables.options import Options, checked
from soakwatch.sources.tables.table import opened

Key = tuple[str, str, str]
_SHOWN = 3


@dataclass(frozen=True, slots=True, eq=False)
class ImportedSeries:
    """One series as it goes into a record: finite readings, strictly increasing in time, in ``unit``."""

    target: str
    role: str
    metric: str
    object: str
    unit: str
    kind: str
    growth: str | None
    column: str
    time_ns: Ints
    value: Values
    refused: str = ""  # why readings were left out, if some were
    refused_share: float = 0.0
    wanted: str = ""  # the metric whose name the column bears, where its unit is not known


@dataclass(frozen=True, slots=True)
class Imported:
    """What one file held. ``notes`` are sentences for people, ``columns`` what each column became."""

    file: str
    target: str
    series: tuple[ImportedSeries, ...]
    notes: tuple[str, ...]


def read_table(path: str, target: str, told: Options) -> Imported:
    """All series of one file. Raises DataError, in one sentence with the place and the remedy."""
    told = checked(told)
    with opened(path, told.delimiter, told.decimal) as table:
        file = table.name
        gathered = gather(table, told, target)
    _hold_options(file, gathered, told)
    notes = [*gathered.notes, *_of_cells(file, gathered, told)]
    made: dict[Key, ImportedSeries] = {}
    disordered = repeated = 0
    guesses: dict[str, list[str]] = {}
    axes: dict[bytes, Ints] = {}
    for column in sorted(gathered.stacks, key=lambda column: column.name not in told.meanings):  # then the guesses
        ordered = in_order(gathered.stacks.pop(column))
        if not ordered.time_ns.size:
            continue
        disordered, repeated = max(disordered, ordered.disordered), max(repeated, ordered.repeated)
        series, said, guess = _settled(file, column, ordered, told, made)
        notes.extend(note for note in said if note not in notes)
        if guess and column.name not in guesses.setdefault(guess, []):
            guesses[guess].append(column.name)
        if series is not None:
            same = hashlib.blake2b(series.time_ns.tobytes(), digest_size=16).digest()
            shared = axes.setdefault(same, series.time_ns)  # columns of one table mostly have the same times
            made[series.target, series.metric, series.object] = replace(series, time_ns=shared)
    notes.extend(f"{file}: {guess}: {', '.join(columns)}" for guess, columns in guesses.items())
    if disordered:
        notes.append(f"{file}: {disordered} {_lines(disordered)} earlier than the one before: sorted by time")
    if repeated:
        notes.append(
            f"{file}: {repeated} {_lines(repeated)} at a time that was there already: the last one counts"
            " (--by COLUMN tells objects apart)"
        )
    if not made:
        raise DataError(f"{file} holds no reading: nothing can be judged")
    series_all = tuple(_load_apart(made.values(), target))
    return Imported(file, target, series_all, tuple(notes))


def _lines(number: int) -> str:
    return "line is" if number == 1 else "lines are"


def _hold_options(file: str, gathered: Gathered, told: Options) -> None:
    """In a long table options name metrics; one that is not there is a mistake."""
    known = {column.name for column in gathered.stacks} | set(gathered.troubles) | set(gathered.texts)
    if "value" in gathered.troubles:
        for name, option in told.named().items():
            if option in {"--map", "--unit", "--kind", "--growth"} and name not in known:
                raise DataError(f"{file}: {option}: no line has the metric {name!r}{hint(name, known - {'value'})}")


def _of_cells(file: str, gathered: Gathered, told: Options) -> Iterator[str]:
    """What is to be told of cells that are no numbers. Raises DataError where most are not."""
    named = {**told.meanings, **told.units, **told.kinds}
    for column in gathered.texts:
        if column in named:
            raise DataError(f"{file}: column {column} is text, not numbers: map another column")
    if gathered.texts:
        yield f"{file}: left out, for it is text: {', '.join(gathered.texts)}"
    for column, trouble in gathered.troubles.items():
        if not trouble.bad:
            continue
        if trouble.bad > trouble.good:
            raise DataError(
                f"{file}: column {column}: more than half of its cells are no numbers ({trouble.told()}): "
                f"mend them, or leave the column out with --skip '{column}'"
            )
        cells = "1 cell is no number" if trouble.bad == 1 else f"{trouble.bad} cells are no numbers"
        yield f"{file}: column {column}: {cells} and counted as missing ({trouble.told()})"


def _settled(
    file: str, column: Column, ordered: Sorted, told: Options, made: Mapping[Key, ImportedSeries]
) -> tuple[ImportedSeries | None, list[str], str]:
    """The series of one column, None if nothing of it can be; what is to be told; and how its unit was guessed."""
    labels = dict(column.labels)
    try:
        named = _with_object(naming(column.name, column.target, told, labels, column.given), column)
    except DataError as error:
        raise DataError(f"{file}: {error}") from None
    sizes = np.abs(ordered.value.astype(np.float64))
    scale, guess = scale_of(column.name, named, float(sizes.max()), middle(sizes))
    if scale is None and named.metric == MEMORY and (share := _as_share(column, ordered, told)) is not None:
        named = _with_object(share, column)
        scale, guess = named.scale, f"read as {MEMORY_SHARE} in %, for it lies between 0 and 100{OTHERWISE}"
    notes: list[str] = []
    bears = ""
    twin = made.get((column.target, named.metric, named.object))
    if scale is None or (twin is not None and not named.imported):
        if twin is not None and column.name in told.meanings:
            raise DataError(
                f"{file}: columns {twin.column} and {column.name} would both be {named.metric} of the same "
                "object: give them labels, such as --map COLUMN=METRIC,process=NAME"
            )
        bears = named.metric if scale is None else ""
        if scale is not None and twin is not None:
            guess = ""
            notes = [
                f"{file}: {twin.column} is {named.metric}, so {column.name} stays on its own (--map says otherwise)"
            ]
        named = _with_object(outside(column.name, told, labels), column)
        scale = named.scale or 1.0
    plain, number = named.metric, 1
    while (column.target, named.metric, named.object) in made:
        number += 1
        named = replace(named, metric=f"{plain}_{number}")
    value: Values = ordered.value
    if scale != 1.0:
        with np.errstate(all="ignore"):
            value = ordered.value.astype(np.float64) * scale
    series = ImportedSeries(
        *(column.target, told.role_of(column.target), named.metric, named.object, named.unit, named.kind),
        *(named.growth, column.name),
        *(ordered.time_ns, value),
        wanted=bears,
    )
    return _within(file, series, ordered.line, notes), notes, guess


def _as_share(column: Column, ordered: Sorted, told: Options) -> Naming | None:
    """The naming of a column called memory, without a unit, whose readings can only be a percentage."""
    low, high = float(ordered.value.min()), float(ordered.value.max())
    if "used" in column.name.lower() or not (low >= 0 and 1 < high <= 100):
        return None
    said = replace(told, units={**told.units, column.name: "%"})
    return naming(column.name, column.target, said, dict(column.labels), column.given)


def _with_object(named: Naming, column: Column) -> Naming:
    """An object that a line tells is kept as it is."""
    return replace(named, object=column.object) if column.object else named


def _within(file: str, series: ImportedSeries, line: Ints, notes: list[str]) -> ImportedSeries | None:
    """The series without what its metric cannot be; every such reading is told of, and so is what was clipped."""
    value, good, over = possible(series.metric, series.value)
    if over:
        notes.append(
            f"{file}: column {series.column}: {over} {'reading' if over == 1 else 'readings'} a little outside of 0 to "
            f"100 % (up to {float(series.value[good].max()):.2%}), taken as the nearest of both"
        )
        series = replace(series, value=value)
    refused = int((~good).sum())
    if not refused:
        return series
    first = np.flatnonzero(~good)[:_SHOWN].tolist()
    shown = ", ".join(f"line {line[at]}: {value[at]:g}" for at in first)
    if 2 * refused > good.size:
        raise DataError(
            f"{file}: column {series.column}: more than half of its readings cannot be {series.metric} in "
            f"{series.unit} ({shown}): say its unit with --unit '{series.column}=…', or map it elsewhere"
        )
    why = f"{refused} {'reading' if refused == 1 else 'readings'} that cannot be: left out ({shown})"
    notes.append(f"{file}: column {series.column}: {why}")
    return replace(
        series, time_ns=series.time_ns[good], value=value[good], refused=why, refused_share=refused / good.size
    )


def _load_apart(series: Iterable[ImportedSeries], target: str) -> Iterator[ImportedSeries]:
    """What a generator measured belongs to a target of its own, so that rules take it for the load."""
    told = list(series)
    others = {one.target for one in told if not one.metric.startswith("load.")}
    for one in told:
        if one.role != DUT or not one.metric.startswith("load."):
            yield one
        elif one.target == target or one.target in others:
            yield replace(one, target=f"{one.target}-load", role=GENERATOR)
        else:
            yield replace(one, role=GENERATOR)
