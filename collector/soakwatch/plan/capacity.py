"""A search for the capacity as a plan writes it, and a load that is a share of what was found.

``{capacity: {loss: [0, 0.5%], at_most: 20m}}`` searches by RFC 9971 (MLRsearch) for the highest load of the driven
generators at which, for each loss ratio, at most that share is lost. ``load: 85% of capacity`` and ``load: 85% of
capacity at 0.5%`` are loads of later phases.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields

from soakwatch.core.suggest import hint
from soakwatch.core.units import plan_seconds, seconds, share
from soakwatch.core.yaml import Plain

NAME = "capacity"
"""The phase in which the capacity is searched for."""
MAX_GOALS = 8
MAX_TRIAL_S = 86400.0
_OF = re.compile(r"(\S+)\s+of\s+capacity(?:\s+at\s+(\S+))?")
_EXAMPLE = "write capacity: {loss: [0, 0.5%], at_most: 20m}"


@dataclass(frozen=True, slots=True)
class CapacityPlan:
    """What is searched for, in the words of RFC 9971, section 4.

    ``loss``: goal loss ratios, lowest first. ``exceed``: goal exceed ratio, the share of a load's trials that may lose
    more. ``width``: goal width, how far the bounds may lie apart, of the upper one. ``trial_s``, ``first_trial_s`` and
    ``sum_s``: goal final and initial trial duration and goal duration sum, in seconds. ``lowest`` and ``highest``: min
    and max load, where 1 is the generators' full rate. ``settle_s``: the rest before counters are read, in seconds.
    """

    loss: tuple[float, ...] = (0.0,)
    exceed: float = 0.5
    width: float = 0.01
    trial_s: float = 10.0
    first_trial_s: float = 2.0
    sum_s: float = 30.0
    lowest: float = 0.01
    highest: float = 1.0
    settle_s: float = 2.0


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


def capacity_of(value: Mapping[str, object], duration: Callable[[object], float]) -> tuple[float, CapacityPlan]:
    """How long the search may take, and what it searches for. Raises ValueError with the remedy.

    >>> capacity_of({"loss": "0.5%", "at_most": "20m"}, seconds)[1].loss
    (0.005,)
    """
    unknown = next((key for key in value if key not in _KEYS), None)
    if unknown is not None:
        raise ValueError(f"unknown key {unknown!r} of the phase capacity{hint(str(unknown), _KEYS)}")
    if value.get("at_most") is None:
        raise ValueError(f"the phase 'capacity' has no longest time: {_EXAMPLE}")
    at_most_s = duration(value["at_most"])
    given = {name: _value(key, name, value[key]) for key, name in _KEYS.items() if name and value.get(key) is not None}
    losses = _losses(value["loss"]) if value.get("loss") is not None else CapacityPlan().loss
    lengths = {name: given[name] for name in ("trial_s", "first_trial_s", "sum_s") if name in given}
    default = CapacityPlan()
    trial_s = lengths.get("trial_s", default.trial_s)
    goal = CapacityPlan(
        losses,
        given.get("exceed", default.exceed),
        given.get("width", default.width),
        trial_s,
        lengths.get("first_trial_s", min(default.first_trial_s, trial_s)),
        lengths.get("sum_s", 3 * trial_s),
        given.get("lowest", default.lowest),
        given.get("highest", default.highest),
        given.get("settle_s", default.settle_s),
    )
    _check(goal, at_most_s)
    return at_most_s, goal


def capacity_data(goal: CapacityPlan, length: str) -> dict[str, Plain]:
    """How a plan writes a search, with another longest time; only what differs from the defaults."""
    default = CapacityPlan(sum_s=3 * goal.trial_s)
    data: dict[str, Plain] = {"loss": [_percent(loss) for loss in goal.loss], "at_most": length}
    for field in fields(CapacityPlan):
        value = getattr(goal, field.name)
        if field.name == "loss" or value == getattr(default, field.name):
            continue
        key = next(key for key, name in _KEYS.items() if name == field.name)
        data[key] = plan_seconds(value) if field.name.endswith("_s") else _percent(value)
    return data


def loss_words(loss: float) -> str:
    """A loss ratio for people and as a label: ``0``, ``0.5%``.

    >>> loss_words(0.0), loss_words(0.005)
    ('0', '0.5%')
    """
    return _percent(loss) if loss else "0"


_KEYS = {
    "loss": "",
    "at_most": "",
    "exceed": "exceed",
    "width": "width",
    "trial": "trial_s",
    "first_trial": "first_trial_s",
    "sum": "sum_s",
    "min": "lowest",
    "max": "highest",
    "settle": "settle_s",
}


def _percent(value: float) -> str:
    return f"{100 * value:.10g}%"


def _value(key: str, name: str, value: object) -> float:
    try:
        return seconds(value) if name.endswith("_s") else share(value)
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from None


def _losses(value: object) -> tuple[float, ...]:
    listed = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    try:
        losses = [share(each) for each in listed]
    except ValueError as error:
        raise ValueError(f"loss: {error}") from None
    if not losses or len(losses) > MAX_GOALS:
        raise ValueError(f"loss: {len(losses)} loss ratios: write one to {MAX_GOALS}, such as [0, 0.5%]")
    wrong = next((loss for loss in losses if not 0 <= loss < 1), None)
    if wrong is not None:
        raise ValueError(f"loss: {wrong:g} is not a loss ratio: write 0 to less than 100%, such as 0.5%")
    if len(set(losses)) < len(losses):
        raise ValueError("loss: a loss ratio is listed twice: remove one")
    return tuple(sorted(losses))


def _check(goal: CapacityPlan, at_most_s: float) -> None:
    if not 0 <= goal.exceed < 1:
        raise ValueError(f"exceed: {goal.exceed:g} is not a share of the trials: write 0 to less than 100%")
    if not 0.0001 <= goal.width < 1:
        raise ValueError(f"width: {goal.width:g} is not a width: write 0.01% to less than 100%, such as 1%")
    if not 0 < goal.first_trial_s <= goal.trial_s <= MAX_TRIAL_S:
        raise ValueError("first_trial is longer than trial: trials become longer during the search, at most 24h each")
    if goal.sum_s < goal.trial_s:
        raise ValueError("sum is shorter than trial: it is the time of all trials of one load")
    if not 0 <= goal.settle_s <= 600:
        raise ValueError("settle: write 0s to 10m")
    if not 0 < goal.lowest < goal.highest <= 100:
        raise ValueError("min and max: write shares of the full load with min below max, such as min: 1%, max: 100%")
    if at_most_s < goal.sum_s:
        raise ValueError(
            f"at_most: {plan_seconds(at_most_s)} is too short for the trials of one load (sum: "
            f"{plan_seconds(goal.sum_s)}): a search needs about ten loads"
        )
