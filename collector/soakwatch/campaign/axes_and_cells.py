"""Axes and cells of a campaign: the product of the values, less ``exclude``, and with ``include``.

As GitHub Actions has them. An ``exclude`` entry removes every cell that has all of its values. ``include`` is read
after that, entry by entry: it is added to every cell of the product of which it contradicts no value, and where there
is none it becomes a cell of its own. What an entry adds is its ``set`` and its keys that are no axis, which become
labels; a later entry may override what an earlier one added, none overrides a value. A list in an entry stands for one
entry for each of its items.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from soakwatch.campaign.campaign_keys import MAX_RUNS
from soakwatch.campaign.campaign_model import Axis, AxisValue
from soakwatch.core.labels import label_name
from soakwatch.core.suggest import hint
from soakwatch.core.validation import shown
from soakwatch.core.yaml import Document, Path, Plain, Problem, value_name
from soakwatch.plan.patch import PlanChange

TESTBED = "testbed"
RESERVED = frozenset({"campaign", "cell", "repetition", "attempt", "set", "name"})
MAX_NAME = 100
_SET, _VALUES, _VALUE, _NAME = "set", "values", "value", "name"


@dataclass(frozen=True, slots=True)
class Value:
    """A value of an axis as the file has it. ``plain``: it leaves the plan as it is, and says so (``set: {}``)."""

    name: str
    place: Path
    changes: tuple[PlanChange, ...] = ()
    plain: bool = False


@dataclass(slots=True)
class AxisDraft:
    """An axis while it is read. Its values are put at ``paths``; without any, each value says itself what it sets."""

    name: str
    values: list[Value]
    paths: tuple[str, ...] = ()

    def value(self, name: str) -> Value | None:
        """The value of a name."""
        return next((value for value in self.values if value.name == name), None)

    def axis(self) -> Axis:
        """The axis with its patches, without places."""
        return Axis(
            self.name,
            tuple(AxisValue(v.name, {change.path: change.value for change in v.changes}) for v in self.values),
        )


@dataclass(frozen=True, slots=True)
class CellDraft:
    """A cell while it is read, with its changes in order; ``place`` is where the file asks for it."""

    values: Mapping[str, str]
    place: Path
    changes: tuple[PlanChange, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Matrix:
    """What was read of a matrix: ``problems`` are all that is wrong with it."""

    axes: list[AxisDraft]
    cells: list[CellDraft]
    problems: list[Problem]


@dataclass(frozen=True, slots=True)
class _Entry:
    """An entry of include or exclude with one value a key: one with a list of values becomes as many of these."""

    names: Mapping[str, str]
    values: Mapping[str, Plain]
    labels: Mapping[str, str]
    changes: tuple[PlanChange, ...]
    place: Path


def read_matrix(
    document: Document,
    matrix: Mapping[str, Plain],
    exclude: Sequence[Mapping[str, Plain]],
    include: Sequence[Mapping[str, Plain]],
    used: Collection[str],
) -> Matrix:
    """The axes and cells of a campaign's file. ``used`` are axes whose values matter without changing the plan: those
    that commands name, and the testbed."""
    problems: list[Problem] = []
    axes = [axis for name, value in matrix.items() if (axis := _axis(document, name, value, problems)) is not None]
    if problems:
        return Matrix(axes, [], problems)
    by_name = {axis.name: axis for axis in axes}
    named = {
        (name, text)
        for index, item in enumerate(include)
        if _SET in item
        for name in by_name
        for text in _names(document, ("include", index, name), item.get(name))
    }
    for axis in axes:
        for value in axis.values:
            idle = not value.changes and not value.plain and axis.name not in used
            if idle and (axis.name, value.name) not in named:
                problems.append(document.problem(value.place, _idle(axis.name, value.name)))
    if _size(axes) > MAX_RUNS:
        problems.append(document.problem(("matrix",), f"the matrix has {_size(axes)} cells; at most {MAX_RUNS}"))
        return Matrix(axes, [], problems)
    cells = [
        CellDraft(
            {axis.name: value.name for axis, value in zip(axes, values, strict=True)},
            ("matrix",),
            tuple(change for value in values for change in value.changes),
        )
        for values in product(*(axis.values for axis in axes))
    ]
    for index, item in enumerate(exclude):
        place: Path = ("exclude", index)
        unknown = [key for key in item if key not in by_name]
        problems += [
            document.problem((*place, key), f"exclude: there is no axis {key!r}{hint(key, by_name)}", key=True)
            for key in unknown
        ]
        if not item:
            problems.append(document.problem(place, "exclude: names no value: it would leave no cell"))
        if unknown or not item:
            continue
        for entry in _unfolded(document, place, item, by_name, problems):
            for key, name in entry.names.items():
                if by_name[key].value(name) is None:
                    known = hint(name, [value.name for value in by_name[key].values])
                    problems.append(document.problem((*place, key), f"exclude: {key} has no value {name!r}{known}"))
            cells = [cell for cell in cells if not _fits(cell, entry)]
    cells = _included(document, include, axes, cells, problems)
    if not cells and not problems:
        problems.append(document.problem(("matrix",), "no cell is left: exclude less, or add values or include"))
    return Matrix(axes, cells, problems)


def _size(axes: Sequence[AxisDraft]) -> int:
    size = 1
    for axis in axes:
        size *= len(axis.values)
    return size


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
    return f"{name!r} is the campaign's own word: use another" if name in RESERVED else ""


def _axis(document: Document, name: str, value: Plain, problems: list[Problem]) -> AxisDraft | None:
    place: Path = ("matrix", name)
    wrong = _wrong_name(name)
    if wrong:
        problems.append(document.problem(place, f"matrix: {wrong}", key=True))
        return None
    paths: tuple[str, ...] = ()
    listed: Plain = value
    inner: Path = place
    if isinstance(value, dict):
        unknown = [key for key in value if key not in {_SET, _VALUES}]
        for key in unknown:
            message = f"{name}: unknown key {key!r}{hint(key, (_SET, _VALUES))}"
            problems.append(document.problem((*place, key), message, key=True))
        given = value.get(_SET)
        texts = given if isinstance(given, list) else [given]
        paths = tuple(text for text in texts if isinstance(text, str) and text)
        if not paths or len(paths) != len(texts):
            message = f"{name}: set is the path that its values go to, such as set: phases.soak.load"
            problems.append(document.problem((*place, _SET), message))
        if unknown or len(paths) != len(texts):
            return None
        listed, inner = value.get(_VALUES, []), (*place, _VALUES)
        if listed is None:
            listed = []
    if not isinstance(listed, list) or (not listed and not paths):
        message = f"{name}: expected a list of values, or {{set: PATH, values: [...]}}; found {shown(listed)}"
        problems.append(
            document.problem(inner, message if listed != [] else f"{name}: has no value: write at least one")
        )
        return None
    axis = AxisDraft(name, [], paths)
    for index, item in enumerate(listed):
        read = _value(document, axis, item, (*inner, index), problems)
        if read is None:
            continue
        earlier = axis.value(read.name)
        if earlier is not None:
            line = document.position(earlier.place)[0]
            message = f"{name}: two values are called {read.name!r} (the first in line {line}): rename one"
            problems.append(document.problem(read.place, message))
            continue
        axis.values.append(read)
    return axis


def _value(document: Document, axis: AxisDraft, item: Plain, place: Path, problems: list[Problem]) -> Value | None:
    def wrong(text: str, path: Path = place, *, key: bool = False) -> None:
        problems.append(document.problem(path, f"{axis.name}: {text}", key=key))

    if isinstance(item, list) or item is None:
        wrong(f"expected a value, found {shown(item)}: write a word, or {{name: NAME, set: {{PATH: VALUE}}}}")
        return None
    if not isinstance(item, dict):
        name = written(document, place, item)
        if not _good_name(name):
            wrong(f"{name[:40]!r} cannot be the name of a value: write one line of 1 to {MAX_NAME} characters")
            return None
        whose = f"{axis.name}={name}"
        return Value(name, place, tuple(PlanChange(path, item, place, whose) for path in axis.paths))
    known = (_NAME, _SET, _VALUE) if axis.paths else (_NAME, _SET)
    for key in item:
        if key not in known:
            wrong(f"unknown key {key!r}{hint(key, known)}", (*place, key), key=True)
    named = item.get(_NAME)
    if named is None or isinstance(named, dict | list) or not _good_name(written(document, (*place, _NAME), named)):
        wrong("a value with keys needs a name: write {name: NAME, set: {PATH: VALUE}}")
        return None
    name = written(document, (*place, _NAME), named)
    whose = f"{axis.name}={name}"
    changes: list[PlanChange] = []
    if axis.paths:
        at = (*place, _VALUE if _VALUE in item else _NAME)
        changes += [PlanChange(path, item.get(_VALUE, named), at, whose) for path in axis.paths]
    changes += patch_of(document, item.get(_SET), (*place, _SET), whose, problems)
    plain = _SET in item and item[_SET] == {} and not axis.paths
    if plain and any(other.plain for other in axis.values):
        wrong(f"{name!r} is the second value that is the plan as it is: one of them patches nothing", (*place, _SET))
    return Value(name, place, tuple(changes), plain)


def patch_of(document: Document, value: Plain, place: Path, whose: str, problems: list[Problem]) -> list[PlanChange]:
    """The changes of a mapping of values by path."""
    if value is None:
        return []
    if not isinstance(value, dict):
        message = f"{whose}: set is values by path, such as {{phases.soak.load: 80%}}; found {shown(value)}"
        problems.append(document.problem(place, message))
        return []
    return [PlanChange(path, inner, (*place, path), whose) for path, inner in value.items()]


def _good_name(text: str) -> bool:
    return 0 < len(text) <= MAX_NAME and text.isprintable() and text == text.strip()


def written(document: Document, place: Path, value: Plain) -> str:
    """A word or number as the file has it: 7.10 is not 7.1."""
    return document.changed.get(place) or value_name(value)


def _names(document: Document, place: Path, value: Plain) -> tuple[str, ...]:
    if value is None or isinstance(value, dict):
        return ()
    if isinstance(value, list):
        return tuple(written(document, (*place, index), item) for index, item in enumerate(value))
    return (written(document, place, value),)


def _fits(cell: CellDraft, entry: _Entry) -> bool:
    """Whether a cell has every value that an entry names."""
    return all(cell.values.get(axis) == name for axis, name in entry.names.items())


def _unfolded(
    document: Document,
    place: Path,
    item: Mapping[str, Plain],
    axes: Collection[str],
    problems: list[Problem],
) -> Iterator[_Entry]:
    """The entries that one entry stands for."""
    choices: list[list[tuple[str, str, Plain]]] = []
    names = {key: _names(document, (*place, key), value) for key, value in item.items() if key != _SET}
    whose = ",".join(f"{key}={'|'.join(texts)}" for key, texts in names.items() if key in axes) or str(place[0])
    changes = patch_of(document, item.get(_SET), (*place, _SET), whose, problems)
    for key, texts in names.items():
        value = item[key]
        values = value if isinstance(value, list) else [value]
        bad = next((inner for inner in values if inner is None or isinstance(inner, dict | list)), "")
        if not values or bad != "":
            message = (
                f"{place[0]}: {key}: expected a value or a list of values, found {shown(bad if values else value)}"
            )
            problems.append(document.problem((*place, key), message))
            return
        choices.append([(key, text, inner) for text, inner in zip(texts, values, strict=True)])
    for chosen in product(*choices):
        yield _Entry(
            {key: name for key, name, _ in chosen if key in axes},
            {key: value for key, _, value in chosen if key in axes},
            {key: name for key, name, _ in chosen if key not in axes},
            tuple(changes),
            place,
        )


def _included(
    document: Document,
    include: Sequence[Mapping[str, Plain]],
    axes: Sequence[AxisDraft],
    cells: Sequence[CellDraft],
    problems: list[Problem],
) -> list[CellDraft]:
    by_name = {axis.name: axis for axis in axes}
    original = list(cells)
    added: list[CellDraft] = []
    for index, item in enumerate(include):
        place: Path = ("include", index)
        for key in item:
            if key in by_name or key == _SET:
                continue
            wrong = _wrong_name(key)
            if wrong:
                problems.append(document.problem((*place, key), f"include: {wrong}", key=True))
        for entry in _unfolded(document, place, item, by_name, problems):
            fitting = [n for n, cell in enumerate(original) if _fits(cell, entry)]
            if not fitting:
                cell = _own_cell(document, entry, by_name, problems)
                if cell is not None and any(dict(cell.values) == dict(other.values) for other in added):
                    text = ", ".join(f"{key}={value}" for key, value in cell.values.items())
                    problems.append(document.problem(place, f"include: the cell {text} was added already: remove one"))
                elif cell is not None:
                    added.append(cell)
                continue
            if not entry.changes and not entry.labels:
                message = "include: adds nothing, for these cells are in the matrix: add set, or remove it"
                problems.append(document.problem(place, message))
            for n in fitting:
                cell = original[n]
                original[n] = replace(
                    cell, changes=(*cell.changes, *entry.changes), labels={**cell.labels, **entry.labels}
                )
    return original + added


def _own_cell(
    document: Document, entry: _Entry, axes: Mapping[str, AxisDraft], problems: list[Problem]
) -> CellDraft | None:
    """The cell that an entry adds by itself; its values may be new to their axes."""
    missing = [name for name in axes if name not in entry.values]
    if missing:
        message = (
            f"include: no cell of the matrix has these values, and a cell of its own needs a value of {missing[0]} too"
        )
        problems.append(document.problem(entry.place, message))
        return None
    changes: list[PlanChange] = []
    for name, axis in axes.items():
        given, called = entry.values[name], entry.names[name]
        value = axis.value(called)
        if value is None:
            place = (*entry.place, name)
            whose = f"{name}={called}"
            value = Value(called, place, tuple(PlanChange(path, given, place, whose) for path in axis.paths))
            if not value.changes and not entry.changes:
                known = hint(value.name, [other.name for other in axis.values])
                problems.append(document.problem(place, f"include: {whose} patches nothing: add set{known}"))
                return None
            axis.values.append(value)
        changes += value.changes
    return CellDraft(
        {name: entry.names[name] for name in axes},
        entry.place,
        (*changes, *entry.changes),
        entry.labels,
    )
