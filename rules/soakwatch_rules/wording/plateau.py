"""The plateaus of a CPU sorted by what they are, and their words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from soakwatch_model.fact import Sparse
from soakwatch_model.finding import Mark
from soakwatch_model.series import Floats, Series
from soakwatch_rules.stats.habit import Habit
from soakwatch_rules.stats.spikes import Plateau
from soakwatch_rules.wording.quantities import counted, duration, quantity

GAP: Final = 3.0  # cadences
_FREQUENT = 24  # times in a run from which recurrence is normal behaviour


@dataclass(slots=True)
class SortedPlateaus:
    """The plateaus of one series by what they are; those in ``aside`` are neither spikes nor explained."""

    spikes: list[Mark] = field(default_factory=list)
    planned: list[Mark] = field(default_factory=list)
    aside: list[Mark] = field(default_factory=list)
    surges: list[Mark] = field(default_factory=list)
    habits: list[tuple[Habit, float]] = field(default_factory=list)
    unsure: int = 0
    scatter: int = 0
    brief: int = 0
    brief_s: float = 0.0
    worst_s: float = 0.0
    room: float = 1.0

    def rare(self) -> bool:
        """Whether recurrent plateaus are neither evenly spaced nor frequent."""
        return not any(habit.every_s is not None or habit.number >= _FREQUENT for habit, _ in self.habits)

    def habit(self) -> str:
        """The recurrent plateaus in words."""
        most = max((habit for habit, _ in self.habits), key=lambda habit: habit.number)
        every = f", every {duration(most.every_s)}" if most.every_s is not None else ""
        longest = max(lasted for _, lasted in self.habits)
        return f"at its maximum {counted(most.number, 'time')} for up to {duration(longest)}{every}"


def sparse(number: int, apart: float, highest: float, enter: float) -> tuple[str, tuple[Sparse, ...]]:
    """What samples too far apart show of a maximum: in words, and as a fact if none of them reached it."""
    hidden = f"one of a minute between two polls, {duration(apart)} apart, is not seen"
    if highest >= enter:
        return hidden, ()
    none = f"none of {counted(number, 'sample')} reached {quantity(enter, '1')} (highest {quantity(highest, '1')})"
    return f"{hidden}; {none}", (Sparse(2 * apart),)


def mark_of(plateau: Plateau, series: Series, cover_s: Floats) -> Mark:
    """When a plateau was, its height, its length, and the level from which it rose."""
    begin = int(series.time_ns[plateau.open]) - round(cover_s[plateau.open] * 1e9)
    level = "" if plateau.level is None else f" from a level of {quantity(plateau.level, '1')}"
    text = f"{quantity(plateau.peak, '1')} for {duration(plateau.above_s)}{level}"
    return Mark(begin, int(series.time_ns[plateau.close - 1]), text)


def doubts_of(series: Series, apart: float, plateaus: SortedPlateaus) -> list[str]:
    """What the readings may hide, and what was taken for normal behaviour."""
    doubts, steps = [], np.diff(series.time_ns)
    gaps = np.flatnonzero(steps > GAP * apart * 1e9)
    if gaps.size:
        longest = float(steps.max()) * 1e-9
        doubts.append(
            f"{counted(int(gaps.size), 'gap')} of up to {duration(longest)} in the samples, in which nothing was seen"
        )
        marks = (*plateaus.spikes, *plateaus.planned, *plateaus.aside)
        ends = np.array([(m.begin_ns, m.end_ns or m.begin_ns) for m in marks]).reshape(-1, 2)
        inside = [(ends[:, 0] <= series.time_ns[g]) & (ends[:, 1] >= series.time_ns[g + 1]) for g in gaps[:1000]]
        if bool(np.any(inside)):
            doubts.append("a spike continued after a gap: it is counted as one")
    if plateaus.planned:
        doubts.append(f"{counted(len(plateaus.planned), 'spike')} inside spike or stress phases were not counted")
    if plateaus.habits and not plateaus.unsure:
        doubts.append(
            "what recurs from the start of the run counts as normal behaviour, which would hide a fault "
            "present from the start"
        )
    if plateaus.room < 1:
        hidden = (
            f"in {quantity(1 - plateaus.room, '1')} of the time the level was too high or too noisy to show a "
            "sudden rise"
        )
        doubts.append(f"{hidden}")
    if apart > 10:
        doubts.append(f"a sample every {duration(apart)}: spikes shorter than {duration(2 * apart)} may be missed")
    return doubts
