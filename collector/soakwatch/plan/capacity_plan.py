"""A search for the capacity as a plan writes it, and a load that is a share of what was found.

``{capacity: {loss: [0, 0.5%], at_most: 20m}}`` searches by RFC 9971 (MLRsearch) for the highest load of the driven
generators at which, for each loss ratio, at most that share is lost. ``load: 85% of capacity`` and ``load: 85% of
capacity at 0.5%`` are loads of later phases.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from soakwatch.core.units import plan_seconds, share
from soakwatch.core.yaml import Plain
from soakwatch.plan.parts import Duration, Offset, PlanModel

NAME = "capacity"
"""The phase in which the capacity is searched for."""
MAX_GOALS = 8
MAX_TRIAL_S = 86400.0
TRIAL_S, FIRST_TRIAL_S, TRIALS = 10.0, 2.0, 3
_OF = re.compile(r"(\S+)\s+of\s+capacity(?:\s+at\s+(\S+))?")
_SHARE: dict[str, Plain] = {"type": ["string", "number"]}


def _losses(value: object) -> tuple[float, ...]:
    listed = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    losses = [share(each) for each in listed]
    if not losses or len(losses) > MAX_GOALS:
        raise ValueError(f"{len(losses)} loss ratios: write one to {MAX_GOALS}, such as [0, 0.5%]")
    wrong = next((loss for loss in losses if not 0 <= loss < 1), None)
    if wrong is not None:
        raise ValueError(f"{wrong:g} is not a loss ratio: write 0 to less than 100%, such as 0.5%")
    if len(set(losses)) < len(losses):
        raise ValueError("a loss ratio is listed twice: remove one")
    return tuple(sorted(losses))


def _from(least: float, what: str) -> Callable[[object], float]:
    def ratio(value: object) -> float:
        number = share(value)
        if not least <= number < 1:
            raise ValueError(f"{number:g} is not {what}")
        return number

    return ratio


Losses = Annotated[
    tuple[float, ...],
    BeforeValidator(_losses),
    WithJsonSchema({"anyOf": [_SHARE, {"type": "array", "items": _SHARE, "minItems": 1, "maxItems": MAX_GOALS}]}),
]
Exceed = Annotated[
    float, BeforeValidator(_from(0, "a share of the trials: write 0 to less than 100%")), WithJsonSchema(_SHARE)
]
Width = Annotated[
    float, BeforeValidator(_from(0.0001, "a width: write 0.01% to less than 100%, such as 1%")), WithJsonSchema(_SHARE)
]
Level = Annotated[float, BeforeValidator(share), WithJsonSchema(_SHARE)]


class CapacityPlan(PlanModel):
    """A search for the highest load at which no more than some share is lost.

    In the words of RFC 9971, section 4: ``loss`` are the goal loss ratios, lowest first, ``exceed`` the goal exceed
    ratio, ``width`` the goal width, ``trial_s``, ``first_trial_s`` and ``sum_s`` the goal final and initial trial
    duration and the goal duration sum, in seconds; ``lowest`` and ``highest`` are the min and max load, where 1 is the
    generators' full rate. ``retry`` is not of the RFC: a published method tries a failed trial once more, because an
    interrupt loses a packet now and then.
    """

    loss: Annotated[Losses, Field(description="shares that may be lost; default: 0", examples=[[0, "0.5%"]])] = (0.0,)
    at_most_s: Annotated[Duration, Field(alias="at_most", description="longest time of the search")]
    exceed: Annotated[Exceed, Field(description="share of a load's trials that may lose more; default: 50%")] = 0.5
    width: Annotated[Width, Field(description="how far the bounds may lie apart, of the upper one; default: 1%")] = 0.01
    trial_s: Annotated[Offset, Field(alias="trial", description="longest trial; default: 10s")] = TRIAL_S
    first_trial_s: Annotated[
        Offset,
        Field(
            alias="first_trial",
            description="shortest trial; default: 2s",
        ),
    ] = Field(default_factory=lambda given: min(FIRST_TRIAL_S, given.get("trial_s", TRIAL_S)))
    sum_s: Annotated[
        Offset,
        Field(
            alias="sum",
            description="time of all trials that decide on a load; default: three trials",
        ),
    ] = Field(default_factory=lambda given: TRIALS * given.get("trial_s", TRIAL_S))
    lowest: Annotated[
        Level, Field(alias="min", description="lowest load, of the generators' full rate; default: 1%")
    ] = 0.01
    highest: Annotated[
        Level, Field(alias="max", description="highest load, of the generators' full rate; default: 100%")
    ] = 1.0
    settle_s: Annotated[Offset, Field(alias="settle", description="rest before counters are read; default: 2s")] = 2.0
    retry: Annotated[
        int,
        Field(
            ge=0,
            le=10,
            description="so often a trial that lost too much is tried again at the same load, the last try counts; "
            "default: 0",
            examples=[1],
        ),
    ] = 0

    @model_validator(mode="after")
    def _can_be_done(self) -> CapacityPlan:
        if not 0 < self.first_trial_s <= self.trial_s <= MAX_TRIAL_S:
            raise ValueError(
                "first_trial is longer than trial: trials become longer during the search, at most 24h each"
            )
        if self.sum_s < self.trial_s:
            raise ValueError("sum is shorter than trial: it is the time of all trials of one load")
        if not 0 <= self.settle_s <= 600:
            raise ValueError("settle: write 0s to 10m")
        if not 0 < self.lowest < self.highest <= 100:
            raise ValueError(
                "min and max: write shares of the full load with min below max, such as min: 1%, max: 100%"
            )
        if self.at_most_s < self.sum_s:
            raise ValueError(
                f"at_most: {plan_seconds(self.at_most_s)} is too short for the trials of one load (sum: "
                f"{plan_seconds(self.sum_s)}): a search needs about ten loads"
            )
        return self


@dataclass(frozen=True, slots=True)
class CapacityShare:
    """A load that is a share of the capacity at a loss ratio; None: at the lowest one that was searched for."""

    share: float
    loss: float | None = None

    def __str__(self) -> str:
        """As a plan writes it."""
        at = "" if self.loss is None else f" at {_percent(self.loss)}"
        return f"{_percent(self.share)} of capacity{at}"


def capacity_share(text: object) -> CapacityShare | None:
    """The share of the capacity that a load names; None for a load that names none. Raises ValueError.

    >>> capacity_share("85% of capacity at 0.5%")
    CapacityShare(share=0.85, loss=0.005)
    >>> capacity_share("85%")
    """
    match = _OF.fullmatch(" ".join(text.split())) if isinstance(text, str) else None
    if match is None:
        return None
    loss = None if match[2] is None else share(match[2])
    if loss is not None and not 0 <= loss < 1:
        raise ValueError(f"load: {text!r}: a loss ratio is from 0 to less than 100%")
    return CapacityShare(share(match[1]), loss)


def capacity_data(goal: CapacityPlan, length: str) -> dict[str, Plain]:
    """How a plan writes a search, with another longest time; only what it gives itself."""
    data: dict[str, Plain] = {"loss": [_percent(loss) for loss in goal.loss], "at_most": length}
    for name, field in CapacityPlan.model_fields.items():
        key = field.alias or name
        if name in goal.model_fields_set and key not in data:
            value = getattr(goal, name)
            data[key] = plan_seconds(value) if name.endswith("_s") else value if name == "retry" else _percent(value)
    return data


def loss_words(loss: float) -> str:
    """A loss ratio for people and as a label: ``0``, ``0.5%``.

    >>> loss_words(0.0), loss_words(0.005)
    ('0', '0.5%')
    """
    return _percent(loss) if loss else "0"


def _percent(value: float) -> str:
    return f"{100 * value:.10g}%"
