"""The CPU of a device while its polls pause, compared with its CPU while it is polled, in pairs.

The windows of a pair are adjacent, in random order, so that what both share (load, drift, time of day) cancels. The
interval is Student's t of the differences: wide with few pairs, and wider with a burst of anything else in one window.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.event import Event
from soakwatch_model.metric_queries import usual_in
from soakwatch_model.series import Floats, Series
from soakwatch_model.shown import CPU
from soakwatch_model.window import Window
from soakwatch_rules.stats.distributions import student_quantile
from soakwatch_rules.stats.medians import median

REST: Final = "observer.rest"
"""The kind of event for a pause of a device's polls; with the detail ``pair`` it belongs to a comparison."""
CPU_FORMS: Final = usual_in(CPU)
"""Metrics of CPU utilisation, the whole first."""
LEAST_PAIRS: Final = 3
_LEAST_READINGS = 2
_PERCENT = 0.01
_GAP = "gap"


@dataclass(frozen=True, slots=True)
class Pause:
    """One pause and its neighbouring window with polls, each without its first part, which may still show the other."""

    rest: Window
    polled: Window


@dataclass(frozen=True, slots=True)
class Pauses:
    """The pauses of a device: ``planned`` pairs of windows of ``window_s``, whose first ``skipped_s`` are left out.
    ``renewal_s`` is the interval at which a slow device renews its CPU reading, else 0."""

    planned: int
    window_s: float
    skipped_s: float
    renewal_s: float
    pairs: tuple[Pause, ...]


@dataclass(frozen=True, slots=True, eq=False)
class CpuComparison:
    """The mean CPU (a share) of each pair with polls and without, shape (n,) each. ``step`` is 0.01 for readings in
    whole percents that hardly move, so that their mean may be off by that much, else 0."""

    polled: Floats
    rested: Floats
    readings: int
    step: float

    @property
    def difference(self) -> float:
        """The mean difference, with polls minus without."""
        return float(np.mean(self.polled - self.rested))

    @property
    def error(self) -> float:
        """The standard error of ``difference``."""
        apart = self.polled - self.rested
        return float(np.std(apart, ddof=1)) / math.sqrt(apart.size)

    @property
    def half_width(self) -> float:
        """Half of the 95 % interval of ``difference``."""
        return student_quantile(self.polled.size - 1.0, 0.975) * self.error + self.step

    @property
    def detectable(self) -> float:
        """The smallest difference that would have been found with 80 % power."""
        return self.half_width + student_quantile(self.polled.size - 1.0, 0.8) * self.error


def pauses_of(case: Case) -> Pauses | None:
    """The pauses of a device whose pair lies in the window and in one phase, with the monitor running throughout; None
    if there were no pauses."""
    window, turns = case.window, [phase.window.begin_ns for phase in case.phases]
    gaps = [event for event in case.events if event.kind == _GAP]
    mine = [e for e in case.events if e.kind == REST and e.target == case.target and "pair" in e.detail]
    planned, window_s, skipped_s, renewal_s = 0, 0.0, 0.0, 0.0
    pairs: list[Pause] = []
    for event in mine:
        length_s, settle_s = _number(event, "seconds"), _number(event, "not compared")
        total = event.detail["pair"].rpartition(" ")[2]
        if event.end_ns is None or not (0 < length_s < 1e6 and 0 <= settle_s < length_s and total.isdecimal()):
            continue
        planned, window_s, renewal_s = int(total), length_s, max(renewal_s, _number(event, "renewal"))
        skipped_s = max(settle_s, renewal_s)
        length_ns, skipped_ns = round(length_s * 1e9), round(min(skipped_s, length_s) * 1e9)
        shift_ns = length_ns if event.detail.get("polled") == "after" else -length_ns
        end_ns = event.end_ns
        rest = Window(end_ns - length_ns + skipped_ns, end_ns)
        polled = Window(rest.begin_ns + shift_ns, end_ns + shift_ns)
        begin_ns, last_ns = min(rest.begin_ns, polled.begin_ns) - skipped_ns, max(rest.end_ns, polled.end_ns)
        cut = any(gap.begin_ns < last_ns and (gap.end_ns or gap.begin_ns) >= begin_ns for gap in gaps)
        cut = cut or any(begin_ns < turn_ns < last_ns for turn_ns in turns)
        if not cut and window.begin_ns <= begin_ns and last_ns <= window.end_ns:
            pairs.append(Pause(rest, polled))
    return Pauses(planned, window_s, skipped_s, renewal_s, tuple(pairs)) if planned else None


def compare_cpu(pauses: Pauses, series: Sequence[Series]) -> CpuComparison | None:
    """The CPU in the pauses and beside them, in the first metric read in three pairs; None if there is none."""
    for metric in CPU_FORMS:
        forms = [each.finite() for each in series if each.metric == metric]
        if metric == CPU_FORMS[0]:
            forms = [each for each in forms if not each.object]
        if forms and (found := _compared(pauses, forms)) is not None:
            return found
    return None


def _compared(pauses: Pauses, series: Sequence[Series]) -> CpuComparison | None:
    polled, rested, spreads, readings = list[float](), list[float](), list[float](), 0
    for pair in pauses.pairs:
        here = [[_kept(each, window) for each in series] for window in (pair.polled, pair.rest)]
        if any(values.size < _LEAST_READINGS for side in here for values in side):
            continue
        polled.append(float(np.mean([np.mean(values) for values in here[0]])))
        rested.append(float(np.mean([np.mean(values) for values in here[1]])))
        spreads += [float(np.std(values)) for side in here for values in side]
        readings += sum(values.size for side in here for values in side)
    if len(polled) < LEAST_PAIRS:
        return None
    whole = all(
        bool(np.all(np.abs(each.values / _PERCENT - np.round(each.values / _PERCENT)) < 1e-6)) for each in series
    )
    step = _PERCENT if whole and median(spreads) < _PERCENT / 2 else 0.0
    return CpuComparison(np.array(polled), np.array(rested), readings, step)


def _kept(series: Series, window: Window) -> Floats:
    # A reading may cover the time before it or only its moment, so readings at the edges belong to neither side.
    return series.between(window.begin_ns + 1, window.end_ns).values


def _number(event: Event, key: str) -> float:
    """A number in an event's details; 0 if missing or invalid."""
    try:
        value = float(event.detail.get(key, "0"))
    except ValueError:
        return 0.0
    return value if math.isfinite(value) else 0.0
