"""Plans for many devices: ``defaults`` for all targets, ranges in names (``fw[01-20]``), ``host``, keys ``x-…``.

All of it is written out before a plan is read, with the places where it stands in the file, and it is the plan that is
written out that goes into the record. The notation of ranges is that of hostlists (pdsh, Slurm): ``fw[01-03,07]``.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeVar

from soakwatch.core.errors import SoakwatchError
from soakwatch.core.registry import Registry, not_installed
from soakwatch.core.suggest import hint
from soakwatch.core.yaml import Document, Path, Plain, Problem, plan_error
from soakwatch.plan.target import TargetKeys
from soakwatch.sources.source_modules import poller_module

V = TypeVar("V")
MAX_TARGETS = 10_000
OWN = "{target}"
"""Stands for the name of the target in the texts of its sources."""
_RANGE = re.compile(r"\[(\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*)\]")
_EXTENSION = "x-"
_HEADS = 3  # keys of the longest place of which all is taken: defaults, poller, key
_HOST = "host"


class _RangeError(ValueError):
    """A range that cannot be meant."""


@dataclass(slots=True)
class _Draft:
    """The plan while it is written out, with its places, and what is wrong with it."""

    origin: Document
    values: dict[Path, tuple[int, int]] = field(default_factory=dict)
    keys: dict[Path, tuple[int, int]] = field(default_factory=dict)
    changed: dict[Path, str] = field(default_factory=dict)
    origins: dict[Path, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    _inside: dict[Path, list[Path]] = field(default_factory=dict)  # every place in the file by each of its heads

    def __post_init__(self) -> None:
        origin = self.origin
        for path in dict.fromkeys((*origin.values, *origin.keys, *origin.changed, *origin.origins)):
            for size in range(1, min(_HEADS, len(path)) + 1):
                self._inside.setdefault(path[:size], []).append(path)

    def take(self, here: Path, there: Path) -> None:
        """Give what is at ``there`` in the plan the places of ``here`` in the file, where it has none yet."""
        origin = self.origin
        for path in self._inside.get(here, ()):
            _take(origin.values, self.values, path, (*there, *path[len(here) :]))
            _take(origin.keys, self.keys, path, (*there, *path[len(here) :]))
            _take(origin.changed, self.changed, path, (*there, *path[len(here) :]))
            _take(origin.origins, self.origins, path, (*there, *path[len(here) :]))


def _take(before: Mapping[Path, V], after: dict[Path, V], here: Path, there: Path) -> None:
    if here in before:
        after.setdefault(there, before[here])


def unfolded(document: Document, registry: Registry) -> Document:
    """The plan with every target written out; the same document where nothing is to be written out.

    Raises PlanError with the place of every range, default and host that cannot be meant.
    """
    data = document.data
    targets = data.get("targets") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(targets, dict) or not _is_short(data, targets):
        return document
    draft = _Draft(document)
    kept = {key: value for key, value in data.items() if key not in {"defaults", "targets"} and not _is_extension(key)}
    defaults = _defaults(draft, data.get("defaults"), registry)
    written: dict[str, Plain] = {}
    for name, place, number, count in _names(draft, targets):
        if name in written:
            draft.problems.append(document.problem(("targets", place), f"two targets are called {name!r}", key=True))
            continue
        written[name] = _target(draft, name, place, targets[place], defaults, number, count, registry)
    if draft.problems:
        raise plan_error(document.origin, draft.problems)
    for key in kept:
        draft.take((key,), (key,))
    draft.values.setdefault((), document.values.get((), (0, 0)))
    if ("targets",) in document.values:
        draft.values[("targets",)] = document.values[("targets",)]
    if ("targets",) in document.keys:
        draft.keys[("targets",)] = document.keys[("targets",)]
    whole = {key: written if key == "targets" else kept[key] for key in data if key in kept or key == "targets"}
    return Document(document.origin, whole, draft.values, draft.keys, draft.changed, draft.origins)


def _is_extension(key: str) -> bool:
    return key.startswith(_EXTENSION)


def _is_short(data: Mapping[str, Plain], targets: Mapping[str, Plain]) -> bool:
    """Whether anything of a plan is to be written out."""
    if "defaults" in data or any(map(_is_extension, data)):
        return True
    if any("[" in name for name in targets):
        return True
    return any(isinstance(target, dict) and (_HOST in target or OWN in str(target)) for target in targets.values())


# --- names and ranges ----------------------------------------------------------------------------------------------


def _names(draft: _Draft, targets: Mapping[str, Plain]) -> Iterator[tuple[str, str, int, int]]:
    """Each name with its key in the file, its number within a range and how many that range has (0: no range)."""
    total = 0
    for key in targets:
        try:
            names = [key] if "[" not in key else ranged(key)
        except _RangeError as error:
            draft.problems.append(draft.origin.problem(("targets", key), str(error), key=True))
            continue
        total += len(names)
        if total > MAX_TARGETS:
            message = f"{key} makes {total:,} targets: a plan has at most {MAX_TARGETS:,}"
            draft.problems.append(draft.origin.problem(("targets", key), message, key=True))
            return
        for number, name in enumerate(names):
            yield name, key, number, len(names) if "[" in key else 0


def ranged(name: str) -> list[str]:
    """All names that a name with one range stands for. Raises ValueError.

    >>> ranged("fw[08-10,12]"), ranged("10.0.0.[9-11]")
    (['fw08', 'fw09', 'fw10', 'fw12'], ['10.0.0.9', '10.0.0.10', '10.0.0.11'])
    """
    found = _RANGE.findall(name)
    if len(found) != 1 or "[" in _RANGE.sub("", name):
        raise _RangeError(f"{name!r} is no range: write fw[01-20] or fw[1-3,7], once in a name")
    return [_RANGE.sub(number, name) for number in _numbers(found[0])]


@lru_cache(maxsize=64)
def _numbers(text: str) -> list[str]:
    numbers: list[str] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        last = last or first
        if int(last) < int(first):
            raise _RangeError(f"[{text}] counts down: write [{last}-{first}]")
        if int(last) - int(first) >= 100 * MAX_TARGETS:
            many = int(last) - int(first) + 1
            raise _RangeError(f"[{text}] has {many:,} numbers: a plan has at most {MAX_TARGETS:,} targets")
        width = len(first) if first.startswith("0") else 0
        numbers += [str(number).zfill(width) for number in range(int(first), int(last) + 1)]
    return numbers


def _own_text(text: str, name: str, number: int, count: int) -> str:
    """A text of a target of a range: its number of each range in the text, and its name. Raises ValueError."""

    def chosen(found: re.Match[str]) -> str:
        numbers = _numbers(found[1])
        if len(numbers) != count:
            raise _RangeError(
                f"{found[0]} has {len(numbers):,} numbers, and the name of the targets {count:,}: make them as many"
            )
        return numbers[number]

    return (_RANGE.sub(chosen, text) if count else text).replace(OWN, name)


# --- a target ------------------------------------------------------------------------------------------------------


def _defaults(draft: _Draft, given: Plain, registry: Registry) -> dict[str, Plain]:
    """Keys of a target, and of sources by the name of their poller."""
    if given is None:
        return {}
    if not isinstance(given, dict):
        message = "defaults are keys of targets, such as role and sources, or a source with its keys, such as snmp"
        draft.problems.append(draft.origin.problem(("defaults",), message))
        return {}
    of_targets = set(TargetKeys.model_fields)
    of_sources = {*registry.pollers.names(), *registry.loads.names()}
    for key, value in given.items():
        if key not in of_targets | of_sources:
            unknown = f"unknown key {key!r} in defaults{hint(key, of_targets | of_sources)}"
            message = not_installed(key) or unknown
            draft.problems.append(draft.origin.problem(("defaults", key), message, key=True))
        elif key in of_sources and not isinstance(value, dict):
            message = f"{key} takes keys of that source, such as {{interval: 10s}}"
            draft.problems.append(draft.origin.problem(("defaults", key), message))
    return {key: value for key, value in given.items() if key in of_targets or isinstance(value, dict)}


def _target(
    draft: _Draft,
    name: str,
    place: str,
    given: Plain,
    defaults: Mapping[str, Plain],
    number: int,
    count: int,
    registry: Registry,
) -> Plain:
    here, there = ("targets", place), ("targets", name)
    draft.take(here, there)
    if given is not None and not isinstance(given, dict):
        return given
    target: dict[str, Plain] = copy.deepcopy(given or {})
    for key in TargetKeys.model_fields:
        if key not in defaults:
            continue
        if key not in target:
            target[key] = copy.deepcopy(defaults[key])
            draft.take(("defaults", key), (*there, key))
        elif key == "watch":
            own, common = target[key], defaults[key]
            if isinstance(own, dict) and isinstance(common, dict):
                target[key] = {**copy.deepcopy(common), **own}
                draft.take(("defaults", key), (*there, key))
    host = target.pop(_HOST, None)
    sources = target.get("sources")
    if isinstance(sources, list):
        target["sources"] = [
            _source(draft, (*there, "sources", index), source, defaults, host, registry)
            for index, source in enumerate(sources)
        ]
        if host is not None and not any(_has_host(source) for source in _keys_of(target["sources"])):
            message = f"host: no source of {place} takes a host"
            draft.problems.append(draft.origin.problem((*here, _HOST), message, key=True))
        target["sources"] = _own(draft, (*there, "sources"), target["sources"], name, number, count)
    return target


def _source(
    draft: _Draft, path: Path, source: Plain, defaults: Mapping[str, Plain], host: Plain, registry: Registry
) -> Plain:
    """A source with the default keys of its poller, and the host of its target."""
    poller = source if isinstance(source, str) else next(iter(source), "") if isinstance(source, dict) else ""
    own = source.get(poller) if isinstance(source, dict) and len(source) == 1 else None
    if not poller or (isinstance(source, dict) and len(source) != 1) or not (own is None or isinstance(own, dict)):
        return source  # refused where sources are read
    keys: dict[str, Plain] = dict(own or {})
    common = defaults.get(poller)
    for key, value in common.items() if isinstance(common, dict) else ():
        if key not in keys:
            keys[key] = copy.deepcopy(value)
            draft.take(("defaults", poller, key), (*path, poller, key))
    if host is not None and _HOST not in keys and _takes_host(poller, registry):
        keys[_HOST] = host
        target = (path[0], path[1], _HOST)
        if target in draft.values:
            draft.values.setdefault((*path, poller, _HOST), draft.values[target])
            draft.keys.setdefault((*path, poller, _HOST), draft.keys.get(target, draft.values[target]))
    return {poller: keys} if keys else source


def _takes_host(poller: str, registry: Registry) -> bool:
    try:
        return _HOST in poller_module(poller, registry).config.model_fields
    except SoakwatchError:  # an unknown one is refused where sources are read
        return False


def _keys_of(sources: Plain) -> Iterator[Plain]:
    for source in sources if isinstance(sources, list) else ():
        yield next(iter(source.values()), None) if isinstance(source, dict) else None


def _has_host(keys: Plain) -> bool:
    return isinstance(keys, dict) and _HOST in keys


def _own(draft: _Draft, path: Path, value: Plain, name: str, number: int, count: int) -> Plain:
    """The texts of a target's sources with its own name and its own number of each range."""
    if isinstance(value, str):
        try:
            return _own_text(value, name, number, count)
        except _RangeError as error:
            line, column = draft.values.get(path, (0, 0))
            draft.problems.append(Problem(line, column, str(error)))
            return value
    if isinstance(value, dict):
        return {key: _own(draft, (*path, key), inner, name, number, count) for key, inner in value.items()}
    if isinstance(value, list):
        return [_own(draft, (*path, index), inner, name, number, count) for index, inner in enumerate(value)]
    return value
