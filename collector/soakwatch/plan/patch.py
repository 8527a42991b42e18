"""Changes of a plan by path: ``targets.gen.sources.0.command.run.1``, or by name where a list has names.

A path names keys and positions of lists from the top. In a list of things of one key each (phases, sources) the key
stands for the position: ``phases.soak.load``, ``targets.gen.sources.command.run.1``. A phase that is only a duration,
and a source that is only a word, get keys where a path goes into them.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from soakwatch.core.suggest import hint
from soakwatch.core.validation import shown
from soakwatch.core.yaml import Document, Path, Plain, Problem, parse, placeless, plan_error, value_name

_GROWS = frozenset({"rules", "watch", "web", "labels", "defaults"})
"""Keys of a plan below which a path may make what is not there."""
_PHASE_LENGTH = "for"
SET = "--set"


@dataclass(frozen=True, slots=True)
class PlanChange:
    """A value that is put into the plan at ``path``.

    ``place`` is where it stands in what changes the plan: a campaign's file, or a command line. ``whose`` names what
    asked for it, such as ``size=64``.
    """

    path: str
    value: JsonValue
    place: Path
    whose: str


@dataclass(slots=True)
class _Plan:
    """A copy of a plan that is being changed."""

    data: Plain
    values: dict[Path, tuple[int, int]]
    keys: dict[Path, tuple[int, int]]
    origins: dict[Path, str]


def patched(plan: Document, changes: Sequence[PlanChange], source: Document) -> Document:
    """The plan with the changes, in their order; the changed values have their places in ``source``.

    Raises PlanError with the place of each value whose path is not in the plan.
    """
    draft = _Plan(copy.deepcopy(plan.data), dict(plan.values), dict(plan.keys), dict(plan.origins))
    problems: list[Problem] = []
    for change in changes:
        try:
            path = _made(draft, change.path, plan.origin)
        except ValueError as error:
            problems.append(source.problem(change.place, f"{change.whose}: {error}"))
            continue
        value = _as_word(draft.data, path, change.value, source.changed.get(change.place))
        _forget(draft, path)
        _put(draft.data, path, value)
        draft.origins[path] = source.origin
        for inner, position in source.values.items():
            if inner[: len(change.place)] == change.place:
                draft.values[(*path, *inner[len(change.place) :])] = position
        draft.values.setdefault(path, source.position(change.place))
    if problems:
        raise plan_error(source.origin, problems)
    return Document(plan.origin, draft.data, draft.values, draft.keys, plan.changed, draft.origins)


def with_values(plan: Document, words: Sequence[str]) -> Document:
    """The plan with values of a command line (``rules.loss.limit=1%``), each read as the plan's file would be.

    Raises PlanError with a sentence for each that has no value, or whose path is not in the plan.
    """
    changes, problems = [], []
    for word in words:
        path, equals, text = word.partition("=")
        if not equals or not path:
            problems.append(Problem(0, 0, f"{word!r} sets nothing: write PATH=VALUE, such as duration=2h"))
            continue
        value = parse(text, f"{SET} {path}").data if text.strip() else None
        changes.append(PlanChange(path, value, (path,), path))
    if problems:
        raise plan_error(SET, problems)
    return patched(plan, changes, placeless({change.path: change.value for change in changes}, SET))


def found(data: Plain, text: str) -> Path | None:
    """The path that a text names in a plan, with positions instead of names; None where nothing stands there yet.

    >>> found({"phases": [{"ramp": "1m"}, {"soak": {"for": "1h"}}]}, "phases.soak.for")
    ('phases', 1, 'soak', 'for')
    """
    draft = _Plan(copy.deepcopy(data), {}, {}, {})
    try:
        return _made(draft, text, "the plan")
    except ValueError:
        return None


def value_at(data: Plain, path: Path) -> Plain:
    """What stands at a path that ``found`` gave; None where the last key is not there."""
    node = data
    for part in path:
        if isinstance(node, dict) and isinstance(part, str):
            node = node.get(part)
        elif isinstance(node, list) and isinstance(part, int) and part < len(node):
            node = node[part]
        else:
            return None
    return node


def _made(draft: _Plan, text: str, origin: str) -> Path:
    """The path that ``text`` names. Keys that a plan may leave out are made on the way. Raises ValueError."""
    parts = text.split(".")
    if not all(parts):
        raise ValueError(f"{text!r} is not a path: write keys and positions with dots, such as phases.soak.load")
    path: Path = ()
    node = draft.data
    while parts:
        if isinstance(node, list):
            index, word = _item(node, parts[0], path, origin)
            path = (*path, index)
            if word is None:  # the part was the position
                parts = parts[1:]
                node = node[index]
                continue
            if not isinstance(node[index], dict):
                if len(parts) == 1:  # the bare word itself is replaced
                    return path
                _put(draft.data, path, {word: {}})
            node = value_at(draft.data, path)
            continue
        if node is None and path:
            _put(draft.data, path, {})
            node = value_at(draft.data, path)
        if isinstance(node, str) and path[:1] == ("phases",) and len(path) == 3:
            inner = (*path, _PHASE_LENGTH)
            _put(draft.data, path, {_PHASE_LENGTH: node})
            draft.values[inner] = draft.values.get(path, (0, 0))
            node = value_at(draft.data, path)
        if not isinstance(node, dict):
            raise ValueError(f"{origin} has {shown(node)} at {_shown(path)}, with nothing in it for {parts[0]!r}")
        used = next((n for n in range(len(parts), 0, -1) if ".".join(parts[:n]) in node), 0)
        if used:
            path = (*path, ".".join(parts[:used]))
            parts = parts[used:]
            node = value_at(draft.data, path)
            continue
        path = (*path, parts[0])
        if len(parts) == 1:
            return path
        if not (path[0] in _GROWS or (path[0] == "targets" and path[2:3] == ("watch",))):
            at = f" at {_shown(path[:-1])}" if path[:-1] else ""
            raise ValueError(f"{origin} has no {parts[0]!r}{at} (path {text}){hint(parts[0], node)}")
        _put(draft.data, path, {})
        node = value_at(draft.data, path)
        parts = parts[1:]
    return path


def _as_word(data: Plain, path: Path, value: Plain, written: str | None) -> Plain:
    """The value to be put there: a number that replaces a word of a command becomes that word, as it was written."""
    if isinstance(path[-1], int) and isinstance(value_at(data, path), str) and isinstance(value, int | float):
        return written or value_name(value)
    return copy.deepcopy(value)


def _item(items: Sequence[Plain], part: str, path: Path, origin: str) -> tuple[int, str | None]:
    """The position of the item that a part of a path names, and its name where the part was no position."""
    if part.isdecimal():
        index = int(part)
        if index >= len(items):
            many = f"{len(items)} items, 0 to {len(items) - 1}" if items else "no items"
            raise ValueError(f"{origin} has {many} at {_shown(path)}: there is none at {part}")
        return index, None
    named = {index: name for index, item in enumerate(items) if (name := _name(item)) is not None}
    fitting = [index for index, name in named.items() if name == part]
    if not fitting:
        known = hint(part, set(named.values())) if named else "; write its position, from 0"
        raise ValueError(f"{origin} has no {part!r} at {_shown(path)}{known}")
    if len(fitting) > 1:
        positions = " or ".join(f"{_shown(path)}.{index}.{part}" for index in fitting)
        raise ValueError(f"{origin} has {len(fitting)} of {part!r} at {_shown(path)}: write {positions}")
    return fitting[0], part


def _name(item: Plain) -> str | None:
    if isinstance(item, str):
        return item
    return next(iter(item)) if isinstance(item, dict) and len(item) == 1 else None


def _shown(path: Path) -> str:
    return ".".join(map(str, path)) or "its top"


def _put(data: Plain, path: Path, value: Plain) -> None:
    node = value_at(data, path[:-1])
    match node, path[-1]:
        case dict(), str(key):
            node[key] = value
        case list(), int(index):
            node[index] = value


def _forget(draft: _Plan, path: Path) -> None:
    """Remove the places of what was at a path, and of all that was in it."""
    tables: tuple[dict[Path, tuple[int, int]] | dict[Path, str], ...] = (draft.values, draft.keys, draft.origins)
    for table in tables:
        for inner in [inner for inner in table if inner[: len(path)] == path]:
            if table is not draft.keys or inner != path:
                del table[inner]


def overwrites(later: Path, earlier: Path) -> bool:
    """Whether a change at ``later`` leaves nothing of one at ``earlier``."""
    return earlier[: len(later)] == later
