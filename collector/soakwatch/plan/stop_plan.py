"""When a run ends before its planned end: ``stop_when: decided``, or ``stop_when: {decided: {not_before: 8h}}``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from soakwatch.core.registry import Registry
from soakwatch.core.yaml import Document
from soakwatch.plan.parts import Duration, PlanModel, PlanReading, made_of

DECIDED = "decided"


class DecidedKeys(PlanModel):
    """The end of a run once every required rule has its final answer."""

    not_before_s: Annotated[
        Duration | None,
        Field(
            alias="not_before",
            description="time for which the device may warm up: no growth fails before; default: two thirds of the run",
        ),
    ] = None


class StopKeys(PlanModel):
    """What ends a run before its planned end."""

    decided: Annotated[DecidedKeys, Field(description="every required rule has its final answer")]


def _stop_when(given: Literal["decided"] | StopKeys, context: PlanReading) -> DecidedKeys:
    del context
    return DecidedKeys() if given == DECIDED or not isinstance(given, StopKeys) else given.decided


StopWhen = Annotated[DecidedKeys, made_of(_stop_when)]
"""What ends a run early."""


def stop_in(document: Document, registry: Registry) -> DecidedKeys | None:
    """What ends a run early, by its plan, of which nothing else is read; None if nothing does."""
    given = PlanReading(document, registry).keys.get("stop_when")
    if given is None:
        return None
    if isinstance(given, dict):
        return StopKeys.model_validate(given).decided
    return DecidedKeys()
