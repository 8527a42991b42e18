"""What every part of a plan is made of: the settings of its models, texts and durations, and how a part is read.

A part is read by its model. What that needs to know beside its value (the places in the file, what is installed) is the
context of the validation, a ``PlanReading``; what is wrong is collected from all parts and told together.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, TypeVar, get_type_hints

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    PlainValidator,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
)

from soakwatch.core.errors import PlanError
from soakwatch.core.registry import Registry
from soakwatch.core.suggest import hint
from soakwatch.core.units import DURATION_PATTERN, seconds
from soakwatch.core.validation import Wrong, every, problems, read_part, shown
from soakwatch.core.yaml import Document, Path, Plain, plan_error

M = TypeVar("M", bound=BaseModel)
R = TypeVar("R")
V = TypeVar("V")
_FOLDER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
EVENT_KIND = re.compile(r"[a-z][a-z0-9_-]*(\.[a-z0-9_-]+)*")
MAX_DURATION_S = 366 * 86400.0
DURATION_SCHEMA: dict[str, Plain] = {"type": "string", "pattern": DURATION_PATTERN, "examples": ["24h"]}

YES: dict[str, JsonValue] = {"default": True}
NO: dict[str, JsonValue] = {"default": False}
"""What the schema says of a default that a plan would write so."""


def _offset(value: object, info: ValidationInfo) -> float:
    """Seconds of a text with its unit. A plan is read as JSON; a program that makes the model itself gives seconds."""
    if info.mode == "python" and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return seconds(value)


def _duration(value: object, info: ValidationInfo) -> float:
    length = _offset(value, info)
    if not 0 < length <= MAX_DURATION_S:
        raise ValueError(f"{value!r} is not a valid duration: write more than 0s and at most 366d")
    return length


def command_words(value: object) -> tuple[str, ...]:
    """The words of a command: a list as it is, a text as a shell would split it. No shell ever sees them.

    >>> command_words('ssh dut "request chassis routing-engine master switch"')
    ('ssh', 'dut', 'request chassis routing-engine master switch')
    """
    if isinstance(value, str):
        try:
            value = shlex.split(value)
        except ValueError as error:
            raise ValueError(f"this command cannot be split into words ({str(error).lower()}): write a list") from None
    if not isinstance(value, list) or not value or not all(isinstance(word, str) for word in value) or not value[0]:
        raise ValueError(f'expected a command such as [ssh, dut, "show tech"], found {shown(value)}')
    if any("\0" in word for word in value):
        raise ValueError("a command cannot contain the character NUL: remove it")
    return tuple(value)


def _kind(value: object) -> str:
    if not isinstance(value, str) or EVENT_KIND.fullmatch(value) is None:
        raise ValueError(f"{shown(value)} is not a kind of event: write a lower-case word such as failover")
    return value


_WORDS_SCHEMA = {
    "anyOf": [
        {"type": "string", "minLength": 1},
        {"type": "array", "minItems": 1, "items": {"type": "string"}},
    ],
    "examples": [["ssh", "dut", "request chassis routing-engine master switch"]],
}

Duration = Annotated[float, BeforeValidator(_duration), WithJsonSchema(DURATION_SCHEMA)]
"""More than 0 s, at most 366 days."""
Offset = Annotated[float, BeforeValidator(_offset), WithJsonSchema(DURATION_SCHEMA)]
"""A time since the begin of something, or a length that may be 0 s."""
Kind = Annotated[str, BeforeValidator(_kind), WithJsonSchema({"type": "string", "pattern": f"^{EVENT_KIND.pattern}$"})]
Text = Annotated[str, Field(min_length=1)]
Words = Annotated[tuple[str, ...], BeforeValidator(command_words), WithJsonSchema(_WORDS_SCHEMA)]


def folder_name(value: object) -> str:
    """``value`` if it can be part of a folder's name; ValueError with the remedy otherwise."""
    if not isinstance(value, str):
        raise ValueError(f"expected text, found {shown(value)}; put it in quotes")
    if _FOLDER_NAME.fullmatch(value) is None:
        raise ValueError(
            f"{value!r} cannot be used as a name: start with a letter or digit, then use these or '.', '_', '-',"
            " at most 100 characters"
        )
    return value


_NAME_SCHEMA = {"type": "string", "pattern": f"^{_FOLDER_NAME.pattern}$"}
Name = Annotated[str, BeforeValidator(folder_name), WithJsonSchema(_NAME_SCHEMA)]


