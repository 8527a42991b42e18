"""Tenants in a plan: who shares the device, and which ports, flows, interfaces and targets are whose."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from soakwatch.core.suggest import hint
from soakwatch.core.validation import shown
from soakwatch.core.yaml import Document, Path, Plain, Problem
from soakwatch_model.label import label
from soakwatch_model.metric import BY_NAME

MAX_TENANTS: Final = 64
MAX_ITEMS: Final = 64
TARGET: Final = "target"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
_LEAST = 2
_EXAMPLE = "{target: tg, port: 0}"
LABELS: Final = tuple(sorted({name for metric in BY_NAME.values() for name in metric.labels}))
"""The labels of the catalogue, by which objects are chosen."""

TENANTS_SCHEMA: Final[dict[str, Plain]] = {
    "type": "object",
    "minProperties": _LEAST,
    "maxProperties": MAX_TENANTS,
    "propertyNames": {"pattern": f"^{_NAME.pattern}$"},
    "additionalProperties": {
        "anyOf": [{"$ref": "#/$defs/tenant"}, {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/tenant"}}]
    },
    "description": "those who share the device: by name what is theirs, by target and labels",
    "examples": [{"red": {"flow": "red-*"}, "blue": [{"target": "tg", "port": 1}, {"interface": "eth2"}]}],
}
"""What an editor holds the tenants of a plan against; ``TENANT_SCHEMA`` is one item of them."""
_PATTERN_SCHEMA: Final[dict[str, Plain]] = {"type": ["string", "integer"]}
TENANT_SCHEMA: Final[dict[str, Plain]] = {
    "type": "object",
    "minProperties": 1,
    "propertyNames": {"enum": [TARGET, *LABELS]},
    "additionalProperties": {"anyOf": [_PATTERN_SCHEMA, {"type": "array", "minItems": 1, "items": _PATTERN_SCHEMA}]},
}


@dataclass(frozen=True, slots=True)
class TenantItem:
    """One thing of a tenant: objects whose labels all match one of their globs, on targets that do; () is any."""

    targets: tuple[str, ...]
    labels: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def has(self, target: str, name: str) -> bool:
        """Whether an object of a target is part of it.

        >>> TenantItem(("tg",), (("port", ("0", "1")),)).has("tg", "port=1")
        True
        """
        if self.targets and not any(fnmatchcase(target, glob) for glob in self.targets):
            return False
        return all(
            (value := label(name, key)) is not None and any(fnmatchcase(value, glob) for glob in globs)
            for key, globs in self.labels
        )


@dataclass(frozen=True, slots=True)
class TenantPlan:
    """A tenant and what is its own: whatever one of the items has."""

    name: str
    items: tuple[TenantItem, ...]

    def has(self, target: str, name: str) -> bool:
        """Whether an object of a target is this tenant's."""
        return any(item.has(target, name) for item in self.items)


def tenants_of(
    document: Document, targets: Sequence[str] | None = None
) -> tuple[tuple[TenantPlan, ...], list[Problem]]:
    """The tenants of a plan in its order, and what is wrong with them; ``targets`` are those that the plan has."""
    given = document.data.get("tenants") if isinstance(document.data, dict) else None
    if given is None:
        return (), []
    if not isinstance(given, dict):
        sentence = f"tenants: expected names with what is theirs, such as {{red: {_EXAMPLE}}}, found {shown(given)}"
        return (), [document.problem(("tenants",), sentence)]
    wrong: list[Problem] = []
    if not _LEAST <= len(given) <= MAX_TENANTS:
        sentence = f"tenants: {len(given)} cannot be compared with each other: name 2 to {MAX_TENANTS}"
        wrong.append(document.problem(("tenants",), sentence))
    tenants = []
    for name, value in given.items():
        path: Path = ("tenants", name)
        if _NAME.fullmatch(name) is None:
            sentence = f"tenants: {name!r} cannot be used as a name: letters, digits, '.', '_' and '-', at most 40"
            wrong.append(document.problem(path, sentence, key=True))
        items = []
        listed = value if isinstance(value, list) else [value]
        if not 0 < len(listed) <= MAX_ITEMS:
            wrong.append(document.problem(path, f"tenants: {name}: give 1 to {MAX_ITEMS} things that are its own"))
        for index, item in enumerate(listed):
            inner: Path = (*path, index) if isinstance(value, list) else path
            planned, problems = _item(document, inner, name, item, targets)
            wrong += problems
            items += [] if planned is None else [planned]
        tenants.append(TenantPlan(name, tuple(items)))
    wrong += _shared(document, tenants)
    return tuple(tenants), wrong


def _item(
    document: Document, path: Path, name: str, item: Plain, targets: Sequence[str] | None
) -> tuple[TenantItem | None, list[Problem]]:
    if not isinstance(item, dict) or not item:
        sentence = f"tenants: {name}: expected labels of what is its own, such as {_EXAMPLE}, found {shown(item)}"
        return None, [document.problem(path, sentence)]
    wrong: list[Problem] = []
    chosen: dict[str, tuple[str, ...]] = {}
    for key, value in item.items():
        if key != TARGET and key not in LABELS:
            near = hint(key, (TARGET, *LABELS))
            sentence = f"tenants: {name}: there is no label {key!r}{near}"
            wrong.append(document.problem((*path, key), sentence, key=True))
            continue
        globs = tuple(_globs(value))
        if not globs or "" in globs:
            sentence = f'tenants: {name}: {key} is a value, a pattern such as "eth1*", or a list of them'
            wrong.append(document.problem((*path, key), sentence))
        chosen[key] = globs
    for glob in chosen.get(TARGET, ()) if targets is not None else ():
        if not any(fnmatchcase(target, glob) for target in targets or ()):
            sentence = f"tenants: {name}: there is no target {glob!r}{hint(glob, targets or ())}"
            wrong.append(document.problem((*path, TARGET), sentence))
    labels = tuple((key, globs) for key, globs in chosen.items() if key != TARGET)
    return TenantItem(chosen.get(TARGET, ()), labels), wrong


def _globs(value: Plain) -> Iterator[str]:
    """The patterns of a value; an empty one for what cannot be a pattern."""
    for one in value if isinstance(value, list) else [value]:
        yield str(one) if isinstance(one, str) or (isinstance(one, int) and not isinstance(one, bool)) else ""


def _shared(document: Document, tenants: Sequence[TenantPlan]) -> Iterator[Problem]:
    """What two tenants are both given, word for word."""
    owners: dict[TenantItem, str] = {}
    for tenant in tenants:
        for item in tenant.items:
            if (owner := owners.setdefault(item, tenant.name)) != tenant.name:
                sentence = f"tenants: {tenant.name} and {owner} have the same things: they cannot be told apart"
                yield document.problem(("tenants", tenant.name), sentence)
