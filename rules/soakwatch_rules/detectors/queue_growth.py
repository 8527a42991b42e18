"""Queue growth: slots that are never freed, and queues that run full."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal, NamedTuple

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.fact import Certainty
from soakwatch_model.finding import Finding, Forecast, InconclusiveReason, Mark, Outcome
from soakwatch_model.flow import PACKETS
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.finding_draft import draft, each_series
from soakwatch_rules.load.load_account import LoadAccount
from soakwatch_rules.load.offered import OVERLOADS
from soakwatch_rules.parameter import Parameters, parameter
from soakwatch_rules.rule import RuleSpec
from soakwatch_rules.series_lives import lives
from soakwatch_rules.stats.counted_amounts import amount
from soakwatch_rules.stats.hysteresis import stretches
from soakwatch_rules.stats.judge_trend import judge_trend
from soakwatch_rules.stats.tolerance import Tolerance
from soakwatch_rules.stats.trend_answer import TrendAnswer
from soakwatch_rules.traits import Family, GrowthMethod, Guide, RuleWords, Traits
from soakwatch_rules.wording.quantities import counted, duration, first_few, moment, quantity

_DAY_S = 86400.0
_HOUR_S = 3600.0
_MIN_SAMPLES = 16  # readings of one life
_MARKS = 20
_STEADY = 0.02  # rise of the load from the first to the last third above which the load explains a fuller queue
_WIDTH = 1.0  # widest interval of a forecast that is stated, as a share of the forecast
_MAX_VALUE = 1e150


class _Lifetime(NamedTuple):
    """One life, the trends of its block minima and medians (rising is positive), and its end on their time axis."""

    window: Window
    series: Series
    floor: TrendAnswer
    middle: TrendAnswer
    end_s: float


@dataclass(frozen=True, slots=True)
class QueueGrowth(Parameters):
    """Fails if slots of a queue leak; warns if it fills up with the load, or ran full.

    The window is cut into at most 96 blocks (15 min each in 24 h), and the trend engine (``growth``) judges two series
    of them: the block *minima* and the block *medians*. A leaked slot is missing all the time, so it raises the
    minimum; a busier queue still empties now and then, so only its median climbs. Allowed growth is ``tolerance`` x
    ceiling (queue.limit; without one, x level) per 24 h, at least the catalogue's floor in total.
    * Minima that grow faster than that at the end of the run with 95 % probability fail: leaked slots.
    * Medians that grow while the minima do not are load, not a leak: with the load known a warning (it says whether
      the load grew, or the queue filled at a steady load), else inconclusive.
    * Readings at or above the ceiling are a full queue: marked, and a warning outside of phases named stress or spike.
    Each life between reboots is judged by itself; one that fails decides, else the longest.

    A failure states the time until the ceiling is reached: a straight line through the blocks, turned about their
    centre by 5 to 95 % of its slope; stated only if the interval is narrower than the forecast.

    How often wrong, measured on 60 seeds of a queue served at 20 packets a second with batch arrivals, 12 h at 1 s,
    limit 200: constant utilisation .7, .9, .95, .98: minima failed 0 % (inconclusive 0, 0, 13, 85 %); 30 or 15 % of the
    limit leaked within the run, evenly or in its last half: 100 % failed, with a forecast in 100 and 50 %; utilisation
    creeping from .8 to 1.02: 0 % failed, 72 % inconclusive, the rest warned for being full. Known weaknesses: a queue
    that is never empty (utilisation over .97) wanders: inconclusive; polls see the depth of a moment, so the true
    minimum of a block may be lower; a leak below the tolerance shows only in longer runs.

    Neighbours: ``drops`` counts what a full queue lost, ``growth`` judges memory, descriptors and connections,
    ``performance_decline`` whether the device slowed down.

    Parameters: ``tolerance``, ``shortest`` (below).

    >>> from soakwatch_rules.signals import readings
    >>> rng = np.random.default_rng(1)
    >>> depth = rng.poisson(3.0, 1440).astype(np.float64)
    >>> leak = depth + np.floor(np.linspace(0, 40, 1440))
    >>> for value in (depth, leak):
    ...     series = readings("queue.depth", value, 60.0)
    ...     series = replace(series, trait=replace(series.trait, ceiling=100.0))
    ...     print(QueueGrowth().judge(Case("dut", "", Window(0, 86400 * 10**9), (series,)))[0].outcome)
    pass
    fail

    References: D. Lindley, The theory of queues with a single server, Proc. Camb. Phil. Soc. 48, 1952 (a queue below
    saturation comes back to empty; how seldom, above .95, is what limits this rule); trend: see ``growth``.
    """

    name: ClassVar[str] = "queue_growth"
    version: ClassVar[int] = 1
    summary: ClassVar[str] = "a queue fills up over time, or ran full"
    metrics: ClassVar[tuple[str, ...]] = ("queue.depth", "queue.usage")
    scope: ClassVar[Literal["object", "metric", "target"]] = "metric"
    phases: ClassVar[tuple[str, ...]] = ("soak",)
    spec: ClassVar[RuleSpec] = RuleSpec(
        "16 samples and 2 h without a restart; a decision is likely from 96 samples and 12 h",
        shortest_s=7200.0,
        live="minutes",
    )

    tolerance: float = parameter(
        0.1,
        "1",
        "allowed growth per 24 h, as a share of the queue's limit, else of the level",
        "measured: no false alarm up to 95 % utilisation",
        within="(0, inf)",
    )
    shortest: float = parameter(7200.0, "s", "shortest time without a restart that is judged", "as for memory")

    def definition(self) -> str:
        return (
            "the lowest depths of up to 96 blocks may not grow at the end of the run, with 95 % probability, by more "
            f"than {100 * self.tolerance:g} % of the queue's limit (else of its level) per 24 h; medians that do so "
            "alone are load, not a leak; the depth must stay below the limit; a lifetime shorter than "
            f"{duration(self.shortest)} is not judged"
        )

    def judge(self, case: Case) -> tuple[Finding, ...]:
        """One finding a queue."""
        return each_series(self, case, "queue depth", self._of)

    def _of(self, case: Case, series: Series) -> Finding:
        whole = series.between(case.window.begin_ns, case.window.end_ns).finite()
        bounded = np.abs(whole.values) < _MAX_VALUE
        whole = replace(whole, time_ns=whole.time_ns[bounded], value=whole.value[bounded])
        finding = replace(
            draft(self, case, whole), unit=f"{series.trait.unit}/h", detectable_unit=f"{series.trait.unit}/h"
        )
        finding = _with_full(case, finding, whole)
        lifetimes = [
            self._lifetime(life.window, life.series)
            for life in lives(whole, case.window, case.events)
            if len(life.series) >= _MIN_SAMPLES and life.window.seconds >= self.shortest
        ]
        if not lifetimes:
            reason = (
                f"{counted(len(whole), 'sample')} in {duration(case.window.seconds)}; {_MIN_SAMPLES} samples in "
                f"{duration(self.shortest)} without a restart needed"
            )
            more = max(self.shortest - case.window.seconds, 0.0)
            settle = f"needs {duration(more)} more" if more > 0 else f"needs {_MIN_SAMPLES} samples without a restart"
            why = InconclusiveReason.TOO_SHORT if more > 0 else InconclusiveReason.TOO_FEW
            return _full(finding.undecided(reason, why, settle))
        failing = [lifetime for lifetime in lifetimes if lifetime.floor.outcome is Outcome.FAIL]
        lifetime = max(failing or lifetimes, key=lambda each: each.window.seconds)
        doubts = []
        if len(lifetimes) > 1:
            doubts.append(
                f"one of {len(lifetimes)} lifetimes between restarts, from {moment(lifetime.window.begin_ns)}"
            )
        if series.trait.ceiling is None:
            doubts.append("the queue's limit is not known: growth is compared with its level, without a forecast")
        finding = replace(finding, doubts=tuple(doubts))
        return _full(self._conclude(case, _with_arithmetic(finding, lifetime), lifetime))

    def _lifetime(self, window: Window, series: Series) -> _Lifetime:
        trait, seconds = series.trait, series.seconds
        sign = -1.0 if trait.growth == "down" else 1.0
        begin_s = (window.begin_ns - int(series.time_ns[0])) * 1e-9
        span = (begin_s, begin_s + window.seconds)
        floor = max(trait.floor, trait.quantum or 0.0)
        allowed: float | Tolerance = Tolerance(self.tolerance, _DAY_S, floor)
        if trait.ceiling is not None and 0 < trait.ceiling < _MAX_VALUE:
            allowed = Tolerance(self.tolerance, _DAY_S, floor).per_second(trait.ceiling, window.seconds)
        value = sign * series.values
        low = judge_trend(
            seconds, value, allowed=allowed, span_s=span, quantum=trait.quantum, statistic="min", sawtooth=False
        )
        middle = judge_trend(
            seconds, value, allowed=allowed, span_s=span, quantum=trait.quantum, statistic="median", sawtooth=False
        )
        return _Lifetime(window, series, low, middle, span[1])

    def _conclude(self, case: Case, finding: Finding, lifetime: _Lifetime) -> Finding:
        low, middle, unit = lifetime.floor, lifetime.middle, lifetime.series.trait.unit
        rate = f"{quantity(low.rate * _HOUR_S, f'{unit}/h')} (allowed {quantity(low.allowed * _HOUR_S, f'{unit}/h')})"
        if low.outcome is Outcome.FAIL:
            ahead = _forecast(lifetime, middle) or _forecast(lifetime, low)
            reason = f"slots leak: even the minimum depth grows by {rate}; shape: {low.shape}"
            return replace(finding, outcome=Outcome.FAIL, reason=reason, forecast=ahead)
        creeps = middle.outcome is Outcome.FAIL
        busier = f"{quantity(middle.rate * _HOUR_S, f'{unit}/h')} in the median"
        if low.outcome is Outcome.INCONCLUSIVE:
            also = f"; the queue fills by {busier}" if creeps else ""
            reason = f"whether the minimum depth grows is undecided: {rate}{also}"
            return finding.undecided(reason, low.why or InconclusiveReason.NOISE, _settle(low))
        if not creeps:
            reason = f"the minimum depth does not grow: {rate}"
            unsure = "; the median may" if middle.outcome is Outcome.INCONCLUSIVE else ""
            return finding.passes(reason + unsure)
        reason = f"load, not a leak: the queue fills by {busier}, but still empties as far as before"
        finding = replace(finding, forecast=_forecast(lifetime, middle))
        change = _load_change(case, lifetime.window)
        if change is None:
            settle = "record the offered load (load.tx.packets), or keep it steady"
            return finding.undecided(f"{reason}; the load is not known", InconclusiveReason.NO_REFERENCE, settle)
        how = (
            f"the load grew by {quantity(change, '1')}"
            if change > _STEADY
            else "the load did not grow: the device empties the queue more slowly"
        )
        return finding.warns(f"{reason}; {how}")


def _with_arithmetic(finding: Finding, lifetime: _Lifetime) -> Finding:
    low, middle = lifetime.floor, lifetime.middle
    known = low.smallest_detectable
    return replace(
        finding,
        measured=_hourly(low.rate),
        interval=(_hourly(low.rate_low), _hourly(low.rate_high)),
        limit=_hourly(low.allowed),
        smallest_detectable=None if known is None else _hourly(low.allowed + known),
        facts=(Certainty(low.probability),),
        numbers=dict(finding.numbers)
        | {
            "probability": low.probability,
            "probability_median": middle.probability,
            "level": middle.level,
            "floor": low.level,
            "median_rate": _hourly(middle.rate),
            "blocks": float(low.blocks),
        },
    )


def _with_full(case: Case, finding: Finding, series: Series) -> Finding:
    """The finding with a mark for each stretch in which the queue was full."""
    ceiling = series.trait.ceiling
    numbers = {"highest": float(series.values.max(initial=0.0))}
    if ceiling is None or not 0 < ceiling < math.inf or series.trait.growth == "down":
        return replace(finding, numbers=numbers)
    pairs = stretches(series.values, ceiling, ceiling).tolist()
    marks, unplanned = [], 0
    for begin, end in pairs:
        first, last = int(series.time_ns[begin]), int(series.time_ns[end - 1])
        planned = any(p.name in OVERLOADS and p.window.begin_ns <= first < p.window.end_ns for p in case.phases)
        unplanned += not planned
        text = f"full ({quantity(ceiling, series.trait.unit)}){' (planned)' if planned else ''}"
        marks.append(Mark(first, last, text, planned=planned))
    numbers |= {"full": float(unplanned), "full_planned": float(len(pairs) - unplanned)}
    return replace(finding, marks=tuple(marks[:_MARKS]), numbers=numbers)


def _full(finding: Finding) -> Finding:
    """The finding with the times at which the queue was full; that turns a pass into a warning."""
    number = int(finding.numbers.get("full", 0.0))
    if not number:
        return finding
    text = first_few([moment(mark.begin_ns) for mark in finding.marks if not mark.planned])
    reason = f"{finding.reason}; the queue was full {counted(number, 'time')}: {text}"
    warns = finding.outcome is Outcome.PASS
    return replace(finding, outcome=Outcome.WARN if warns else finding.outcome, reason=reason)


def _forecast(lifetime: _Lifetime, trend: TrendAnswer) -> Forecast | None:
    """When the line reaches the ceiling; None unless it certainly rises and the interval is narrow enough."""
    line, ceiling = trend.line, lifetime.series.trait.ceiling
    if line is None or ceiling is None or lifetime.series.trait.growth == "down" or not (0 < line.low <= line.high):
        return None
    room, since = ceiling - line.centre, lifetime.end_s - line.centre_s
    after, early, late = (room / slope - since for slope in (line.slope, line.high, line.low))
    if not (math.isfinite(late) and after > 0 and late - early <= _WIDTH * after):
        return None
    return Forecast(f"queue limit ({quantity(ceiling, lifetime.series.trait.unit)})", after, max(early, 0.0), late)


def _load_change(case: Case, window: Window) -> float | None:
    """Relative change of the load from the first to the last third of the window; None if it is not known."""
    account = LoadAccount.of(case.load)
    load = account.into(PACKETS) or account.demand()
    third = (window.end_ns - window.begin_ns) // 3
    parts = [(window.begin_ns, window.begin_ns + third), (window.end_ns - third, window.end_ns)]
    (early, early_s), (late, late_s) = (amount(load, *part) for part in parts)
    if not (early > 0 and early_s > 0.5 * third * 1e-9 and late_s > 0.5 * third * 1e-9):
        return None
    change = late / late_s / (early / early_s) - 1
    return change if math.isfinite(change) else None


def _settle(trend: TrendAnswer) -> str:
    hours = trend.hours_needed
    if hours is None or not math.isfinite(hours):
        return (
            "needs a steadier load, or a longer run"
            if trend.why is not InconclusiveReason.GAP
            else "needs samples without gaps"
        )
    return f"needs {duration(max(hours, 0.1) * _HOUR_S)} more at this noise level"


def _hourly(rate: float) -> float:
    return float(np.clip(rate, -_MAX_VALUE, _MAX_VALUE)) * _HOUR_S


TRAITS: Final = Traits(
    words=RuleWords("a queue keeps growing", happened="{thing} on {target} keeps growing"),
    rank=82,
    growth=GrowthMethod.QUEUE,
    family=Family.MEMORY,
    guide=Guide(
        fails_when=(
            "The lowest depth of a queue grows at the end of the run by more than 10 % of its limit a day, or the "
            "queue runs full."
        ),
        misses="Runs under 2 h.",
        change_with="queue_growth: {tolerance: 20%}",
        next_step="Look for slots that are never given back: count what enters and what leaves the queue.",
    ),
)