class PlanModel(BaseModel):
    """Settings of every model of the plan: unknown keys are errors, nothing is guessed, nothing changes later."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, validate_by_name=True, validate_by_alias=True)


@dataclass(frozen=True, slots=True)
class PlanReading:
    """What the validators of a plan know beside their value: the plan as it is written, the path of what they read, and
    what is installed."""

    document: Document
    registry: Registry
    at: Path = ()

    def inside(self, *keys: str | int) -> PlanReading:
        """The same for what is within."""
        return replace(self, at=(*self.at, *keys))

    @property
    def where(self) -> str:
        """Where the plan has it: ``plan.yaml:14:7``."""
        return self.document.where(self.at, key=True)

    @property
    def keys(self) -> Mapping[str, Plain]:
        """The keys of the plan, as they are written."""
        return self.document.data if isinstance(self.document.data, dict) else {}

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of the plan's targets, whatever is wrong with them."""
        targets = self.keys.get("targets")
        return tuple(targets) if isinstance(targets, dict) else ()


def reading(info: ValidationInfo) -> PlanReading:
    """The context of a validator of a plan."""
    if not isinstance(info.context, PlanReading):  # no assert: pydantic would take it for a mistake in the plan
        raise TypeError("a part of a plan is read with a Reading as its context")
    return info.context


def unknown_target(name: str | None, targets: Sequence[str], *place: str | int) -> list[Wrong]:
    """What is wrong with the key ``target`` of a thing at a place."""
    if name is None or name in targets:
        return []
    return [Wrong((*place, "target"), f"unknown target {name!r}{hint(name, targets)}")]


def one_key(value: object, what: str, example: str) -> tuple[str, JsonValue]:
    """Key and value of a mapping with one key, or of a bare word (value None); ValueError otherwise."""
    if isinstance(value, str):
        return value, None
    if not isinstance(value, Mapping) or len(value) != 1:
        shape = f"{len(value)} keys" if isinstance(value, Mapping) else shown(value)
        raise ValueError(f"{what} is one name with what belongs to it, such as {example}; found {shape}")
    return next(iter(value.items()))


def keys_of(model: type[BaseModel]) -> frozenset[str]:
    """The keys that a file may have for a model."""
    return frozenset(field.alias or name for name, field in model.model_fields.items())


def said(model: type[BaseModel], given: JsonValue) -> JsonValue:
    """The keys of a part without those of its model that have nothing behind them, which are as if they were absent."""
    if not isinstance(given, dict):
        return given
    known = keys_of(model)
    return {key: value for key, value in given.items() if value is not None or key not in known}


def named_part(
    item: JsonValue, what: str, example: str, model_of: Callable[[str], type[M]], context: PlanReading
) -> tuple[str, M, PlanReading]:
    """A source or sink: its name, its keys as the model of that name, and where it is. Raises ValueError."""
    name, keys = one_key(item, what, example)
    try:
        model = model_of(name)
    except PlanError as error:
        raise ValueError(str(error)) from None
    if isinstance(item, str):
        return name, read_part(model, {}, name), context
    (config,) = every([(name, {} if keys is None else keys)], lambda _, value: read_part(model, value, name))
    return name, config, context.inside(name)


def made_of(make: Callable[[V, PlanReading], R], schema: object = None) -> PlainValidator:
    """A validator that reads a value as the type that ``make`` takes, and makes of it what the plan holds. The JSON
    Schema is that of ``schema`` where this says more than the type."""
    kind = next(iter(get_type_hints(make, include_extras=True).values()))
    adapter: Callable[[], TypeAdapter[V]] = cache(lambda: TypeAdapter(kind))  # few plans have every part

    def made(value: object, info: ValidationInfo) -> R:
        return make(adapter().validate_python(value, strict=True), reading(info))

    return PlainValidator(made, json_schema_input_type=schema or kind)


def part_of(
    document: Document, registry: Registry, key: str, make: Callable[[dict[str, JsonValue], PlanReading], tuple[R, ...]]
) -> tuple[R, ...]:
    """What a plan has under one key, of which nothing else is read. Raises PlanError with all that is wrong with it."""
    context = PlanReading(document, registry)
    given = context.keys.get(key)
    if not isinstance(given, dict):
        return ()
    try:
        return make(given, context)
    except ValidationError as error:
        raise plan_error(document.origin, problems(document, (key,), PlanModel, error)) from None
