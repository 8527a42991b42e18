"""A phase as a plan writes it: ``soak: 22h``, or with the load that it asks for and the condition that ends it.

``{baseline: {for: 30m, until: load}}`` ends when the generator begins to send, ``{ramp: {for: 10m, until: settled}}``
when the device's levels stay where they are, ``{soak: {for: 4h, until: event failover}}`` when that event is told;
each after ``for`` at the latest, so that every run has an end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from soakwatch.core.suggest import hint
from soakwatch.core.units import seconds, share
from soakwatch.core.yaml import Plain

PHASES = ("baseline", "ramp", "soak", "stress", "spike", "recovery", "cooldown")
"""The stretches of a run that rules know."""
LONGEST_S = 366 * 86400.0
HIGHEST_LOAD = 100.0

UNTIL_LOAD, UNTIL_SETTLED, UNTIL_EVENT = "load", "settled", "event "
EVENT_KIND = re.compile(r"[a-z][a-z0-9_-]*(\.[a-z0-9_-]+)*")
_KEYS = ("for", "load", "until")
_UNTIL = "write load, settled, or event and its kind, such as event failover"


@dataclass(frozen=True, slots=True)
class PhasePlan:
    """A stretch of the run. ``load`` is what driven generators are told at its begin (1 = full, None = as before);
    ``until`` ends it early: ``load``, ``settled`` or ``event KIND``; "" where only the time ends it."""

    name: str
    seconds: float
    load: float | None = None
    until: str = ""

    @property
    def event(self) -> str:
        """The kind of event that ends it, or ""."""
        return self.until.removeprefix(UNTIL_EVENT) if self.until.startswith(UNTIL_EVENT) else ""


def phase_of(name: str, value: object) -> PhasePlan:
    """The phase that a plan writes as ``{name: value}``. Raises ValueError with the remedy.

    >>> phase_of("stress", {"for": "10m", "load": "120%"})
    PhasePlan(name='stress', seconds=600.0, load=1.2, until='')
    """
    if name not in PHASES:
        raise ValueError(f"unknown phase {name!r}{hint(name, PHASES)}")
    if value is None:
        raise ValueError(f"the phase {name!r} has no duration: write {name}: 30m")
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
    if phase.load is None and not phase.until:
        return {phase.name: length}
    told: dict[str, Plain] = {"for": length}
    if phase.load is not None:
        told["load"] = phase.load
    if phase.until:
        told["until"] = phase.until
    return {phase.name: told}


def duration(value: object) -> float:
    """Seconds of a stretch of a run. Raises ValueError."""
    length = seconds(value)
    if not 0 < length <= LONGEST_S:
        raise ValueError(f"{value!r} is not a duration of a run: it is longer than nothing and at most 366d")
    return length


def _load(value: object) -> float:
    level = share(value)
    if not 0 <= level <= HIGHEST_LOAD:
        raise ValueError(f"load: {value!r} is not a share of the full load: write 80%, 120%, or 0 for rest")
    return level


def _until(value: object) -> str:
    text = " ".join(value.split()) if isinstance(value, str) else ""
    kind = text.removeprefix(UNTIL_EVENT)
    if text in {UNTIL_LOAD, UNTIL_SETTLED} or (kind != text and EVENT_KIND.fullmatch(kind)):
        return text
    raise ValueError(f"until: {value!r} ends no phase: {_UNTIL}")
