"""Where a run's samples are also written while it is running, as a plan says it: ``sinks: [{influxdb: {…}}]``.

The keys of a sink are those of its own ``Config`` (soakwatch.transfer.sinks.abc); it is looked up by name in the
folder of sinks and among the entry points of the group ``soakwatch.sinks``, as the config of a poller is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, JsonValue

from soakwatch.core.errors import PlanError
from soakwatch.core.registry import Registry
from soakwatch.core.validation import every
from soakwatch.plan.parts import PlanModel, PlanReading, made_of, named_part


class SinkConfig(PlanModel):
    """What every sink's keys are made from: it has none of its own."""


@dataclass(frozen=True, slots=True)
class SinkPlan:
    """One sink: its kind and its keys."""

    kind: str
    config: SinkConfig


def sink_config(name: str, registry: Registry) -> type[SinkConfig]:
    """The keys of the sink ``name``, imported now.

    Raises PlanError for an unknown name, with the nearest, and for a module that breaks the convention.
    """
    module = registry.sinks.module(name)
    config: object = getattr(module, "Config", None)
    if not (isinstance(config, type) and issubclass(config, SinkConfig)):
        raise PlanError(f"the sink {name!r} has no class Config made from SinkConfig: correct {module.__name__}")
    return config


def _sinks(listed: Annotated[list[JsonValue], Field(max_length=8)], context: PlanReading) -> tuple[SinkPlan, ...]:
    def sink(index: int, item: JsonValue) -> SinkPlan:
        place = context.inside("sinks", index)
        kind, config, _ = named_part(
            item, "a sink", "{influxdb: {url: …}}", lambda name: sink_config(name, context.registry), place
        )
        return SinkPlan(kind, config)

    return tuple(every(enumerate(listed), sink))


Sinks = Annotated[tuple[SinkPlan, ...], made_of(_sinks)]
