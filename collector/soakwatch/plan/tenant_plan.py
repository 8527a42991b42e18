"""Tenants in a plan: who shares the device, and which ports, flows, interfaces and targets are whose."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated, Final, Literal

from pydantic import Field, JsonValue

from soakwatch.core.registry import Registry
from soakwatch.core.suggest import hint
from soakwatch.core.validation import Wrong, every, refused, shown
from soakwatch.core.yaml import Document
from soakwatch.plan.parts import PlanReading, made_of, part_of
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

_PATTERN = str | int
_THING = Annotated[
    dict[Literal[(TARGET, *LABELS)], _PATTERN | Annotated[list[_PATTERN], Field(min_length=1)]],  # type: ignore[valid-type]
    Field(min_length=1),
]
_NAMED = Annotated[
    dict[Annotated[str, Field(pattern=f"^{_NAME.pattern}$")], _THING | Annotated[list[_THING], Field(min_length=1)]],
    Field(
        min_length=_LEAST,
        max_length=MAX_TENANTS,
        examples=[{"red": {"flow": "red-*"}, "blue": [{"target": "tg", "port": 1}, {"interface": "eth2"}]}],
        json_schema_extra={"additionalProperties": False},
    ),
]


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


def tenants_in(document: Document, registry: Registry) -> tuple[TenantPlan, ...]:
    """The tenants of a plan, of which nothing else is read. Raises PlanError with all that is wrong with them."""
    return part_of(document, registry, "tenants", _tenants)


def _tenants(given: JsonValue, context: PlanReading) -> tuple[TenantPlan, ...]:
    if given is None:
        return ()
    if not isinstance(given, dict):
        raise ValueError(f"expected names with what is theirs, such as {{red: {_EXAMPLE}}}, found {shown(given)}")
    wrong = []
    if not _LEAST <= len(given) <= MAX_TENANTS:
        sentence = f"tenants: {len(given)} cannot be compared with each other: name 2 to {MAX_TENANTS}"
        wrong.append(Wrong((), sentence))
    tenants = every(given.items(), lambda name, value: _tenant(name, value, context.targets), *wrong)
    owners: dict[TenantItem, str] = {}
    for tenant in tenants:
        for item in tenant.items:
            if (owner := owners.setdefault(item, tenant.name)) != tenant.name:
                sentence = f"tenants: {tenant.name} and {owner} have the same things: they cannot be told apart"
                wrong.append(Wrong((tenant.name,), sentence))
    if wrong:
        raise refused(*wrong)
    return tuple(tenants)


def _tenant(name: str, value: JsonValue, targets: Sequence[str]) -> TenantPlan:
    wrong = []
    if _NAME.fullmatch(name) is None:
        sentence = f"tenants: {name!r} cannot be used as a name: letters, digits, '.', '_' and '-', at most 40"
        wrong.append(Wrong((), sentence, key=True))
    listed = value if isinstance(value, list) else [value]
    if not 0 < len(listed) <= MAX_ITEMS:
        wrong.append(Wrong((), f"tenants: {name}: give 1 to {MAX_ITEMS} things that are its own"))
    places = range(len(listed)) if isinstance(value, list) else (None,)
    items = every(zip(places, listed, strict=True), lambda _, item: _item(name, item, targets), *wrong)
    return TenantPlan(name, tuple(items))


def _item(name: str, item: JsonValue, targets: Sequence[str]) -> TenantItem:
    if not isinstance(item, dict) or not item:
        raise ValueError(
            f"tenants: {name}: expected labels of what is its own, such as {_EXAMPLE}, found {shown(item)}"
        )

    def patterns(key: str, value: JsonValue) -> tuple[str, tuple[str, ...]]:
        if key != TARGET and key not in LABELS:
            sentence = f"tenants: {name}: there is no label {key!r}{hint(key, (TARGET, *LABELS))}"
            raise refused(Wrong((), sentence, key=True))
        globs = tuple(_globs(value))
        if not globs or "" in globs:
            raise ValueError(f'tenants: {name}: {key} is a value, a pattern such as "eth1*", or a list of them')
        strangers = [g for g in globs if key == TARGET and not any(fnmatchcase(target, g) for target in targets)]
        if strangers:
            sentences = (f"tenants: {name}: there is no target {glob!r}{hint(glob, targets)}" for glob in strangers)
            raise refused(*(Wrong((), sentence) for sentence in sentences))
        return key, globs

    chosen = dict(every(item.items(), patterns))
    return TenantItem(chosen.pop(TARGET, ()), tuple(chosen.items()))


def _globs(value: JsonValue) -> Iterator[str]:
    """The patterns of a value; an empty one for what cannot be a pattern."""
    for one in value if isinstance(value, list) else [value]:
        yield str(one) if isinstance(one, str) or (isinstance(one, int) and not isinstance(one, bool)) else ""


Tenants = Annotated[tuple[TenantPlan, ...], made_of(_tenants, _NAMED)]
