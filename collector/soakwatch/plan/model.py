"""The shape of a plan: keys, types and bounds, as pydantic models from which the JSON Schema is made.

What a plan says of sources and rules is only shaped here (a name and its keys); plan.py hands it on to the source's
own ``Config`` and to the rule's own parameters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated

from pydantic import BeforeValidator, Field, JsonValue, PlainValidator, WithJsonSchema, model_validator

from soakwatch.core.regex import user_regex
from soakwatch.core.validation import shown
from soakwatch.core.yaml import Plain
from soakwatch.plan.capacity import MAX_GOALS
from soakwatch.plan.capacity import NAME as CAPACITY
from soakwatch.plan.drill import DrillShape
from soakwatch.plan.event import EventShape
from soakwatch.plan.hook import HookPlan
from soakwatch.plan.notify import Notify
from soakwatch.plan.observer import ObserverShape
from soakwatch.plan.parts import DURATION_SCHEMA, Duration, Shape, Text
from soakwatch.plan.phase import EVENT_KIND, PHASES, PhasePlan, phase_of
from soakwatch.plan.web import WebShape
from soakwatch_model.roles import DUT, Role

INTERFACES_ALL = "all"

_FOLDER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_OWN_KEY = 1  # a source or a phase is one key and what belongs to it


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


def one_key(value: object, what: str, example: str) -> tuple[str, JsonValue]:
    """Key and value of a mapping with one key, or of a bare word (value None); ValueError otherwise."""
    if isinstance(value, str):
        return value, None
    if not isinstance(value, Mapping) or len(value) != _OWN_KEY:
        shape = f"{len(value)} keys" if isinstance(value, Mapping) else shown(value)
        raise ValueError(f"{what} is one name with what belongs to it, such as {example}; found {shape}")
    return next(iter(value.items()))


def _phase(value: object) -> PhasePlan:
    name, settings = one_key(value, "a phase", "{soak: 22h}")
    return phase_of(name, settings)


def _moment(value: object) -> datetime:
    example = "write date, time and zone, such as 2026-11-27T20:00:00Z"
    if not isinstance(value, str):
        raise ValueError(f"expected a time, found {shown(value)}: {example}")
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise ValueError(f"{value!r} is not an ISO 8601 time: {example}") from None
    if moment.tzinfo is None:
        raise ValueError(f"{value!r} has no zone: append Z for UTC, or an offset such as +02:00")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{value!r} is outside the calendar: {example}") from None


def process_data(text: str) -> Plain:
    """What a process in one word is, on the command line and in a plan: a name, a glob, or one of three other keys.

    >>> process_data("pid:12"), process_data("nginx*")
    ({'pid': 12}, 'nginx*')
    """
    how, colon, what = text.partition(":")
    if colon and how == "pid":
        return {how: int(what) if what.isdecimal() and len(what) < 10 else what}
    return {how: what} if colon and how in {"cmdline", "pidfile"} else text


def _process(value: object) -> object:
    if isinstance(value, str):
        value = process_data(value)
    return {"name": value} if isinstance(value, str) else value


def _interfaces(value: object) -> object:
    if value == INTERFACES_ALL:
        return [INTERFACES_ALL]
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise ValueError(f'expected all, or a list of names such as [eth0, "ens*"]; found {shown(value)}')
    return value


_PHASE_KEYS = {
    "type": "object",
    "properties": {
        "for": {**DURATION_SCHEMA, "description": "how long it lasts, at most"},
        "load": {
            "type": ["string", "number"],
            "examples": ["80%", "85% of capacity"],
            "description": "what driven generators send from its start, of their full rate or of the capacity found",
        },
        "until": {
            "type": "string",
            "pattern": rf"^(load|settled|event {EVENT_KIND.pattern})$",
            "description": "ends it early: load, settled, or event and its kind",
        },
    },
    "required": ["for"],
    "additionalProperties": False,
}
_SHARE = {"type": ["string", "number"]}
_CAPACITY_KEYS = {
    "type": "object",
    "properties": {
        "loss": {
            "anyOf": [_SHARE, {"type": "array", "items": _SHARE, "minItems": 1, "maxItems": MAX_GOALS}],
            "examples": [[0, "0.5%"]],
            "description": "shares that may be lost; default: 0",
        },
        "at_most": {**DURATION_SCHEMA, "description": "longest time of the search"},
        "exceed": {**_SHARE, "description": "share of a load's trials that may lose more; default: 50%"},
        "width": {**_SHARE, "description": "how far the bounds may lie apart, of the upper one; default: 1%"},
        "trial": {**DURATION_SCHEMA, "description": "longest trial; default: 10s"},
        "first_trial": {**DURATION_SCHEMA, "description": "shortest trial; default: 2s"},
        "sum": {**DURATION_SCHEMA, "description": "time of all trials that decide on a load; default: three trials"},
        "min": {**_SHARE, "description": "lowest load, of the generators' full rate; default: 1%"},
        "max": {**_SHARE, "description": "highest load, of the generators' full rate; default: 100%"},
        "settle": {**DURATION_SCHEMA, "description": "rest before counters are read; default: 2s"},
    },
    "required": ["at_most"],
    "additionalProperties": False,
}
_PHASE_SCHEMA = {
    "type": "object",
    "properties": {
        name: {"anyOf": [DURATION_SCHEMA, _CAPACITY_KEYS if name == CAPACITY else _PHASE_KEYS]} for name in PHASES
    },
    "additionalProperties": False,
    "minProperties": 1,
    "maxProperties": 1,
}
_NAME_SCHEMA = {"type": "string", "pattern": f"^{_FOLDER_NAME.pattern}$"}

Name = Annotated[str, BeforeValidator(folder_name), WithJsonSchema(_NAME_SCHEMA)]
PhaseItem = Annotated[PhasePlan, PlainValidator(_phase), WithJsonSchema(_PHASE_SCHEMA)]
Moment = Annotated[
    datetime, BeforeValidator(_moment), WithJsonSchema({"type": "string", "examples": ["2026-11-27T20:00:00Z"]})
]
Interfaces = Annotated[
    list[str],
    BeforeValidator(_interfaces),
    WithJsonSchema({"anyOf": [{"const": "all"}, {"type": "array", "items": {"type": "string", "minLength": 1}}]}),
]


class ProcessShape(Shape):
    """One watch: a name or glob, or one of pid, pidfile and cmdline with the name to show."""

    name: Annotated[Text | None, Field(description="name or glob of the process; with another key, the shown name")] = (
        None
    )
    pid: Annotated[int | None, Field(ge=1, le=2**22, description="the process with this number")] = None
    pidfile: Annotated[Text | None, Field(description="the process whose number is in this file")] = None
    cmdline: Annotated[Text | None, Field(description="regular expression that the command line matches")] = None

    @model_validator(mode="after")
    def _one_key(self) -> ProcessShape:
        keys = [key for key in ("pid", "pidfile", "cmdline") if getattr(self, key) is not None]
        if len(keys) > 1:
            raise ValueError(f"a process is watched by one key, not by {' and '.join(keys)}: keep one")
        if not keys and self.name is None:
            raise ValueError("no process is given: write a name, or one of pid, pidfile and cmdline")
        if self.cmdline is not None:
            user_regex(self.cmdline, "cmdline")
        return self


Process = Annotated[ProcessShape, BeforeValidator(_process)]


class WatchShape(Shape):
    """What is watched on a target."""

    processes: Annotated[list[Process] | None, Field(description="processes to watch")] = None
    interfaces: Annotated[Interfaces | None, Field(description="interfaces to watch; default: all")] = None


class TargetShape(Shape):
    """One target that is polled."""

    role: Annotated[
        Role,
        Field(description="device under test, what loads it, or what watches it"),
    ] = DUT
    shared: Annotated[
        bool,
        Field(description="other programs run on this machine too: growth of the machine as a whole only warns"),
    ] = False
    poll_mode: Annotated[
        list[Annotated[int, Field(ge=0)]] | bool,
        Field(description="cores that a driver polls with, such as [2, 3]; true: all that are alkeys busy"),
    ] = False
    sources: Annotated[list[JsonValue], Field(min_length=1, description="where its samples come from")]
    watch: Annotated[WatchShape | None, Field(description="overrides the plan's watch, key by key")] = None
    drill: Annotated[DrillShape | None, Field(description="what soakwatch drill may break here; default: nothing")] = (
        None
    )


class PlanShape(Shape):
    """The keys of a plan."""

    name: Annotated[Name, Field(description="name of the run; default: the file's name")]
    duration: Annotated[Duration | None, Field(description="length of the run; default: the sum of the phases")] = None
    phases: Annotated[list[PhaseItem] | None, Field(min_length=1, description="stretches of the run in order")] = None
    targets: Annotated[dict[Name, TargetShape], Field(min_length=1, description="what is polled")]
    watch: Annotated[WatchShape, Field(description="what is watched on every target")] = WatchShape()
    rules: Annotated[
        dict[str, JsonValue], Field(default_factory=dict, description="only what differs from the rules' defaults")
    ]
    start: Annotated[Moment | None, Field(description="calendar start with zone; default: at once")] = None
    events: Annotated[list[EventShape], Field(default_factory=list, description="planned events")]
    reference: Annotated[
        Text | None, Field(description="file of soakwatch calibrate; default: PLAN.reference.yaml beside the plan")
    ] = None
    baseline: Annotated[Text | None, Field(description="earlier run whose baseline is used")] = None
    hooks: Annotated[list[HookPlan], Field(default_factory=list, max_length=32, description="what findings set off")]
    notify: Annotated[
        list[Notify],
        Field(default_factory=list, max_length=8, description="who is notified of start, first failure and end"),
    ]
    stop_on_fail: Annotated[
        list[Text] | bool, Field(description="rules whose live failure ends the run; true: every rule")
    ] = False
    web: Annotated[WebShape | bool, Field(description="page and API of the run while it is running; false: none")] = (
        True
    )
    sinks: Annotated[
        list[JsonValue],
        Field(default_factory=list, max_length=8, description="databases that the record is copied to"),
    ]
    tenants: Annotated[JsonValue, Field(description="those who share the device: by name what is theirs")] = None
    observer: Annotated[
        ObserverShape | None, Field(description="pauses of polls, by which is found what they cost the devices")
    ] = None
    labels: Annotated[JsonValue, Field(description="by what runs are found and compared: texts by name")] = None
