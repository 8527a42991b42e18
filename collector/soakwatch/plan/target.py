"""A target of a plan: its role, its sources, what is watched on it and what may be broken on it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Annotated

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    JsonValue,
    PlainValidator,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from soakwatch.core.regex import user_regex
from soakwatch.core.validation import Wrong, every, read_part, refused, shown
from soakwatch.core.yaml import Plain
from soakwatch.plan.drill_plan import DrillPlan
from soakwatch.plan.parts import NO, Name, PlanModel, Text, folder_name, reading
from soakwatch.plan.source_plan import Sources
from soakwatch.sources.abc import WatchedProcess
from soakwatch_model.roles import DUT, Role

_ALL = "all"


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


def _interfaces(value: object) -> tuple[str, ...]:
    if value == _ALL:
        return (_ALL,)
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise ValueError(f'expected all, or a list of names such as [eth0, "ens*"]; found {shown(value)}')
    return tuple(value)


def _cores(value: object) -> tuple[int, ...] | None:
    if isinstance(value, bool):
        return () if value else None
    numbers = value if isinstance(value, list) else [None]
    if not all(isinstance(core, int) and not isinstance(core, bool) and core >= 0 for core in numbers):
        raise ValueError(f"expected true, or the numbers of cores such as [2, 3]; found {shown(value)}")
    return tuple(numbers) or None


class ProcessPlan(PlanModel):
    """One watch: a name or glob, or one of pid, pidfile and cmdline with the name to show."""

    name: Annotated[Text | None, Field(description="name or glob of the process; with another key, the shown name")] = (
        None
    )
    pid: Annotated[int | None, Field(ge=1, le=2**22, description="the process with this number")] = None
    pidfile: Annotated[Text | None, Field(description="the process whose number is in this file")] = None
    cmdline: Annotated[Text | None, Field(description="regular expression that the command line matches")] = None

    @model_validator(mode="after")
    def _one_key(self) -> ProcessPlan:
        keys = [key for key in ("pid", "pidfile", "cmdline") if getattr(self, key) is not None]
        if len(keys) > 1:
            raise ValueError(f"a process is watched by one key, not by {' and '.join(keys)}: keep one")
        if not keys and self.name is None:
            raise ValueError("no process is given: write a name, or one of pid, pidfile and cmdline")
        if self.cmdline is not None:
            user_regex(self.cmdline, "cmdline")
        return self

    @property
    def watched(self) -> WatchedProcess:
        """What its target's sources look for."""
        if self.pid is not None:
            return WatchedProcess(self.name or f"pid:{self.pid}", "pid", str(self.pid))
        if self.pidfile is not None:
            return WatchedProcess(self.name or PurePath(self.pidfile).stem, "pidfile", self.pidfile)
        if self.cmdline is not None:
            return WatchedProcess(self.name or self.cmdline, "cmdline", self.cmdline)
        return WatchedProcess(self.name or "", "name", self.name or "")


def _distinct(processes: tuple[ProcessPlan, ...] | None) -> tuple[ProcessPlan, ...] | None:
    names = [process.watched.name for process in processes or ()]
    twins = [
        Wrong((index,), f"two watched processes are called {name!r}: rename one of them")
        for index, name in enumerate(names)
        if name in names[:index]
    ]
    if twins:
        raise refused(*twins)
    return processes


Process = Annotated[ProcessPlan, BeforeValidator(_process, json_schema_input_type=Text | ProcessPlan)]
Processes = Annotated[tuple[Process, ...] | None, AfterValidator(_distinct)]
Interfaces = Annotated[
    tuple[str, ...],
    BeforeValidator(_interfaces),
    WithJsonSchema({"anyOf": [{"const": _ALL}, {"type": "array", "items": {"type": "string", "minLength": 1}}]}),
]
Cores = Annotated[
    tuple[int, ...] | None,
    PlainValidator(_cores, json_schema_input_type=list[Annotated[int, Field(ge=0)]] | bool),
]


class WatchPlan(PlanModel):
    """What is watched on a target.

    None is what the plan does not say.
    """

    processes: Annotated[Processes, Field(description="processes to watch")] = None
    interfaces: Annotated[Interfaces | None, Field(description="interfaces to watch; default: all")] = None


class TargetKeys(PlanModel):
    """One target that is polled.

    ``poll_mode`` are the cores that a driver polls with; (): all that are always busy.
    """

    role: Annotated[Role, Field(description="device under test, what loads it, or what watches it")] = DUT
    shared: Annotated[
        bool,
        Field(description="other programs run on this machine too: growth of the machine as a whole only warns"),
    ] = False
    poll_mode: Annotated[
        Cores,
        Field(
            description="cores that a driver polls with, such as [2, 3]; true: all that are always busy",
            json_schema_extra=NO,
        ),
    ] = None
    sources: Annotated[Sources, Field(description="where its samples come from")]
    watch: Annotated[WatchPlan | None, Field(description="overrides the plan's watch, key by key")] = None
    drill: Annotated[DrillPlan | None, Field(description="what soakwatch drill may break here; default: nothing")] = (
        None
    )


class TargetPlan(TargetKeys):
    """A target with its name, and with all that is watched on it."""

    name: str
    watch: WatchPlan

    @property
    def processes(self) -> tuple[WatchedProcess, ...]:
        """The processes that are watched there."""
        return tuple(process.watched for process in self.watch.processes or ())

    @property
    def interfaces(self) -> tuple[str, ...] | None:
        """Globs of the interfaces that are watched there; None: all."""
        listed = self.watch.interfaces or ()
        return None if _ALL in listed else listed


def _targets(given: JsonValue, info: ValidationInfo) -> tuple[TargetPlan, ...]:
    if not isinstance(given, Mapping):
        raise ValueError(f"expected keys and values, found {shown(given)}")
    if not given:
        raise ValueError("is empty: at least one is needed")
    common = info.data.get("watch") or WatchPlan()
    context = reading(info)

    def target(name: str, keys: JsonValue) -> TargetPlan:
        try:
            folder_name(name)
        except ValueError as error:
            raise refused(Wrong((), str(error), key=True)) from None
        own = read_part(TargetKeys, keys, name, context.inside("targets", name))
        watch = own.watch or WatchPlan()
        processes = common.processes if watch.processes is None else watch.processes
        interfaces = common.interfaces if watch.interfaces is None else watch.interfaces
        whole = WatchPlan.model_construct(processes=processes or (), interfaces=interfaces or (_ALL,))
        return TargetPlan.model_construct(**{**dict(own), "name": name, "watch": whole})

    return tuple(every(given.items(), target))


Targets = Annotated[
    tuple[TargetPlan, ...],
    PlainValidator(_targets, json_schema_input_type=Annotated[dict[Name, TargetKeys], Field(min_length=1)]),
]
