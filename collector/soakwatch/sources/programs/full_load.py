"""The full load of a driven program: ``full: 500/s`` or ``full: 50 users``, of which a phase's ``load`` is a share."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema

Unit = Literal["rate", "users"]
_PER_SECOND = ("/s", "/sec", "per second", "rps")
_USERS = ("user", "vu", "thread", "connection")
_FORM = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*([a-z/ ]{1,24})")
_EXAMPLE = "write a rate, such as 500/s, or a number of users, such as 50 users"


@dataclass(frozen=True, slots=True)
class FullLoad:
    """What is sent at level 1: so many a second, or by so many users at once."""

    value: float
    unit: Unit
    word: str = field(default="users", compare=False)

    def at(self, level: float) -> float:
        """What is sent at a level; users are whole, and one at least."""
        return self.value * level if self.unit == "rate" else float(max(1, round(self.value * level)))

    def __str__(self) -> str:
        return f"{self.value:g}/s" if self.unit == "rate" else f"{self.value:g} {self.word}"


def full_load(value: object) -> FullLoad:
    """Parses a full load. Raises ValueError with an example.

    >>> str(full_load("500/s")), str(full_load("64 connections")), full_load("64 connections").at(0.25)
    ('500/s', '64 connections', 16.0)
    """
    if isinstance(value, FullLoad):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise ValueError(f"{value} does not say of what: {_EXAMPLE}")
    match = _FORM.fullmatch(value.strip().lower()) if isinstance(value, str) else None
    unit: Unit | None = None
    if match is not None:
        name = match[2].strip()
        unit = "rate" if name in _PER_SECOND else "users" if name.removesuffix("s") in _USERS else None
    if match is None or unit is None:
        raise ValueError(f"{value!r} is not a load: {_EXAMPLE}")
    full = FullLoad(float(match[1]), unit, match[2].strip())
    if full.value <= 0:
        raise ValueError(f"{value!r} sends nothing: {_EXAMPLE}")
    if unit == "users" and full.value != int(full.value):
        raise ValueError(f"{value!r} has a part of a user: write a whole number")
    return full


Full = Annotated[
    FullLoad,
    PlainValidator(full_load),
    PlainSerializer(str),
    WithJsonSchema({"type": "string", "examples": ["500/s", "50 users"]}),
]
"""A full load in a plan."""
