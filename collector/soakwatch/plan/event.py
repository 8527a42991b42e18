"""A planned event as a plan writes it: what will happen, when and how often, which script does it, what is expected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field, model_validator

from soakwatch.core.suggest import hint
from soakwatch.core.units import Seconds, plan_seconds
from soakwatch.core.yaml import Document, Path, Problem
from soakwatch.plan.capacity import NAME as CAPACITY
from soakwatch.plan.expected import slip
from soakwatch.plan.parts import Duration, Kind, Shape, Text, Words
from soakwatch.plan.phase import PHASES, PhasePlan

TIMEOUT_S = 60.0
MIN_EVERY_S = 1.0


class EventShape(Shape):
    """One planned event: what will happen, when, what does it, and what is expected of it."""

    kind: Kind
    at: Annotated[Seconds, Field(ge=0, description="time from the start of the run, or of the phase")]
    every: Annotated[
        Duration | None, Field(ge=MIN_EVERY_S, description="happens again after this, to the end of run or phase")
    ] = None
    phase: Annotated[Text | None, Field(description="at counts from the begin of each phase of this name")] = None
    run: Annotated[Words | None, Field(description="command that makes it happen; run without a shell")] = None
    timeout: Annotated[Duration | None, Field(description="the command is killed after this; default: 60s")] = None
    lasts: Annotated[
        Duration | None, Field(description="how long it lasts; default: as long as its command runs, if it has one")
    ] = None
    within: Annotated[Duration | None, Field(description="the target must be back this long after its start")] = None
    expect: Annotated[
        dict[str, Annotated[int, Field(ge=0)]],
        Field(default_factory=dict, description="how many events of each kind it causes"),
    ]
    target: Annotated[Text | None, Field(description="target that it happens to; default: all")] = None

    @model_validator(mode="before")
    @classmethod
    def _from_the_phase(cls, data: object) -> object:
        """With a phase, ``at`` may be left out: at its begin."""
        return {"at": "0s", **data} if isinstance(data, dict) and data.get("phase") is not None else data

    @model_validator(mode="after")
    def _whole(self) -> EventShape:
        if self.timeout is not None and self.run is None:
            raise ValueError("timeout applies to a command: add run, or remove timeout")
        if self.every is not None and self.lasts is not None and self.lasts > self.every:
            raise ValueError("lasts is longer than every: an event cannot start again before it is over")
        return self


@dataclass(frozen=True, slots=True)
class EventPlan:
    """A scripted event; times are seconds, ``at_s`` from the begin of the run or of each phase called ``phase``,
    ``within_s`` from the event's. ``run`` is the command that makes it happen, without a shell; () where there is none.
    """

    kind: str
    at_s: float
    lasts_s: float | None = None
    within_s: float | None = None
    expect: Mapping[str, int] = field(default_factory=dict)
    target: str | None = None  # None = all
    every_s: float | None = None
    phase: str | None = None
    run: tuple[str, ...] = ()
    timeout_s: float = TIMEOUT_S

    @property
    def takes_s(self) -> float:
        """How long after its begin all of it is over, as far as the plan says."""
        return max(self.lasts_s or 0.0, self.within_s or 0.0)


def events_of(
    document: Document,
    shapes: Sequence[EventShape],
    duration: float,
    phases: Sequence[PhasePlan],
    targets: tuple[str, ...],
) -> tuple[tuple[EventPlan, ...], list[Problem]]:
    """The planned events, and what is wrong with them in view of the rest of the plan."""
    events: list[EventPlan] = []
    problems: list[Problem] = []
    own = {shape.kind for shape in shapes}
    for index, shape in enumerate(shapes):
        path: Path = ("events", index)
        timeout_s = TIMEOUT_S if shape.timeout is None else shape.timeout
        events.append(
            EventPlan(
                shape.kind,
                shape.at,
                shape.lasts,
                shape.within,
                dict(shape.expect),
                shape.target,
                shape.every,
                shape.phase,
                shape.run or (),
                timeout_s,
            )
        )
        slips = {kind: slip(kind, own) for kind in shape.expect}
        problems += [
            document.problem((*path, "expect", kind), message, key=True) for kind, message in slips.items() if message
        ]
        if shape.target is not None and shape.target not in targets:
            message = f"unknown target {shape.target!r}{hint(shape.target, targets)}"
            problems.append(document.problem((*path, "target"), message))
        if shape.phase == CAPACITY:
            message = "phase: an event in a search for the capacity would disturb its trials: put it in another phase"
            problems.append(document.problem((*path, "phase"), message))
            continue
        lengths = [phase.seconds for phase in phases if phase.name == shape.phase]
        if shape.phase is not None and not lengths:
            known = [phase.name for phase in phases]
            missing = "the plan has no phase" if shape.phase in PHASES else "unknown phase"
            problems.append(document.problem((*path, "phase"), f"{missing} {shape.phase!r}{hint(shape.phase, known)}"))
            continue
        problems += _too_late(document, path, shape, max(lengths, default=duration))
    return tuple(events), problems


def _too_late(document: Document, path: Path, shape: EventShape, length: float) -> list[Problem]:
    what = "the run" if shape.phase is None else shape.phase
    last = max((part, key) for key, part in (("lasts", shape.lasts or 0), ("within", shape.within or 0)))
    if length and shape.at >= length:
        message = f"at: {plan_seconds(shape.at)} is after the end of {what}, {plan_seconds(length)}"
        return [document.problem((*path, "at"), message)]
    if length and shape.phase is None and shape.at + last[0] > length:
        message = (
            f"{last[1]}: ends at {plan_seconds(shape.at + last[0])}, after the end of the run, {plan_seconds(length)}"
        )
        return [document.problem((*path, last[1]), message)]
    return []
