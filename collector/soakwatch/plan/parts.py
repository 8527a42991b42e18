"""What every part of a plan's shape is made of: the settings of its models, texts, durations, and how errors show."""

from __future__ import annotations

import shlex
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from soakwatch.core.units import DURATION_PATTERN
from soakwatch.core.validation import shown
from soakwatch.plan.phase import EVENT_KIND, duration

DURATION_SCHEMA = {"type": "string", "pattern": DURATION_PATTERN, "examples": ["24h"]}


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

Duration = Annotated[float, BeforeValidator(duration), WithJsonSchema(DURATION_SCHEMA)]
Kind = Annotated[str, BeforeValidator(_kind), WithJsonSchema({"type": "string", "pattern": f"^{EVENT_KIND.pattern}$"})]
Text = Annotated[str, Field(min_length=1)]
Words = Annotated[tuple[str, ...], BeforeValidator(command_words), WithJsonSchema(_WORDS_SCHEMA)]


class Shape(BaseModel):
    """Settings of every model of the plan: unknown keys are errors, nothing is guessed, nothing changes later."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
