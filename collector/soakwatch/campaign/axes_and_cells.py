"""Axes and cells of a campaign: the product of the values, less ``exclude``, and with ``include``.

As GitHub Actions has them. An ``exclude`` entry removes every cell that has all of its values. ``include`` is read
after that, entry by entry: it is added to every cell of the product of which it contradicts no value, and where there
is none it becomes a cell of its own. What an entry adds is its ``set`` and its keys that are no axis, which become
labels; a later entry may override what an earlier one added, none overrides a value. A list in an entry stands for one
entry for each of its items.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod

from pydantic import JsonValue

from soakwatch.campaign.campaign_keys import MAX_RUNS, AxisKeys, AxisValueKeys, CampaignKeys, Choice, Patch
from soakwatch.campaign.campaign_model import Axis, AxisValue, Cell
from soakwatch.core.labels import label_name
from soakwatch.core.suggest import hint
from soakwatch.core.yaml import Document, Path, Problem, value_name
from soakwatch.plan.patch import PlanChange

TESTBED = "testbed"
_RESERVED = frozenset({"campaign", "cell", "repetition", "attempt", "set", "name"})


@dataclass(frozen=True, slots=True)
class Matrix:
    """What was read of a matrix: ``problems`` are all that is wrong with it."""

    axes: tuple[Axis, ...]
    cells: tuple[Cell, ...]
    problems: list[Problem]


@dataclass(frozen=True, slots=True)
class _Entry:
    """An entry of include or exclude with one value a key: one with a list of values becomes as many of these."""

    place: Path
    values: Mapping[str, AxisValue]
    labels: Mapping[str, str]
    changes: tuple[PlanChange, ...]

    def fits(self, cell: Cell) -> bool:
        """Whether a cell has every value that it names."""
        return all(cell.values.get(axis) == value.name for axis, value in self.values.items())


def read_matrix(document: Document, keys: CampaignKeys, used: Collection[str]) -> Matrix:
    """The axes and cells of a campaign's file. ``used`` are axes whose values matter without changing the plan: those
    that commands name, and the testbed."""
    reader = _Reader(document)
    for name, given in keys.matrix.items():
        reader.read_axis(name, given)
    axes = reader.axes
    size = prod(len(axis.values) for axis in axes.values())
    if size > MAX_RUNS:
        reader.wrong(("matrix",), f"the matrix has {size} cells; at most {MAX_RUNS}")
    if reader.problems:
        return Matrix(tuple(axes.values()), (), reader.problems)
    excluded = [entry for index, item in enumerate(keys.exclude) for entry in reader.excluded(index, item)]
    included: list[_Entry] = []
    named: set[tuple[str, str]] = set()
    for index, item in enumerate(keys.include):
        entries = list(reader.entries(("include", index), item.choices, item.set))
        included += entries
        if "set" in item.model_fields_set:
            named |= {(axis, value.name) for entry in entries for axis, value in entry.values.items()}
    for axis in axes.values():
        for value in axis.values:
            idle = not value.changes and not value.plain and axis.name not in used
            if idle and (axis.name, value.name) not in named:
                reader.wrong(value.place, _idle(axis.name, value.name))
    of_all = (
        Cell(
            {name: value.name for name, value in zip(axes, values, strict=True)},
            tuple(change for value in values for change in value.changes),
        )
        for values in product(*(axis.values for axis in axes.values()))
    )
    cells = reader.with_included([cell for cell in of_all if not any(entry.fits(cell) for entry in excluded)], included)
    if not cells and not reader.problems:
        reader.wrong(("matrix",), "no cell is left: exclude less, or add values or include")
    return Matrix(tuple(axes.values()), tuple(cells), reader.problems)


def written(document: Document, place: Path, value: JsonValue) -> str:
    """A word or number as the file has it: 7.10 is not 7.1."""
    return document.changed.get(place) or value_name(value)


def changes_of(patch: Mapping[str, JsonValue] | None, place: Path, whose: str) -> tuple[PlanChange, ...]:
    """The changes of a plan that stand at a place of a campaign's file, as values by path."""
    return tuple(PlanChange(path, value, (*place, path), whose) for path, value in (patch or {}).items())


def _put(paths: Iterable[str], value: JsonValue, place: Path, whose: str) -> tuple[PlanChange, ...]:
    return tuple(PlanChange(path, value, place, whose) for path in paths)


def _idle(axis: str, value: str) -> str:
    return (
        f"{axis}: {value!r} patches nothing: write {{name: {value}, set: {{PATH: VALUE}}}}, or set: {{}} if it is the"
        " plan as it is"
    )


def _wrong_name(name: str) -> str:
    """Why a word cannot name an axis or a label of a cell; "" if it can."""
    try:
        label_name(name)
    except ValueError as error:
        return str(error)
    return f"{name!r} is the campaign's own word: use another" if name in _RESERVED else ""


