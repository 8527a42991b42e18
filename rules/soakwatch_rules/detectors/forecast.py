"""Forecast: will anything finite be full before the time that the plan asks for?"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.fact import FullIn
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.metric_queries import finite
from soakwatch_model.series import Series
from soakwatch_rules.finding_draft import absent, draft, half_unread
from soakwatch_rules.outlook import SHORTEST_S, Outlook, outlook_of
from soakwatch_rules.parameter import Parameters, parameter
from soakwatch_rules.rule import RuleSpec
from soakwatch_rules.stats.judge_trend import judge_trend
from soakwatch_rules.stats.time_to_full import FARTHEST_S, RISK, TimeToFull
from soakwatch_rules.stats.tolerance import Thresholds, Tolerance
from soakwatch_rules.traits import Family, Guide, Limit, Marks, RuleWords, Traits
from soakwatch_rules.wording.forecast import full_words, time_left
from soakwatch_rules.wording.quantities import duration, quantity
from soakwatch_rules.wording.series_names import name_of

_MOST: Final = 1e150
_STILL: Final = 1e-9  # share of the limit
_LONGEST: Final = 1000.0  # times the run: what needs more is not worth a number


@dataclass(frozen=True, slots=True)
class Forecast(Parameters):
    """Fails if something finite will be full before ``not_before`` from the end of the run: memory of the machine,
    committed memory and swap, open files, connection and session tables, file systems and their inodes, sockets'
    memory, orphans, queues, memory pools. Without ``not_before`` nothing is judged; the report shows the times anyway.

    The limit is what the device states, or the whole of a share. Of each series its life since the last restart counts,
    from 2 h on, cut into at most 96 blocks. A straight line through their means has an error that is corrected for the
    correlation of neighbouring blocks (AR(1), degrees of freedom of as many independent ones). If the slopes of the two
    halves differ (risk 1 %), the second half counts alone, and so its own; if a sine of one day explains half of what
    the line leaves, in 0.8 days or more, it is fitted beside the line. In less than 0.8 days a falling line counts as a
    rising one, since it may be part of a wave. The line is raised to the highest reading about it.

    "Not before" is where the 95 % upper bound of the slope meets the limit, from a level that is the 95 % upper bound
    too, and with a quarter more than the highest reading stands above the middle. What the source cannot show counts as
    growth: one step of its resolution in the run, three of what is counted in whole (the 95 % bound of a Poisson number
    of which none was seen). It is never later than ten years. "Full in" is given only for a slope whose 95 % lower
    bound is above zero, and not if growth slows down.

    pass: not before ``not_before`` or later. fail: the shapes of ``growth`` (its engine, with what would fill it in
    ``not_before`` as what is allowed, P >= 1 - .05/m for m series judged) agree that it is full earlier; or it is full
    now. Anything else is inconclusive, with the length of run that would decide it. Not applicable: what never moves
    and is full (a read-only image), or has no limit.

    How often wrong: ``tests/bench/accuracy/forecasts.py`` prints of 200 known forecasts (whole runs, imported and
    judged) how many were full before the time that was said with 95 %; ``soakwatch rules forecast`` has the outcomes.
    Known weaknesses: it carries on what was seen, so growth that begins later, or that comes with more load, is not in
    it; half of a wave of several days; growth in steps further apart than the run.

    Neighbours: ``growth`` judges by a share of the level a day whether anything grows; ``saturation`` what is full now,
    or within three days.

    Parameters: ``not_before`` (below).

    >>> from soakwatch_model.window import Window
    >>> from soakwatch_rules.signals import readings
    >>> t = np.arange(1440) / 1440
    >>> for day in (0.0, 0.01):
    ...     used = 0.5 + day * t + 0.0005 * np.random.default_rng(1).standard_normal(1440)
    ...     series = readings("system.sessions.utilization", used, 60.0, object="table=nat")
    ...     finding = Forecast(not_before=180 * 86400.0).judge(Case("fw", "", Window(0, 86400 * 10**9), (series,)))[0]
    ...     print(finding.outcome, "-", finding.reason)
    pass - system.sessions.utilization of nat: with 95 % not full within 10 years; asked for 180 d
    fail - system.sessions.utilization of nat: full in 48 d, with 95 % not before 48 d; asked for 180 d

    References: J. Beran, Statistics for Long-Memory Processes, 1994, ch. 1 (means of correlated readings); F. Marriott,
    J. Pope, Biometrika 41, 1954 (bias of the correlation); B. Hahn, W. Meeker, Statistical Intervals, 1991 (one-sided
    bounds); M. Lovell, JASA 58, 1963 (the slope beside a wave).
    """

    name: ClassVar[str] = "forecast"
    version: ClassVar[int] = 1
    summary: ClassVar[str] = "something finite will be full before the time that the plan asks for"
    metrics: ClassVar[tuple[str, ...]] = finite()
    scope: ClassVar[Literal["object", "metric", "target"]] = "metric"
    phases: ClassVar[tuple[str, ...]] = ("soak",)
    spec: ClassVar[RuleSpec] = RuleSpec(
        "not_before in the plan, 16 samples over 2 h since the last restart, and half of those expected; a day tells a "
        "daily wave from growth",
        shortest_s=SHORTEST_S,
        live="end",
    )

    not_before: float = parameter(
        0.0,
        "s",
        "time after the run before which nothing may be full; 0 = not judged",
        "only a plan knows it",
        within=f"[0, {FARTHEST_S:.0f}]",
    )

    @property
    def metrics_read(self) -> tuple[str, ...]:
        """Nothing where no time is asked for."""
        return self.metrics if self.not_before else ()

    def definition(self) -> str:
        asked = f"within {time_left(self.not_before)} after the run" if self.not_before else "too early (no time asked)"
        return (
            f"a finite resource that is full {asked} ({self.not_before:g} s) at the pace of the run, by the 95 % upper "
            "bound of the slope of its block means since the last restart, corrected for their correlation; fails if "
            "with 95 % it is full earlier by all shapes of growth"
        )

    def judge(self, case: Case) -> tuple[Finding, ...]:
        """One finding a series that has a limit."""
        if not self.not_before:
            reason = "no time is asked for: give one in the plan, such as `forecast: {not_before: 180d}`"
            return (draft(self, case).not_applicable(reason),)
        if not case.series:
            return (absent(self, case, "resource with a limit"),)
        return tuple(self._of(case, series) for series in case.series)

    def _of(self, case: Case, series: Series) -> Finding:
        finding, name = replace(draft(self, case, series), unit="s", limit=self.not_before), name_of(series)
        if float(np.max(np.abs(series.finite().values), initial=0.0)) > _MOST:
            return replace(finding, limit=None).not_applicable(f"{name}: its readings are no amounts")
        outlook = outlook_of(series, case.window, case.events)
        if outlook is None:
            return replace(finding, limit=None).not_applicable(f"{name} states no limit")
        full = outlook.full
        if full is None:
            needs = f"needs {duration(SHORTEST_S)} without a restart"
            return finding.undecided(f"{name}: {outlook.unknown}", InconclusiveReason.TOO_SHORT, needs)
        finding = replace(
            finding,
            measured=full.not_before_s,
            facts=(*finding.facts, FullIn(full.not_before_s, full.after_s)),
            numbers={
                "limit": outlook.limit,
                "highest": full.highest,
                "rate_per_hour": 3600 * full.rate,
                "rate_per_hour_at_most": 3600 * full.rate_high,
                "correlation": full.correlation,
                "judged_seconds": full.span_s,
            },
            doubts=tuple(_doubts(series, full)),
        )
        reason = (
            f"{name}: {full_words(FullIn(full.not_before_s, full.after_s))}; asked for {time_left(self.not_before)}"
        )
        if full.highest >= outlook.limit and outlook.life is not None:
            if float(np.ptp(outlook.life.series.values)) <= _STILL * outlook.limit:
                return finding.not_applicable(f"{name}: constantly full")
            return finding.fails(reason)
        if unread := half_unread(finding, finding.samples, f"{name} may have grown unseen"):
            return unread
        if full.not_before_s >= self.not_before:
            return finding.passes(reason)
        if full.after_s is not None and full.after_s < self.not_before and self._certain(case, series, outlook, full):
            return finding.fails(reason)
        return finding.undecided(reason, InconclusiveReason.NOISE, self._settle(outlook, full))

    def _certain(self, case: Case, series: Series, outlook: Outlook, full: TimeToFull) -> bool:
        """Whether the shapes of growth agree that it is full before the time asked for."""
        life = outlook.life
        if life is None:
            return False
        span_s = life.window.seconds
        begin_s = (life.window.begin_ns - int(life.series.time_ns[0])) * 1e-9
        risk = RISK / max(case.family, 1)
        trend = judge_trend(
            life.series.seconds,
            life.series.values,
            allowed=Tolerance(0.0, span_s, (outlook.limit - full.highest) / self.not_before * span_s),
            span_s=(begin_s, begin_s + span_s),
            quantum=series.trait.quantum,
            thresholds=Thresholds(fail=1 - risk, guard=risk, fail_short=1 - risk),
        )
        return trend.outcome is Outcome.FAIL

    def _settle(self, outlook: Outlook, full: TimeToFull) -> str:
        """How long a run would be that decides, since the error of a slope falls with its length to the power 1.5."""
        allowed = (outlook.limit - full.highest) / self.not_before
        apart, error = abs(allowed - full.rate), full.rate_high - full.rate
        times = math.pow(error / apart, 2 / 3) if apart > 0 else math.inf
        if not 1 < times < _LONGEST:
            return "needs a longer run, or a later look at what it grows with"
        return f"a run of about {duration(math.ceil(times * full.span_s / 3600) * 3600.0)} would decide it"


def _doubts(series: Series, full: TimeToFull) -> list[str]:
    """What the time rests on, where it is less than all of the run."""
    doubts = []
    if full.wave:
        doubts.append("a daily wave was taken out")
    if series.trait.quantum and full.rate_high * full.span_s <= 2 * 3 * series.trait.quantum:
        shown = quantity(series.trait.quantum, series.trait.unit)
        doubts.append(f"the source shows steps of {shown}: smaller growth would not be seen")
    return doubts


TRAITS: Final = Traits(
    words=RuleWords("it will be full too early", happened="{thing} on {target} will be full too early"),
    rank=90,
    limit=Limit.PLAN,
    marks=Marks.WHOLE,
    family=Family.MEMORY,
    guide=Guide(
        fails_when="With 95 % something finite is full before the time that the plan asks for, at the pace of the run.",
        misses="Growth that begins after the run, or comes with more load than it had.",
        change_with="forecast: {not_before: 180d}",
        next_step="Find what fills it; give it more room, restart it in time, or repeat with a longer run.",
    ),
)
