"""The CPU of a device in pauses of its polls against its CPU while it is polled: pair by pair, with an interval.

The windows of a pair lie side by side and which of them comes first is drawn by lot, so what both share (load, drift,
the time of day) cancels. Student's t of the differences gives the interval: with few pairs it is wide, and one window
with a burst of anything else makes it wider, never surer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from soakwatch_model.case import Case
from soakwatch_model.event import Event
from soakwatch_model.metric_queries import usual_in
from soakwatch_model.series import Series
from soakwatch_model.shown import CPU
from soakwatch_model.window import Window
from soakwatch_rules.stats.distributions import student_quantile

REST: Final = "observer.rest"
"""The kind of event that says that polls of a device pause; with the detail ``pair`` it is one of a comparison."""
CPU_FORMS: Final = usual_in(CPU)
"""Forms in which devices tell how busy they are, the whole first."""
LEAST_PAIRS: Final = 3
_LEAST_READINGS = 2
_PERCENT = 0.01
_GAP = "gap"


@dataclass(frozen=True, slots=True)
class Pause:
    """One pause and the window with polls beside it, each without its first part, which still holds what was before."""

    rest: Window
    polled: Window


@dataclass(frozen=True, slots=True)
class Pauses:
    """The pauses of a device: ``planned`` pairs of windows of ``window_s``, of which the first ``skipped_s`` are not
    compared; ``renewal_s`` is how often the device renews its CPU, where it is known to be slow, else 0."""

    planned: int
    window_s: float
    skipped_s: float
    renewal_s: float
    pairs: tuple[Pause, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """The mean CPU of each pair with polls and without, shape (n,) each, as shares; ``step`` is that of readings which
    are whole percents and hardly move, so that their mean may be off by as much, else 0."""

    polled: NDArray[np.float64]
    rested: NDArray[np.float64]
    readings: int
    step: float

    @property
    def difference(self) -> float:
        """With polls less without, in the mean of all pairs."""
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
        """The smallest difference that would have been told from none, with 80 % power."""
        return self.half_width + student_quantile(self.polled.size - 1.0, 0.8) * self.error


def pauses_of(case: Case) -> Pauses | None:
    """The pauses of a device that lie in the window and in one phase with what they are compared with, and in which the
    monitor ran all the time; None where none was made."""
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


def compare(pauses: Pauses, series: Sequence[Series]) -> Comparison | None:
    """The CPU in the pauses and beside them, by the first form that tells it in three pairs; None where none does."""
    for metric in CPU_FORMS:
        forms = [each.finite() for each in series if each.metric == metric]
        if metric == CPU_FORMS[0]:
            forms = [each for each in forms if not each.object]
        if forms and (found := _compared(pauses, forms)) is not None:
            return found
    return None


def _compared(pauses: Pauses, series: Sequence[Series]) -> Comparison | None:
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
    step = _PERCENT if whole and float(np.median(spreads)) < _PERCENT / 2 else 0.0
    return Comparison(np.array(polled), np.array(rested), readings, step)


def _kept(series: Series, window: Window) -> NDArray[np.float64]:
    # A reading may tell of the time before it, or of its moment: those at the edges belong to neither side for sure.
    return series.between(window.begin_ns + 1, window.end_ns).values


def _number(event: Event, key: str) -> float:
    """A number of an event's details, 0 where there is none."""
    try:
        value = float(event.detail.get(key, "0"))
    except ValueError:
        return 0.0
    return value if math.isfinite(value) else 0.0
