"""What a plan allows ``soakwatch drill`` to break on a target: nothing, unless it is named."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated

from pydantic import BeforeValidator, Field, PlainValidator, WithJsonSchema

from soakwatch.core.units import Share, show_bytes, size
from soakwatch.core.validation import Short, shown
from soakwatch.plan.parts import NO, PlanModel, Text

_PROCESS = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@:+-]{0,62}")
_INTERFACE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@-]{0,14}")
_LISTENER = re.compile(r"[A-Za-z0-9_.\[\]:-]+:\d{1,5}")
_MOST = {"memory": 4 << 30, "filesystem": 1 << 30}
_MIB = 1 << 20


def _named(pattern: re.Pattern[str], what: str) -> Callable[[object], str]:
    def named(value: object) -> str:
        if not isinstance(value, str) or pattern.fullmatch(value) is None:
            raise ValueError(f"{shown(value)} is not the name of {what}: write the exact name, without a pattern")
        return value

    return named


def _bounded(key: str) -> Callable[[object], int]:
    def bounded(value: object) -> int:
        given = size(value)
        if not _MIB <= given <= _MOST[key]:
            raise ValueError(f"{key} {shown(value)}: write a size from 1 MiB to {show_bytes(_MOST[key])}")
        return int(given)

    return bounded


def _log(value: object) -> str:
    if isinstance(value, bool):
        return "host" if value else ""
    if not isinstance(value, str) or _LISTENER.fullmatch(value) is None:
        raise ValueError(f"log {shown(value)}: write true for the host's own log, or HOST:PORT of a syslog listener")
    return value


_SIZE = {"type": ["string", "integer"], "examples": ["64MiB"]}
Process = Annotated[str, BeforeValidator(_named(_PROCESS, "a process")), WithJsonSchema({"type": "string"})]
Interface = Annotated[str, BeforeValidator(_named(_INTERFACE, "an interface")), WithJsonSchema({"type": "string"})]
Memory = Annotated[int, BeforeValidator(_bounded("memory")), WithJsonSchema(_SIZE)]
Filesystem = Annotated[int, BeforeValidator(_bounded("filesystem")), WithJsonSchema(_SIZE)]
Log = Annotated[str, PlainValidator(_log, json_schema_input_type=bool | str)]


class VictimPlan(PlanModel):
    """A process that may be killed, and how it is started again.

    Without ``start`` its supervisor is expected to do that.
    """

    name: Annotated[Process, Field(description="exact name of the process; the first of that name is killed")]
    start: Annotated[Text | None, Field(description="shell command that starts it again; default: none")] = None


Victim = Annotated[VictimPlan, Short("name")]


class DrillPlan(PlanModel):
    """What soakwatch drill may break on a target; what is not named is left alone.

    Sizes are in bytes, None for not allowed; ``log`` is "" for no, "host" for the host's own log, else HOST:PORT.
    """

    processes: Annotated[
        tuple[Victim, ...], Field(max_length=16, description="processes that may be killed (kill -9)")
    ] = ()
    interfaces: Annotated[
        tuple[Interface, ...], Field(max_length=16, description="interfaces that may go down, and lose packets")
    ] = ()
    loss: Annotated[Share, Field(gt=0, le=1, description="share of packets that an interface loses")] = 0.1
    cpu: Annotated[bool, Field(description="every core may be kept busy")] = False
    memory: Annotated[Memory | None, Field(description="what a process may leak, 1 MiB to 4 GiB")] = None
    filesystem: Annotated[
        Filesystem | None, Field(description="size of a tmpfs of its own that may be filled, 1 MiB to 1 GiB")
    ] = None
    log: Annotated[
        Log,
        Field(
            description="a line on a crash may be written: to the host's log, or to a listener HOST:PORT",
            json_schema_extra=NO,
        ),
    ] = ""
