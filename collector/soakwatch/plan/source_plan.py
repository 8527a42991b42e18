"""The sources of a target: where its samples come from, with the keys of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field, JsonValue

from soakwatch.core.validation import every
from soakwatch.plan.parts import PlanReading, made_of, named_part
from soakwatch.sources.abc import SourceConfig
from soakwatch.sources.source_modules import poller_module


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """One source of a target: the poller or load, its keys, and where the plan names it (``plan.yaml:14:7``)."""

    poller: str
    config: SourceConfig
    location: str = field(default="", compare=False)


def _sources(listed: Annotated[list[JsonValue], Field(min_length=1)], context: PlanReading) -> tuple[SourcePlan, ...]:
    read: list[SourcePlan] = []

    def source(index: int, item: JsonValue) -> None:
        plan = _source(item, context.inside("sources", index))
        twin = any(_same_question(plan, other) for other in read)
        read.append(plan)
        if twin:
            raise ValueError(f"{plan.poller}: this source is listed twice with the same keys: remove one")

    every(enumerate(listed), source)
    return tuple(read)


def _source(item: JsonValue, context: PlanReading) -> SourcePlan:
    name, config, place = named_part(
        item, "a source", "{local: {interval: 1s}}", lambda name: poller_module(name, context.registry).config, context
    )
    return SourcePlan(name, config, place.where)


def _same_question(first: SourcePlan, other: SourcePlan) -> bool:
    # The same question asked at two intervals would put two answers into one series.
    pace = set(SourceConfig.model_fields)
    asked = [plan.config.model_dump(exclude=pace) for plan in (first, other)]
    return first.poller == other.poller and asked[0] == asked[1]


Sources = Annotated[tuple[SourcePlan, ...], made_of(_sources)]


def labelled(sources: Sequence[SourcePlan]) -> list[tuple[str, SourcePlan]]:
    """Each source with a label of its own: the poller's name, numbered from the second of its kind on."""
    seen: Counter[str] = Counter()
    pairs = []
    for source in sources:
        seen[source.poller] += 1
        number = seen[source.poller]
        pairs.append((source.poller if number == 1 else f"{source.poller}-{number}", source))
    return pairs
