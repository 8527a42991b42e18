"""The phases of a plan on the time axis of a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from soakwatch.plan.capacity_plan import CapacityPlan
from soakwatch.plan.phase import Load, PhasePlan
from soakwatch_model.window import Window


@dataclass(frozen=True, slots=True)
class PlannedPhase:
    """One phase on the run's clock."""

    name: str
    window: Window
    load: Load | None = None
    until: str = ""
    search: CapacityPlan | None = None


def stretches(phases: Iterable[PhasePlan], start_ns: int) -> tuple[PlannedPhase, ...]:
    """The phases on the clock of a run that starts at ``start_ns``, each with its longest time."""
    begin_ns, intervals = start_ns, []
    for phase in phases:
        end_ns = begin_ns + round(phase.seconds * 1e9)
        intervals.append(PlannedPhase(phase.name, Window(begin_ns, end_ns), phase.load, phase.until, phase.search))
        begin_ns = end_ns
    return tuple(intervals)


def shifted(planned: Sequence[PlannedPhase], begun_ns: Sequence[int]) -> tuple[PlannedPhase, ...]:
    """The phases once some of them began at ``begun_ns``; the others follow them without a break."""
    times: list[Window] = []
    for index, phase in enumerate(planned):
        window = phase.window
        begin_ns = begun_ns[index] if index < len(begun_ns) else times[-1].end_ns if times else window.begin_ns
        last = index + 1 >= len(begun_ns)
        times.append(Window(begin_ns, begin_ns + window.end_ns - window.begin_ns if last else begun_ns[index + 1]))
    return tuple(replace(phase, window=window) for phase, window in zip(planned, times, strict=True))
