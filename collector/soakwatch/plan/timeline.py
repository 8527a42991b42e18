"""The phases of a plan on the time axis of a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from soakwatch.plan.capacity import CapacityPlan
from soakwatch.plan.phase import Load, PhasePlan


@dataclass(frozen=True, slots=True)
class PhaseInterval:
    """One phase on the run's clock."""

    name: str
    begin_ns: int
    end_ns: int
    load: Load | None = None
    until: str = ""
    search: CapacityPlan | None = None


def stretches(phases: Iterable[PhasePlan], start_ns: int) -> tuple[PhaseInterval, ...]:
    """The phases of a plan with their times, each as long as it can be."""
    begin_ns, intervals = start_ns, []
    for phase in phases:
        end_ns = begin_ns + round(phase.seconds * 1e9)
        intervals.append(PhaseInterval(phase.name, begin_ns, end_ns, phase.load, phase.until, phase.search))
        begin_ns = end_ns
    return tuple(intervals)


def shifted(planned: Sequence[PhaseInterval], begun_ns: Sequence[int]) -> tuple[PhaseInterval, ...]:
    """The phases where those that began did so at these times, and the others follow without a break."""
    intervals: list[PhaseInterval] = []
    for index, stretch in enumerate(planned):
        begin_ns = begun_ns[index] if index < len(begun_ns) else intervals[-1].end_ns if intervals else stretch.begin_ns
        intervals.append(replace(stretch, begin_ns=begin_ns, end_ns=begin_ns + stretch.end_ns - stretch.begin_ns))
        if index + 1 < len(begun_ns):
            intervals[index] = replace(intervals[index], end_ns=begun_ns[index + 1])
    return tuple(intervals)
