"""A planned event as a plan writes it: what will happen, when and how often, which script does it, what is expected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationInfo, model_validator

from soakwatch.core.suggest import hint
from soakwatch.core.units import plan_seconds
from soakwatch.core.validation import Wrong, refused
from soakwatch.plan.capacity_plan import NAME as CAPACITY
from soakwatch.plan.expected import slip
from soakwatch.plan.parts import Duration, Kind, Offset, PlanModel, Text, Words, reading, unknown_target
from soakwatch.plan.phase import PHASES, PhasePlan

TIMEOUT_S = 60.0
MIN_EVERY_S = 1.0


class EventPlan(PlanModel):
    """One planned event: what will happen, when, what does it, and what is expected of it.

    Times are seconds: ``at_s`` from the begin of the run, or of each phase called ``phase``; ``within_s`` from the
    event's own begin. ``run`` is a command without a shell. A ``target`` of None is all.
    """

    kind: Annotated[Kind, Field(description="what it is, in a word", examples=["failover"])]
    at_s: Annotated[Offset, Field(alias="at", ge=0, description="time from the start of the run, or of the phase")]
    every_s: Annotated[
        Duration | None,
        Field(alias="every", ge=MIN_EVERY_S, description="happens again after this, to the end of run or phase"),
    ] = None
    phase: Annotated[Text | None, Field(description="at counts from the begin of each phase of this name")] = None
    run: Annotated[Words | None, Field(description="command that makes it happen; run without a shell")] = None
    timeout: Annotated[Duration | None, Field(description="the command is killed after this; default: 60s")] = None
    lasts_s: Annotated[
        Duration | None,
        Field(alias="lasts", description="how long it lasts; default: as long as its command runs, if it has one"),
    ] = None
    within_s: Annotated[
        Duration | None, Field(alias="within", description="the target must be back this long after its start")
    ] = None
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
    def _whole(self) -> EventPlan:
        if self.timeout is not None and self.run is None:
            raise ValueError("timeout applies to a command: add run, or remove timeout")
        if self.every_s is not None and self.lasts_s is not None and self.lasts_s > self.every_s:
            raise ValueError("lasts is longer than every: an event cannot start again before it is over")
        return self

    @property
    def timeout_s(self) -> float:
        """When its command is killed."""
        return TIMEOUT_S if self.timeout is None else self.timeout

    @property
    def takes_s(self) -> float:
        """How long after its begin all of it is over, as far as the plan says."""
        return max(self.lasts_s or 0.0, self.within_s or 0.0)


def _fitting(events: tuple[EventPlan, ...], info: ValidationInfo) -> tuple[EventPlan, ...]:
    """The events, checked against the phases and targets of the plan."""
    own = {event.kind for event in events}
    phases = info.data.get("phases")
    wrong: list[Wrong] = []
    for index, event in enumerate(events):
        slips = {kind: slip(kind, own) for kind in event.expect}
        wrong += [Wrong((index, "expect", kind), message, key=True) for kind, message in slips.items() if message]
        wrong += unknown_target(event.target, reading(info).targets, index)
        wrong += (
            [each._replace(place=(index, *each.place)) for each in _untimely(event, phases or ())] if phases else []
        )
    if wrong:
        raise refused(*wrong)
    return events


def _untimely(event: EventPlan, phases: Sequence[PhasePlan]) -> list[Wrong]:
    if event.phase == CAPACITY:
        sentence = "phase: an event in a search for the capacity would disturb its trials: put it in another phase"
        return [Wrong(("phase",), sentence)]
    lengths = [phase.seconds for phase in phases if phase.name == event.phase]
    if event.phase is not None and not lengths:
        missing = "the plan has no phase" if event.phase in PHASES else "unknown phase"
        known = hint(event.phase, [phase.name for phase in phases])
        return [Wrong(("phase",), f"{missing} {event.phase!r}{known}")]
    length = max(lengths, default=sum(phase.seconds for phase in phases))
    what = "the run" if event.phase is None else event.phase
    if event.at_s >= length:
        sentence = f"at: {plan_seconds(event.at_s)} is after the end of {what}, {plan_seconds(length)}"
        return [Wrong(("at",), sentence)]
    last = max((part, key) for key, part in (("lasts", event.lasts_s or 0), ("within", event.within_s or 0)))
    if event.phase is None and event.at_s + last[0] > length:
        end, limit = plan_seconds(event.at_s + last[0]), plan_seconds(length)
        return [Wrong((last[1],), f"{last[1]}: ends at {end}, after the end of the run, {limit}")]
    return []


Events = Annotated[tuple[EventPlan, ...], AfterValidator(_fitting)]
