"""A phase as a plan writes it: ``soak: 22h``, or with the load that it asks for and the condition that ends it.

``{baseline: {for: 30m, until: load}}`` ends when the generator begins to send, ``{ramp: {for: 10m, until: settled}}``
when the device's levels stay where they are, ``{soak: {for: 4h, until: event failover}}`` when that event is reported;
each after ``for`` at the latest, so that every run has an end. ``{capacity: {loss: 0, at_most: 20m}}`` ends when the
capacity is found (see ``capacity.py``); ``load: 85% of capacity`` is of what it found.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from soakwatch.core.suggest import hint
from soakwatch.core.units import seconds, share
from soakwatch.core.yaml import Plain
from soakwatch.plan.capacity import NAME as CAPACITY
from soakwatch.plan.capacity import CapacityPlan, CapacityShare, capacity_data, capacity_of, capacity_share

PHASES = ("baseline", "ramp", "soak", "stress", "spike", "recovery", "cooldown", CAPACITY)
"""The stretches of a run that rules know, and the search for the capacity, which most of them leave out."""
MAX_PHASE_S = 366 * 86400.0
MAX_LOAD = 100.0

UNTIL_LOAD, UNTIL_SETTLED, UNTIL_EVENT, UNTIL_FOUND = "load", "settled", "event ", "found"
Load = float | CapacityShare
"""A load of the plan: times the full rate, or a share of the capacity."""
EVENT_KIND = re.compile(r"[a-z][a-z0-9_-]*(\.[a-z0-9_-]+)*")
_KEYS = ("for", "load", "until")
_UNTIL = "write load, settled, or event and its kind, such as event failover"


@dataclass(frozen=True, slots=True)
class PhasePlan:
    """A stretch of the run. ``load`` is what driven generators are set to at its begin (1 = full, None = as before);
    ``until`` ends it early: ``load``, ``settled``, ``event KIND``, or ``found`` in a search for the capacity, whose
    goals ``search`` holds; "" where only the time ends it."""

    name: str
    seconds: float
    load: Load | None = None
    until: str = ""
    search: CapacityPlan | None = None

    @property
    def event(self) -> str:
        """The kind of event that ends it, or ""."""
        return self.until.removeprefix(UNTIL_EVENT) if self.until.startswith(UNTIL_EVENT) else ""


def phase_of(name: str, value: object) -> PhasePlan:
    """The phase that a plan writes as ``{name: value}``. Raises ValueError with the remedy.

    >>> phase_of("stress", {"for": "10m", "load": "120%"})
    PhasePlan(name='stress', seconds=600.0, load=1.2, until='', search=None)
    """
    if name not in PHASES:
        raise ValueError(f"unknown phase {name!r}{hint(name, PHASES)}")
    if value is None:
        raise ValueError(f"the phase {name!r} has no duration: write {name}: 30m")
    if name == CAPACITY:
        length_s, search = capacity_of(value if isinstance(value, Mapping) else {"at_most": value}, duration)
        return PhasePlan(name, length_s, None, UNTIL_FOUND, search)
    if not isinstance(value, Mapping):
        return PhasePlan(name, duration(value))
    unknown = next((key for key in value if key not in _KEYS), None)
    if unknown is not None:
        raise ValueError(f"unknown key {unknown!r} of the phase {name}{hint(str(unknown), _KEYS)}")
    if value.get("for") is None:
        raise ValueError(f"the phase {name!r} has no duration: write {name}: {{for: 30m}}")
    load, until = value.get("load"), value.get("until")
    return PhasePlan(
        name, duration(value["for"]), None if load is None else _load(load), "" if until is None else _until(until)
    )


def phase_data(phase: PhasePlan, length: str) -> Plain:
    """How a plan writes a phase, with another length."""
    if phase.search is not None:
        return {phase.name: capacity_data(phase.search, length)}
    if phase.load is None and not phase.until:
        return {phase.name: length}
    settings: dict[str, Plain] = {"for": length}
    if phase.load is not None:
        settings["load"] = str(phase.load) if isinstance(phase.load, CapacityShare) else phase.load
    if phase.until:
        settings["until"] = phase.until
    return {phase.name: settings}


def duration(value: object) -> float:
    """Seconds of a stretch of a run. Raises ValueError."""
    length = seconds(value)
    if not 0 < length <= MAX_PHASE_S:
        raise ValueError(f"{value!r} is not a valid duration: write more than 0s and at most 366d")
    return length


def _load(value: object) -> Load:
    try:
        relative = capacity_share(value)
        level = share(value) if relative is None else relative.share
    except ValueError:
        raise ValueError(
            f"load: {value!r} is not a load: write 80%, or 85% of capacity behind a capacity phase"
        ) from None
    if not 0 <= level <= MAX_LOAD:
        raise ValueError(f"load: {value!r} is not a share of the full load: write 80%, 120%, or 0 for no load")
    return level if relative is None else relative


def _until(value: object) -> str:
    text = " ".join(value.split()) if isinstance(value, str) else ""
    kind = text.removeprefix(UNTIL_EVENT)
    if text in {UNTIL_LOAD, UNTIL_SETTLED} or (kind != text and EVENT_KIND.fullmatch(kind)):
        return text
    raise ValueError(f"until: {value!r} cannot end a phase: {_UNTIL}")
