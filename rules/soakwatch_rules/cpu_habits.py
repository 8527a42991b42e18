"""Recurrent plateaus of a CPU: it reaches its maximum again and again from the start of the run on."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.series import Floats, Series
from soakwatch_rules.stats.habit import ALIKE, Habit, habit_of
from soakwatch_rules.stats.spikes import Plateaus

PLANNED: Final = frozenset({"spike", "stress"})
_DUE = 3.0  # occurrences that the baseline phase should have held for their absence there to mean something


class CpuHabits:
    """Tells which plateaus are recurrent: similar ones occur from the start of the run to its end."""

    def __init__(self, case: Case, series: Series, cover_s: Floats, seen: Plateaus) -> None:
        first_ns = int(series.time_ns[0])
        free = np.ones(seen.opens.size, dtype=bool)
        for phase in case.phases:
            if phase.name in PLANNED:
                positions = series.time_ns[seen.opens]
                free &= (positions < phase.window.begin_ns) | (positions >= phase.window.end_ns)
        self._begin_s = ((series.time_ns[seen.opens] - first_ns) * 1e-9 - cover_s[seen.opens])[free] + cover_s[0]
        self._above_s = seen.above_s[free]
        self._whole_s = float(series.time_ns[-1] - first_ns) * 1e-9 + float(cover_s[0])
        calm = [p.window for p in case.phases if p.name == "baseline"]
        self._calm = [((w.begin_ns - first_ns) * 1e-9, (w.end_ns - first_ns) * 1e-9) for w in calm]
        self._known: dict[int, Habit | None] = {}

    def of(self, above_s: float) -> Habit | None:
        """The recurrence that a plateau of this length belongs to, else None; lengths are rounded in steps of 5 %."""
        step = math.floor(math.log(max(above_s, 1e-3)) / math.log(1.05) + 1e-6)
        if step not in self._known:
            self._known[step] = self._search(1.05**step)
        return self._known[step]

    def _search(self, above_s: float) -> Habit | None:
        match = habit_of(self._begin_s, self._above_s, above_s, self._whole_s)
        if match is None:
            return None
        alike = self._begin_s[self._above_s >= ALIKE * above_s]
        for begin, end in self._calm:
            due = match.number * (end - begin) / self._whole_s
            if due >= _DUE and np.count_nonzero((alike >= begin) & (alike < end)) < due / _DUE:
                return None  # it began with the load, so it is not the device's own behaviour
        return match
