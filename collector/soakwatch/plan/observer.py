"""The comparison of a device's CPU with and without polls, as a plan asks for it.

``observer: {probe: 60s}`` leaves each device alone for 60 s, five times, and polls it as ever for as long before or
after. Its CPU is read all the time, so that the rule ``observer_cost`` can tell what the other polls cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field

from soakwatch.core.suggest import hint
from soakwatch.core.units import plan_seconds
from soakwatch.core.yaml import Document, Problem
from soakwatch.plan.parts import Duration, Shape, Text
from soakwatch.plan.phase import PhasePlan
from soakwatch.sources.abc import SourceConfig

MIN_PAIRS: Final = 3
_LEAST_READINGS = 2  # of the CPU in what is kept of a window
_NOTHING_TO_REST = (
    "observer: no device is polled by a source that can read its CPU alone (snmp, or ssh to a network system): "
    "remove it; what an agent, SSH to a host or local cost is counted without it"
)


class ObserverShape(Shape):
    """A comparison of windows with polls and windows in which only the CPU is read."""

    probe: Annotated[Duration, Field(ge=5, le=3600, description="length of a window, with polls or without")]
    pairs: Annotated[int, Field(ge=MIN_PAIRS, le=100, description="pairs of windows, one with polls, one without")] = 5
    settle: Annotated[
        Duration | None, Field(description="first part of each window that is not compared; default: a third of probe")
    ] = None
    phase: Annotated[Text | None, Field(description="phase in which it is done; default: the first one")] = None


@dataclass(frozen=True, slots=True)
class ObserverPlan:
    """``pairs`` of windows of ``probe_s`` each in the first phase called ``phase``, behind one with polls; the first
    ``settle_s`` of each window are not compared. ``targets`` are the devices that can be left alone."""

    probe_s: float
    pairs: int
    settle_s: float
    phase: str
    targets: tuple[str, ...]

    @property
    def seconds(self) -> float:
        """How long all of it takes."""
        return (2 * self.pairs + 1) * self.probe_s


def observer_of(
    document: Document,
    shape: ObserverShape | None,
    phases: Sequence[PhasePlan],
    devices: Mapping[str, Iterable[SourceConfig]],
) -> tuple[ObserverPlan | None, list[Problem]]:
    """What a plan asks for, None where it does not, and what is wrong with it; ``devices`` are the sources of those
    under test."""
    if shape is None or not phases:
        return None, []
    asked = {name: tuple(each for each in sources if each.resting == "cpu") for name, sources in devices.items()}
    asked = {name: sources for name, sources in asked.items() if sources}
    settle_s = shape.probe / 3 if shape.settle is None else shape.settle
    phase = phases[0].name if shape.phase is None else shape.phase
    plan = ObserverPlan(shape.probe, shape.pairs, settle_s, phase, tuple(asked))
    if not asked:
        return plan, [document.problem(("observer",), _NOTHING_TO_REST)]
    length_s = next((each.seconds for each in phases if each.name == phase), None)
    if length_s is None:
        known = [each.name for each in phases]
        message = f"observer: the plan has no phase {phase!r}{hint(phase, known)}"
        return plan, [document.problem(("observer", "phase"), message)]
    if any(each.search is not None for each in phases if each.name == phase):
        message = "observer: a search for the capacity changes the load all the time: name another phase"
        return plan, [document.problem(("observer",) if shape.phase is None else ("observer", "phase"), message)]
    if settle_s >= shape.probe:
        message = (
            f"observer: settle: {plan_seconds(settle_s)} leaves nothing of a window of {plan_seconds(shape.probe)} "
            "to compare: write less than probe"
        )
        return plan, [document.problem(("observer", "settle"), message)]
    if plan.seconds > length_s:
        message = (
            f"observer: {shape.pairs} pairs of windows of {plan_seconds(shape.probe)}, and one before them, take "
            f"{plan_seconds(plan.seconds)}, but {phase} lasts {plan_seconds(length_s)}: shorten probe, or name a "
            "longer phase"
        )
        return plan, [document.problem(("observer",), message)]
    return plan, [
        document.problem(("observer", "probe"), message)
        for name, sources in asked.items()
        if (message := _too_coarse(name, min(each.interval for each in sources), plan))
    ]


def _too_coarse(target: str, interval_s: float, plan: ObserverPlan) -> str:
    """Why windows are too short for polls so far apart, or ""."""
    kept_s = plan.probe_s - plan.settle_s
    if kept_s >= _LEAST_READINGS * interval_s and plan.settle_s >= interval_s:
        return ""
    return (
        f"observer: {target} is polled every {plan_seconds(interval_s)}, which is too seldom for windows of "
        f"{plan_seconds(plan.probe_s)} without their first {plan_seconds(plan.settle_s)}: raise probe to "
        f"{plan_seconds(3 * interval_s)} or more, or lower interval"
    )
