"""Where a run's samples are also written while it is running, as a plan says it: ``sinks: [{influxdb: {…}}]``.

The keys of a sink are those of its own ``Config`` (soakwatch.sinks.abc); it is looked up by name in the folder of sinks
and among the entry points of the group ``soakwatch.sinks``, as the config of a poller is.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from pydantic import ValidationError

from soakwatch.core.errors import PlanError
from soakwatch.core.registry import Registry
from soakwatch.core.validation import problems
from soakwatch.core.yaml import Document, Path, Problem
from soakwatch.plan.model import one_key
from soakwatch.plan.parts import Shape


class SinkConfig(Shape):
    """What every sink's keys are made from: it has none of its own."""


@dataclass(frozen=True, slots=True)
class SinkPlan:
    """One sink: its kind, its keys, and where the plan names it (``plan.yaml:14:7``)."""

    kind: str
    config: SinkConfig
    location: str = field(default="", compare=False)


def sink_config(name: str, registry: Registry) -> type[SinkConfig]:
    """The keys of the sink ``name``, imported now.

    Raises PlanError for an unknown name, with the nearest, and for a module that breaks the convention.
    """
    module = registry.sinks.module(name)
    config: object = getattr(module, "Config", None)
    if not (isinstance(config, type) and issubclass(config, SinkConfig)):
        raise PlanError(f"the sink {name!r} has no class Config made from SinkConfig: correct {module.__name__}")
    return config


def sinks_of(document: Document, registry: Registry) -> tuple[tuple[SinkPlan, ...], list[Problem]]:
    """The sinks of a plan in its order, and what is wrong with them; from plain data, as the sources are."""
    listed = document.data.get("sinks") if isinstance(document.data, dict) else None
    sinks: list[SinkPlan] = []
    wrong: list[Problem] = []
    for index, item in enumerate(listed if isinstance(listed, list) else ()):
        path: Path = ("sinks", index)
        try:
            name, keys = one_key(item, "a sink", "{influxdb: {url: …}}")
            model = sink_config(name, registry)
        except (ValueError, PlanError) as error:
            wrong.append(document.problem(path, str(error)))
            continue
        inner = (*path, name) if isinstance(item, dict) else path
        try:
            config = model.model_validate_json(json.dumps({} if keys is None else keys), strict=True)
        except ValidationError as error:
            wrong += problems(document, inner, model, error)
        else:
            sinks.append(SinkPlan(name, config, document.where(inner, key=True)))
    return tuple(sinks), wrong
