"""Calibration: the generators of a plan by themselves, looped back without the device, and what they could send."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from soakwatch.core.errors import PlanError
from soakwatch.core.roles import GENERATOR
from soakwatch.core.units import seconds, share, show_seconds
from soakwatch.core.yaml import Plain, dump, parse
from soakwatch.judge.ceiling import HELD_S, METRICS, Ceiling, NoCeiling, best, ceilings
from soakwatch.plan import Plan, TargetPlan, plan_from_text
from soakwatch.plan.phase import HIGHEST_LOAD, PhasePlan, phase_data
from soakwatch.record import RecordView
from soakwatch_rules.wording.words import quantity

LEAST_S = HELD_S + 5.0
"""A shorter step has no ten seconds of an even rate."""
_KEPT_KEYS = ("watch",)
_KEPT_ROLES = frozenset({GENERATOR, "monitor"})
_WARMING, _FULL, _UNDRIVEN = "ramp", "stress", "soak"


@dataclass(frozen=True, slots=True)
class Calibrated:
    """What one generator did: its ceilings, and why there are no others."""

    target: TargetPlan
    found: tuple[Ceiling | NoCeiling, ...]

    @property
    def ceilings(self) -> tuple[Ceiling, ...]:
        """The ceilings that were found."""
        return best(self.found)


def generators_of(plan: Plan) -> tuple[TargetPlan, ...]:
    """The generators of a plan. Raises PlanError if it names none."""
    found = tuple(target for target in plan.targets if target.role == GENERATOR)
    if not found:
        raise PlanError(
            f"{plan.origin}: no target has the role generator: give what loads the device role: generator, then "
            "calibrate it"
        )
    return found


def levels_of(text: str) -> tuple[float, ...]:
    """Levels as the command line takes them. Raises ValueError.

    >>> levels_of("50%, 100%")
    (0.5, 1.0)
    """
    found = tuple(share(part) for part in text.split(","))
    wrong = [level for level in found if not 0 < level <= HIGHEST_LOAD]
    if wrong or list(found) != sorted(set(found)):
        raise ValueError(f"{text!r} are no rising levels above 0: write 50%,100%")
    return found


def length_of(text: str) -> float:
    """How long each level is held, in seconds. Raises ValueError.

    >>> length_of("1m")
    60.0
    """
    length_s = seconds(text)
    if not LEAST_S <= length_s <= 86400:
        raise ValueError(
            f"{text!r} is no time for a level, since a rate is held for {HELD_S:g} s: write {LEAST_S:g}s to 24h"
        )
    return length_s


def calibration_of(plan: Plan, length_s: float, levels: Sequence[float]) -> Plan:
    """The plan of the calibration: its generators and monitors, driven through the levels where they can be.

    Each level lasts ``length_s``; the last is a phase of stress, in which the generator has to send what it is told.
    Undriven generators send what they send, for ``length_s``. Raises PlanError.
    """
    generators = generators_of(plan)
    told = parse(plan.text, plan.origin).data
    assert isinstance(told, dict)
    targets = told["targets"]
    assert isinstance(targets, dict)
    kept = {target.name for target in plan.targets if target.role in _KEPT_ROLES}
    driven = any(getattr(source.config, "drive", False) for target in generators for source in target.sources)
    if driven:
        phases = [PhasePlan(_WARMING, length_s, level) for level in levels[:-1]]
        phases.append(PhasePlan(_FULL, length_s, levels[-1]))
    else:
        phases = [PhasePlan(_UNDRIVEN, length_s)]
    data: dict[str, Plain] = {
        "name": f"{plan.name[:88]}-calibration",
        "phases": [phase_data(phase, f"{phase.seconds:.6f}".rstrip("0").rstrip(".") + "s") for phase in phases],
        "targets": {name: target for name, target in targets.items() if name in kept},
        **{key: told[key] for key in _KEPT_KEYS if key in told},
    }
    return plan_from_text(dump(data), plan.origin)


def driven_of(calibration: Plan) -> bool:
    """Whether a calibration drives its generators."""
    return any(phase.load is not None for phase in calibration.phases)


def calibrated(calibration: Plan, view: RecordView) -> tuple[Calibrated, ...]:
    """What each generator did, by the record of the calibration."""
    return tuple(
        Calibrated(target, ceilings(view.series(key) for key in view.keys(METRICS) if key.target == target.name))
        for target in generators_of(calibration)
    )


def sentences(one: Calibrated) -> tuple[str, ...]:
    """What was found of a generator, for people."""
    if not one.found:
        return (f"{one.target.name}: it told nothing that it sent: there is no ceiling",)
    return tuple(f"{one.target.name}: {_told(found)}" for found in one.found)


def _told(found: Ceiling | NoCeiling) -> str:
    if isinstance(found, NoCeiling):
        return found.reason
    own: Mapping[str, str | None] = {
        "lost": None if found.loss is None else quantity(found.loss, "1"),
        "CPU": None if found.cpu is None else quantity(found.cpu, "1"),
        "queue full": None if found.queue_full is None else f"{found.queue_full:.4g} times",
        "at level": None if found.level is None else f"{found.level:.0%}",
    }
    about = ", ".join(f"{name} {'not told' if text is None else text}" for name, text in own.items())
    held = show_seconds(round(found.window.seconds, 1))
    return f"{found.kind.name}: {quantity(found.rate, found.kind.unit)}, held for {held} ({about})"


def followed(one: Calibrated, highest: float) -> bool:
    """Whether a generator sent all that it was told up to the highest level: it may be able to send more."""
    return any(
        found.level is not None and found.level > highest * (1 - 1e-6) and not found.queue_full
        for found in one.ceilings
    )
