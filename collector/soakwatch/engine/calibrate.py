"""Calibration: runs a plan's generators looped back, without the device, to find how much they can send."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from soakwatch.core.errors import PlanError
from soakwatch.core.units import seconds, share, show_seconds
from soakwatch.core.yaml import Plain, dump, parse
from soakwatch.judge.ceiling import HELD_S, METRICS, Ceiling, NoCeiling, best, ceilings
from soakwatch.plan import Plan, TargetPlan, plan_from_text
from soakwatch.plan.phase import MAX_LOAD, PhasePlan, phase_data
from soakwatch.record import RecordView
from soakwatch_model.roles import GENERATOR, MONITOR
from soakwatch_rules.wording.quantities import quantity

MIN_LEVEL_S = HELD_S + 5.0
"""A shorter step holds no ten seconds of a steady rate."""
_KEPT_KEYS = ("watch",)
_KEPT_ROLES = frozenset({GENERATOR, MONITOR})
_WARMING, _FULL, _UNDRIVEN = "ramp", "stress", "soak"


@dataclass(frozen=True, slots=True)
class Calibrated:
    """The result of one generator: its ceilings, and why others were not found."""

    target: TargetPlan
    results: tuple[Ceiling | NoCeiling, ...]

    @property
    def ceilings(self) -> tuple[Ceiling, ...]:
        """The best ceilings found."""
        return best(self.results)


def generators_of(plan: Plan) -> tuple[TargetPlan, ...]:
    """The generators of a plan. Raises PlanError if it names none."""
    generators = tuple(target for target in plan.targets if target.role == GENERATOR)
    if not generators:
        raise PlanError(
            f"{plan.origin}: no target has the role generator: give what loads the device role: generator, then "
            "calibrate it"
        )
    return generators


def levels_of(text: str) -> tuple[float, ...]:
    """Parses load levels of the command line. Raises ValueError.

    >>> levels_of("50%, 100%")
    (0.5, 1.0)
    """
    levels = tuple(share(part) for part in text.split(","))
    wrong = [level for level in levels if not 0 < level <= MAX_LOAD]
    if wrong or list(levels) != sorted(set(levels)):
        raise ValueError(f"{text!r} is not a rising list of levels above 0: write 50%,100%")
    return levels


def length_of(text: str) -> float:
    """Parses how long each level is held, in seconds. Raises ValueError.

    >>> length_of("1m")
    60.0
    """
    length_s = seconds(text)
    if not MIN_LEVEL_S <= length_s <= 86400:
        raise ValueError(
            f"{text!r} is not valid for a level, since a rate is held for {HELD_S:g} s: write {MIN_LEVEL_S:g}s to 24h"
        )
    return length_s


def calibration_of(plan: Plan, length_s: float, levels: Sequence[float]) -> Plan:
    """The calibration's plan: the generators and monitors of ``plan``, driven through the levels if they can be.

    Each level lasts ``length_s``; the last is a stress phase, in which the generator must send what it is set to.
    Generators that cannot be driven send what they send, for ``length_s``. Raises PlanError.
    """
    generators = generators_of(plan)
    source_plan = parse(plan.text, plan.origin).data
    assert isinstance(source_plan, dict)
    targets = source_plan["targets"]
    assert isinstance(targets, dict)
    kept = {target.name for target in plan.targets if target.role in _KEPT_ROLES}
    driven = any(getattr(source.config, "drive", False) for target in generators for source in target.sources)
    if driven:
        phases = [PhasePlan(name=_WARMING, seconds=length_s, load=level) for level in levels[:-1]]
        phases.append(PhasePlan(name=_FULL, seconds=length_s, load=levels[-1]))
    else:
        phases = [PhasePlan(name=_UNDRIVEN, seconds=length_s)]
    data: dict[str, Plain] = {
        "name": f"{plan.name[:88]}-calibration",
        "phases": [phase_data(phase, f"{phase.seconds:.6f}".rstrip("0").rstrip(".") + "s") for phase in phases],
        "targets": {name: target for name, target in targets.items() if name in kept},
        **{key: source_plan[key] for key in _KEPT_KEYS if key in source_plan},
    }
    if labels := _kept_labels(plan, source_plan.get("labels"), kept):
        data["labels"] = labels
    return plan_from_text(dump(data), plan.origin)


def _kept_labels(plan: Plan, labels: Plain, kept: Collection[str]) -> dict[str, Plain]:
    """The plan's labels without those read from targets that the calibration leaves out."""
    if not isinstance(labels, dict):
        return {}
    read = {label.name: label.source for label in plan.labels if label.source is not None}
    gone = {name for name, source in read.items() if source.package is not None and source.target not in kept}
    return {name: value for name, value in labels.items() if name not in gone}


def driven_of(calibration: Plan) -> bool:
    """True if a calibration drives its generators."""
    return any(phase.load is not None for phase in calibration.phases)


def calibrated(calibration: Plan, view: RecordView) -> tuple[Calibrated, ...]:
    """Each generator's result, from the calibration's record."""
    return tuple(
        Calibrated(target, ceilings(view.series(key) for key in view.keys(METRICS) if key.target == target.name))
        for target in generators_of(calibration)
    )


def sentences(generator: Calibrated) -> tuple[str, ...]:
    """A generator's result in sentences."""
    if not generator.results:
        return (f"{generator.target.name}: it reported nothing that it sent: no ceiling was found",)
    return tuple(f"{generator.target.name}: {_ceiling_words(ceiling)}" for ceiling in generator.results)


def _ceiling_words(ceiling: Ceiling | NoCeiling) -> str:
    if isinstance(ceiling, NoCeiling):
        return ceiling.reason
    own: Mapping[str, str | None] = {
        "lost": None if ceiling.loss is None else quantity(ceiling.loss, "1"),
        "CPU": None if ceiling.cpu is None else quantity(ceiling.cpu, "1"),
        "queue full": None if ceiling.queue_full is None else f"{ceiling.queue_full:.4g} times",
        "at level": None if ceiling.level is None else f"{ceiling.level:.0%}",
    }
    about = ", ".join(f"{name} {'not reported' if text is None else text}" for name, text in own.items())
    held = show_seconds(round(ceiling.window.seconds, 1))
    return f"{ceiling.kind.name}: {quantity(ceiling.rate, ceiling.kind.unit)}, held for {held} ({about})"


def followed(generator: Calibrated, highest: float) -> bool:
    """True if a generator sent all it was set to, up to the highest level: it may be able to send more."""
    return any(
        ceiling.level is not None and ceiling.level > highest * (1 - 1e-6) and not ceiling.queue_full
        for ceiling in generator.ceilings
    )