@dataclass(slots=True)
class _Reader:
    """Makes axes and entries of keys that have their shape, and notes what else is wrong with them."""

    document: Document
    axes: dict[str, Axis] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def wrong(self, place: Path, text: str, *, key: bool = False) -> None:
        self.problems.append(self.document.problem(place, text, key=key))

    def _at(self, *place: str | int) -> Path:
        """The place of a value; where the file has the short form without its last key, the place of that."""
        return place if place in self.document.values else place[:-1]

    def read_axis(self, name: str, keys: AxisKeys) -> None:
        if wrong := _wrong_name(name):
            self.wrong(("matrix", name), f"matrix: {wrong}", key=True)
        place = self._at("matrix", name, "values")
        values: dict[str, AxisValue] = {}
        for index, given in enumerate(keys.values or ()):
            value = self._value(name, keys.set, given, (*place, index))
            if value.plain and any(other.plain for other in values.values()):
                second = "is the second value that is the plan as it is: one of them patches nothing"
                self.wrong((*value.place, "set"), f"{name}: {value.name!r} {second}")
            if value.name in values:
                line = self.document.position(values[value.name].place)[0]
                text = f"{name}: two values are called {value.name!r} (the first in line {line}): rename one"
                self.wrong(value.place, text)
            values.setdefault(value.name, value)
        self.axes[name] = Axis(name, tuple(values.values()), tuple(keys.set))

    def _value(self, axis: str, paths: Iterable[str], keys: AxisValueKeys, place: Path) -> AxisValue:
        at = self._at(*place, "name")
        name = written(self.document, at, keys.name)
        whose = f"{axis}={name}"
        given = keys.name
        if "value" in keys.model_fields_set:
            at, given = (*place, "value"), keys.value
            if not paths:
                self.wrong(at, f"{axis}: value has no path to go to: give the axis one, or write set", key=True)
        changes = (*_put(paths, given, at, whose), *changes_of(keys.set, (*place, "set"), whose))
        return AxisValue(name, changes, place, plain=keys.set == {} and not paths)

    def entries(self, place: Path, choices: Mapping[str, Choice], patch: Patch = None) -> Iterator[_Entry]:
        """The entries that one entry stands for."""
        named = {
            key: [self._given(key, value, self._at(*place, key, n)) for n, value in enumerate(values)]
            for key, values in choices.items()
        }
        for key in named.keys() - self.axes.keys():
            if wrong := _wrong_name(key):
                self.wrong((*place, key), f"{place[0]}: {wrong}", key=True)
        of_axes = {key: "|".join(value.name for value in values) for key, values in named.items() if key in self.axes}
        whose = ",".join(f"{axis}={names}" for axis, names in of_axes.items()) or str(place[0])
        changes = changes_of(patch, (*place, "set"), whose)
        for chosen in product(*named.values()):
            values = dict(zip(named, chosen, strict=True))
            labels = {key: value.name for key, value in values.items() if key not in self.axes}
            yield _Entry(place, {key: values[key] for key in of_axes}, labels, changes)

    def _given(self, key: str, value: JsonValue, place: Path) -> AxisValue:
        """A value of an entry, as a value of the axis that the key may be."""
        name = written(self.document, place, value)
        paths = self.axes[key].paths if key in self.axes else ()
        return AxisValue(name, _put(paths, value, place, f"{key}={name}"), place)

    def excluded(self, index: int, choices: Mapping[str, Choice]) -> Iterator[_Entry]:
        """The entries of one of exclude, which can only name what is there."""
        place: Path = ("exclude", index)
        for key in choices.keys() - self.axes.keys():
            self.wrong((*place, key), f"exclude: there is no axis {key!r}{hint(key, self.axes)}", key=True)
        for entry in self.entries(place, {key: values for key, values in choices.items() if key in self.axes}):
            for axis, value in entry.values.items():
                if self.axes[axis].value(value.name) is None:
                    known = hint(value.name, [other.name for other in self.axes[axis].values])
                    self.wrong(value.place, f"exclude: {axis} has no value {value.name!r}{known}")
            yield entry

    def with_included(self, cells: list[Cell], included: Iterable[_Entry]) -> list[Cell]:
        """The cells with what entries add to them, and behind them those that entries are by themselves."""
        added: list[Cell] = []
        for entry in included:
            fitting = [n for n, cell in enumerate(cells) if entry.fits(cell)]
            if fitting and not entry.changes and not entry.labels:
                text = "include: adds nothing, for these cells are in the matrix: add set, or remove it"
                self.wrong(entry.place, text)
            for n in fitting:
                changes, labels = (*cells[n].changes, *entry.changes), {**cells[n].labels, **entry.labels}
                cells[n] = replace(cells[n], changes=changes, labels=labels)
            cell = None if fitting else self._own_cell(entry)
            if cell is not None and any(cell.values == other.values for other in added):
                text = ", ".join(f"{axis}={name}" for axis, name in cell.values.items())
                self.wrong(entry.place, f"include: the cell {text} was added already: remove one")
            elif cell is not None:
                added.append(cell)
        return cells + added

    def _own_cell(self, entry: _Entry) -> Cell | None:
        """The cell that an entry adds by itself; its values may be new to their axes."""
        missing = next((axis for axis in self.axes if axis not in entry.values), None)
        if missing is not None:
            needs = f"a cell of its own needs a value of {missing} too"
            self.wrong(entry.place, f"include: no cell of the matrix has these values, and {needs}")
            return None
        changes: list[PlanChange] = []
        for name, axis in self.axes.items():
            new = entry.values[name]
            value = axis.value(new.name)
            if value is None and not new.changes and not entry.changes:
                known = hint(new.name, [other.name for other in axis.values])
                self.wrong(new.place, f"include: {name}={new.name} patches nothing: add set{known}")
                return None
            if value is None:
                self.axes[name] = replace(axis, values=(*axis.values, new))
            changes += (value or new).changes
        values = {axis: entry.values[axis].name for axis in self.axes}
        return Cell(values, (*changes, *entry.changes), entry.labels)
