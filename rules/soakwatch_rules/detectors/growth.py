"""Growth: does a series still grow, at the end of the run, faster than allowed?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.fact import CERTAIN, Certainty, Fact
from soakwatch_model.finding import Finding, Forecast, InconclusiveReason, Mark, Outcome
from soakwatch_model.series import Floats, Series, Trait
from soakwatch_model.shared_times import seconds_since
from soakwatch_rules.finding_draft import draft, each_series, half_unread
from soakwatch_rules.growth.lifetimes import (
    GrowthOfLife,
    excess_growth,
    explained_by_longer_life,
    memory_warning,
    reached_before,
)
from soakwatch_rules.growth.load_following import load_followed, load_numbers, part_of_a_wave, with_load
from soakwatch_rules.growth.lowest_readings import judge_lowest_readings
from soakwatch_rules.parameter import Parameters, parameter
from soakwatch_rules.rule import RuleSpec
from soakwatch_rules.sampling import cadence, expected
from soakwatch_rules.series_lives import Life, dead_seconds, lives
from soakwatch_rules.stats.judge_trend import judge_trend
from soakwatch_rules.stats.onset import onset_of
from soakwatch_rules.stats.time_blocks import MIN_SAMPLES
from soakwatch_rules.stats.tolerance import Thresholds, Tolerance
from soakwatch_rules.stats.trend_answer import TrendAnswer
from soakwatch_rules.traits import Family, GrowthMethod, Guide, Marks, RuleWords, Traits
from soakwatch_rules.wording.growth_words import doubts_of, per_hour, sentence, settle_of
from soakwatch_rules.wording.quantities import counted, duration, quantity
from soakwatch_rules.wording.series_names import name_of

_GUARD = 0.05  # risk that the bound of the straight line is wrong
_SUSPECT = 0.5  # share of ``shortest`` from which a straight rise is named
_RISE = 0.03  # share of the level; a daily wave does not rise this much in so short a life
_BIG = 0.25  # share of the window: every life this long must pass


@dataclass(frozen=True, slots=True)
class Growth(Parameters):
    """Fails if a series grows faster than allowed at the end of the run, telling a leak from what only looks like one.

    It fails if the slope at the end of a life exceeds max(``tolerance``·level / ``horizon``, the metric's floor /
    length of the life) with a probability of at least ``fail``. Direction, quantum, floor and ceiling are the metric's.

    1. Blocks. Each life (time between restarts) of at least ``shortest`` and 16 readings is cut into at most 96 equal
       blocks. A block's value is its mean without the lowest and highest 15 %, limited to 4 robust sigmas around a
       running median. The level is the median minus half of the growth over the life (Theil-Sen).
    2. Sawtooth: two abrupt falls or more after straight climbs, which together take back at least what remains at the
       end. It is removed by subtracting from each cycle a straight climb as high as the fall after it, so that the rest
       moves like the floors. The first cycle, whose begin was not seen, and the last, which has not fallen yet, climb
       as usual, or as they do if that is less. After 1.5 times the longest cycle without a fall the sawtooth has ended.
       Up to the highest peak (plus a tenth of a fall) the last climb decides nothing; up to half of a fall above that
       it does not fail by itself.
    3. Shapes, averaged by weight: constant, leak, step, warm-up (exponential or stretched), two warm-ups, plateau, ramp
       between plateaus, late leak, two slopes, bump, half wave, cycle; step, one or two warm-ups, bump or cycle with a
       leak; each with one more step or none; and the best two to six steps anywhere. Errors are AR(1), with ten
       correlations from 0 to .985; weight = prior·exp(-BIC/2). The result is P(slope at the end > allowed). Steps count
       as ended unless they are a habit: more than three, all in one direction, heights and treads within a factor of
       three, the last tread at most 1.5 times the longest; habitual steps continue at their own rate.
    4. Straight line: both the 95 % bound of the slope of at most 48 blocks (its error corrected for AR(1)) and the
       slope of their second half exceed what is allowed.
    5. Decision. Fail at P >= 1 - (1 - ``fail``)/m for m series judged in the run (Bonferroni, likewise for the bound in
       4: the expected number of false failures per run stays below 1 - ``fail``). Fail also if 4 holds and shapes that
       can still grow at the end hold a share of P of at least ``guarded``; a straight line alone cannot tell a leak
       from an unfinished warm-up. Without 4, two kinds of growth do not fail: growth that begins in the last 18 % (or
       after a step there, unless the shapes before it agree on growth); and a leak under a cycle that the other shapes
       do not see, if it is less than twice what is allowed or the run is below 6 h. Pass at P <= ``clear`` without 4,
       if P among the shapes that can still grow is <= ``free`` or the readings exclude those (P <= a tenth of
       ``clear``). Below 6 h, ``fail`` is at least .98 and ``free`` at most .05. Everything else is inconclusive, as are
       growth since a release whose peak has not been reached again, readings too coarse to resolve what is allowed, and
       a cycle as long as the run.
    6. Doubts about small effects do not block a pass; it is noted. That is so if P < .5 and the means of sixteenths of
       the run differ by no more than is allowed in the run (with P <= ``free`` over at least half a ``horizon``: per
       horizon). A wave that swings by at most twice that is not judged as growth; one that was seen whole passes if it
       ended no higher than one period before. Growth since a release that took back everything before it, at half the
       pace or more, is a sawtooth seen once. A release counts only as far as the growth since, if that lasts a quarter
       of the run.
    7. A pass becomes a warning if memory grew by a quarter of its level and was freed within the run, or came within
       5 % of its limit.
    8. If a load explains a share of ``follow`` of the series (least squares on time and load; of all its movement, if
       it follows by five standard errors), the series is judged without the load's part and both are reported. It must
       follow in both halves and in the last third. Growth beside a load that only rises, and could explain it, is
       inconclusive.
    9. Jobs: series that noise leaves undecided, that grew since a release, or that pass as a shape that jobs have
       (bump, cycle, ramp between plateaus, stairs, step, sawtooth) are judged again by their lowest readings, since
       jobs that take memory for a while leave those unchanged: the lowest of each of 24 stretches (not for a sawtooth),
       then of 48 after removing rises of up to a fifth of the life (for a sawtooth, one and a half cycles;
       morphological opening), then, if it ended higher than allowed, without the first third. It fails from P >= .99
       with 4, or with the line after a bend; since a release only if it ended above all of the first third by more than
       allowed. A weaker failure, or a rise in most of the last third, keeps a series that ended higher than allowed
       from passing. A failure becomes inconclusive if a life below 12 h rose by less than 2 % (below 6 h: 3 %, or, if
       restarts cut it out of a longer run, as much as a daily wave of 5 % would lift it), or if one sine of a day
       explains nine tenths of a run of six hours to two days and more than any bent line or parabola.

    A run between half of ``shortest`` and ``shortest`` decides nothing; but a straight rise of 3 % of the level with
    99.9 % probability is named with its rate, and such a doubt keeps the run from passing.

    One failing life fails the series, unless a longer life was as high and passed: a restart cuts sawteeth and
    warm-ups. All lives of at least a quarter of the window must pass. Rates are per hour in the metric's unit; the
    interval is 5 to 95 %. ``smallest_detectable`` is the straight leak that fails with at least 80 % probability:
    allowed + 5 standard errors of the straight line (more with many series or few independent readings).

    How often wrong: ``soakwatch rules growth`` prints the table, 300 synthetic signals a shape. Over all healthy shapes
    0.58 % failed on average (most of half waves: 22 %); of leaks that have to fail 0.15 % passed.

    Known weaknesses: a warm-up longer than a third of the run and half a cycle look like a leak; growth that begins in
    the last fifth, or in up to three steps, is mostly inconclusive; noise correlated over more than a tenth of the run.
    Judged every hour during the run, warm-ups are called growth at some time, so a live finding is a warning.

    Neighbours: ``memory_growth`` is the stage-interval method; where both judged a series, this rule decides. Sums of a
    machine (used, available, committed, utilisation) are judged beside its processes (``memory_sums``), so that a
    process fails once and by its own name. ``queue_growth`` judges queues; ``process_restart`` the restarts between
    lives.

    Parameters: ``tolerance``, ``horizon``, ``fail``, ``guarded``, ``clear``, ``free``, ``shortest``, ``follow``
    (below).

    >>> from soakwatch_model.case import Case
    >>> from soakwatch_model.window import Window
    >>> from soakwatch_rules.signals import LEVEL, leak, noise, warm_up
    >>> flat = noise(seed=1)
    >>> for series in (flat, warm_up(flat, 0.3 * LEVEL, 3600), leak(flat, 0.1 * LEVEL / 86400)):
    ...     print(Growth().judge(Case("dut", series.object, Window(0, 86400 * 10**9), (series,)))[0].outcome)
    pass
    pass
    fail

    References: F. Machida, A. Andrzejak, R. Matias, E. Vicente, On the effectiveness of Mann-Kendall test for detection
    of software aging, ISSREW 2013 (trend tests alone cry wolf on correlated readings); A. Raftery, Bayesian model
    selection in social research, Sociological Methodology 25, 1995 (BIC weights; they take the number of blocks for
    independent); O. Dunn, Multiple comparisons among means, Journal of the American Statistical Association 56, 1961
    (the bar of many series); F. Marriott, J. Pope, Bias in the estimation of autocorrelations, Biometrika 41, 1954.
    """

    name: ClassVar[str] = "growth"
    version: ClassVar[int] = 8
    summary: ClassVar[str] = "grows faster than allowed at the end of the soak"
    metrics: ClassVar[tuple[str, ...]] = (
        "process.memory.usage",
        "process.memory.pss",
        "process.memory.uss",
        "process.threads",
        "process.open_files",
        "system.memory.usage",
        "system.memory.available",
        "system.memory.committed",
        "system.memory.swap.usage",
        "system.memory.utilization",
        "system.memory.pool.usage",
        "system.memory.pool.utilization",
        "system.memory.pool.largest_free",
        "system.sessions",
        "system.conntrack.count",
        "system.processes",
        "system.filesystem.usage",
        "monitor.memory.usage",
        "monitor.open_files",
        "monitor.threads",
    )
    scope: ClassVar[Literal["object", "metric", "target"]] = "metric"
    phases: ClassVar[tuple[str, ...]] = ("soak",)
    spec: ClassVar[RuleSpec] = RuleSpec(
        "16 samples over 2 h without a restart and half of those expected; a decision is likely from 96 samples and "
        "12 h",
        shortest_s=7200.0,
        live="minutes",
    )

    order: ClassVar[tuple[str, ...]] = (
        "clear < guarded",
        "guarded <= fail",
    )
    tolerance: float = parameter(
        0.05, "1", "allowed growth per horizon, as a share of the level", "usual practice", within="(0, inf)"
    )
    horizon: float = parameter(86400.0, "s", "time that the tolerance refers to", "a share per day", within="(0, inf)")
    fail: float = parameter(
        0.95, "1", "probability of excessive growth from which it fails", "measured", within="(0, 1)"
    )
    guarded: float = parameter(0.75, "1", "the same, if a straight-line fit confirms it", "measured", within="(0, 1)")
    clear: float = parameter(
        0.05, "1", "probability of excessive growth up to which it passes", "measured", within="(0, 1)"
    )
    free: float = parameter(
        0.2, "1", "the same among shapes that can grow at the end", "measured: power of a pass", within="(0, 1]"
    )
    shortest: float = parameter(
        7200.0,
        "s",
        "shortest time without a restart that is judged",
        "a warm-up of hours looks like growth",
        within="(0, inf)",
    )
    follow: float = parameter(
        0.8,
        "1",
        "share of the variance that a load must explain to be corrected for",
        "measured",
        within="(0, 1]",
    )

    def definition(self) -> str:
        return (
            f"growth if the slope at the end of a lifetime (time between restarts) exceeds {100 * self.tolerance:g} % "
            f"of its level per {duration(self.horizon)} (or the metric's floor per lifetime) with {100 * self.fail:g} "
            f"% probability over all shapes, or {100 * self.guarded:g} % by shapes that can grow where the 95 % bound "
            "of the straight line exceeds it too; up to three steps, or uneven ones, have ended; no growth if with at "
            f"most {100 * self.clear:g} %, and {100 * self.free:g} % among shapes that can grow; under 6 h with 98 and "
            f"5 %; lifetimes of at least {duration(self.shortest)} and 16 samples; corrected for a load that explains "
            f"{100 * self.follow:g} %; a rise of under 2 % in under 12 h is undecided; a straight one of 3 % with "
            f"{100 * CERTAIN:g} % in half of the shortest lifetime is named, and undecided"
        )

    def judge(self, case: Case) -> tuple[Finding, ...]:
        """One finding a series, decided by a life that grows if there is one."""
        return each_series(self, case, "metric that may grow", self._of)

    def _of(self, case: Case, series: Series) -> Finding:
        series = series.between(case.window.begin_ns, case.window.end_ns).finite()
        finding = draft(self, case, series)
        if case.family > 1:
            finding = replace(finding, definition=f"{finding.definition}; {self._of_family(case.family)}")
        apart, lifetimes = cadence(series), lives(series, case.window, case.events)
        dead_s = dead_seconds(series, case.window, case.events)
        if dead_s > 0:
            due = expected(case.window.seconds - dead_s, apart)
            finding = replace(finding, expected=None if due is None else max(due, finding.samples))
        long = [life for life in lifetimes if life.window.seconds >= self.shortest and len(life.series) >= MIN_SAMPLES]
        if not long:
            return self._suspected(self._undecided(finding, case, lifetimes, apart), case, series, lifetimes)
        judged = [self._judged(life, case) for life in long]
        judged = [
            explained_by_longer_life(j) if j.trend.outcome is Outcome.FAIL and reached_before(j, judged) else j
            for j in judged
        ]
        failed = [j for j in judged if j.trend.outcome is Outcome.FAIL]
        if failed:
            worst = max(failed, key=excess_growth)
            result = self._conclude(finding, worst, Outcome.FAIL, series, lifetimes, judged)
            seen = series if worst.left is None else worst.left  # without the load's part, whose wave is no own wave
            return part_of_a_wave(result, worst.trend, worst.life, seen, case.window.seconds)
        big = [j for j in judged if j.life.window.seconds >= _BIG * case.window.seconds] or judged
        open_ = [j for j in big if j.trend.outcome is not Outcome.PASS]
        if open_:
            return self._conclude(
                finding,
                max(open_, key=lambda j: j.life.window.seconds),
                Outcome.INCONCLUSIVE,
                series,
                lifetimes,
                judged,
            )
        read = sum(len(j.life.series) for j in judged)
        if unread := half_unread(finding, read, within=" in lifetimes that are long enough"):
            return unread
        result = self._conclude(finding, max(big, key=excess_growth), Outcome.PASS, series, lifetimes, judged)
        warned = memory_warning(series, case, judged)
        return result if warned is None else result.warns(f"{warned}; {result.reason}")

    def _undecided(self, finding: Finding, case: Case, lifetimes: tuple[Life, ...], apart: float | None) -> Finding:
        longest = max((life.window.seconds for life in lifetimes), default=0.0)
        most = max((len(life.series) for life in lifetimes), default=0)
        if lifetimes and longest < self.shortest:
            whole = case.window.seconds
            where = "the window is" if whole < self.shortest else f"the longest of {len(lifetimes)} lifetimes is"
            missing = duration(max(1.0, self.shortest - longest))
            return finding.undecided(
                f"{where} only {duration(longest)} long, {duration(self.shortest)} needed: until then a "
                "warm-up looks like growth",
                InconclusiveReason.TOO_SHORT,
                f"needs {missing} more without a restart",
            )
        missing_n = max(1, MIN_SAMPLES - most)
        every = f": {duration(missing_n * apart)} more at a sample every {duration(apart)}" if apart is not None else ""
        return finding.undecided(
            f"{counted(most, 'sample')} in the longest lifetime; {MIN_SAMPLES} needed to tell growth from a step",
            InconclusiveReason.TOO_FEW,
            f"needs {counted(missing_n, 'more sample')} without a restart{every}",
        )

    def _suspected(self, short: Finding, case: Case, series: Series, lifetimes: tuple[Life, ...]) -> Finding:
        """The inconclusive finding, naming a straight rise that a run too short to judge shows all the same."""
        whole = len(lifetimes) == 1 and short.why is InconclusiveReason.TOO_SHORT
        if not whole or lifetimes[0].window.seconds < _SUSPECT * self.shortest or len(series) < MIN_SAMPLES:
            return short
        judged = self._judged(lifetimes[0], case)
        trend = judged.trend
        rose = trend.rate * lifetimes[0].window.seconds >= _RISE * abs(trend.level)
        if not (rose and trend.guard and trend.probability >= CERTAIN and trend.shape == "leak"):
            return short
        found = self._conclude(short, judged, Outcome.INCONCLUSIVE, series, lifetimes, [judged])
        return found.undecided(f"{found.reason}; but {short.reason}", InconclusiveReason.TOO_SHORT, short.settle)

    def _judged(self, life: Life, case: Case) -> GrowthOfLife:
        trait = life.series.trait
        time_s = seconds_since(life.series.time_ns, life.window.begin_ns)
        value: Floats = life.series.values
        value = -value if trait.growth == "down" else value
        raw = self._trend(time_s, value, life, trait, case.family)
        if not case.load or raw.mode != "mean":
            return self._by_lowest_readings(GrowthOfLife(life, raw, raw), time_s, value, case.family)
        with np.errstate(all="ignore"):
            load_fit = load_followed(time_s, value, life, case.load, self.follow)
        if load_fit is None:
            return self._by_lowest_readings(GrowthOfLife(life, raw, raw), time_s, value, case.family)
        follows, rest = load_fit
        if follows.straight:
            if raw.outcome is Outcome.FAIL:
                raw = replace(raw, outcome=Outcome.INCONCLUSIVE, why=InconclusiveReason.NO_REFERENCE, hours_needed=None)
                return GrowthOfLife(life, raw, raw, follows)
            return GrowthOfLife(life, raw, raw)
        without_load = self._trend(time_s, rest, life, trait, case.family)
        sign = -1.0 if trait.growth == "down" else 1.0
        return GrowthOfLife(life, without_load, raw, follows, left=replace(life.series, value=sign * rest))

    def _by_lowest_readings(
        self, judged_life: GrowthOfLife, time_s: Floats, value: Floats, family: int
    ) -> GrowthOfLife:
        life = judged_life.life

        def ask(at_s: Floats, low: Floats, begin_s: float) -> TrendAnswer:
            return self._trend(at_s, low, life, life.series.trait, family, begin_s)

        return judge_lowest_readings(judged_life, time_s, value, ask)

    def _bar(self, family: int) -> float:
        """The probability from which one of ``family`` series fails, so that together they err as often as one."""
        return 1 - (1 - self.fail) / family

    def _of_family(self, family: int) -> str:
        return (
            f"one of {family} series judged by this rule in the run, so it fails from {100 * self._bar(family):.4g} % "
            "on (Bonferroni)"
        )

    def _trend(
        self, time_s: Floats, value: Floats, life: Life, trait: Trait, family: int, begin_s: float = 0.0
    ) -> TrendAnswer:
        return judge_trend(
            time_s,
            value,
            allowed=Tolerance(self.tolerance, self.horizon, trait.floor),
            span_s=(begin_s, life.window.seconds),
            quantum=trait.quantum,
            thresholds=Thresholds(self._bar(family), self.guarded, _GUARD / family, self.clear, self.free),
        )

    def _conclude(
        self,
        finding: Finding,
        judged_life: GrowthOfLife,
        outcome: Outcome,
        series: Series,
        lifetimes: tuple[Life, ...],
        judged: list[GrowthOfLife],
    ) -> Finding:
        trend, trait, life = judged_life.trend, series.trait, judged_life.life
        sign = -1 if trait.growth == "down" else 1
        low, high = sorted((per_hour(sign * trend.rate_low), per_hour(sign * trend.rate_high)))
        numbers = _numbers(judged_life, sign) | {"lives": float(len(lifetimes)), "lives_judged": float(len(judged))}
        reason = sentence(
            name_of(series),
            trend,
            trait,
            life.window.seconds,
            None if judged_life.trend is judged_life.raw else judged_life.follows,
        )
        settle = settle_of(trend) if outcome is Outcome.INCONCLUSIVE else ""
        if judged_life.follows is not None:
            numbers |= load_numbers(judged_life.follows, judged_life.raw, sign)
            reason = with_load(reason, judged_life.follows, judged_life.raw, trait)
        known = trend.mode != "none"
        smallest = None
        if trend.smallest_detectable is not None:
            smallest = per_hour(trend.allowed + 2 * trend.smallest_detectable)
        return replace(
            finding,
            outcome=outcome,
            reason=reason,
            why=trend.why if outcome is Outcome.INCONCLUSIVE else None,
            settle=settle,
            measured=per_hour(sign * trend.rate) if known else None,
            limit=per_hour(sign * trend.allowed),
            interval=(low, high) if known else None,
            unit=f"{trait.unit}/h",
            smallest_detectable=smallest,
            detectable_unit=f"{trait.unit}/h",
            marks=tuple(_marks(trend, life, several=len(lifetimes) > 1)),
            numbers={name: number for name, number in numbers.items() if math.isfinite(number)},
            facts=tuple(self._facts(trend, outcome, life)),
            doubts=tuple(_doubts(judged_life, len(lifetimes) - len(judged))),
            forecast=self._forecast(trend, trait, life)
            if outcome is Outcome.FAIL and judged_life.follows is None
            else None,
        )

    def _facts(self, trend: TrendAnswer, outcome: Outcome, life: Life) -> Iterator[Fact]:
        """How certain the growth is, and what grows since when."""
        if math.isfinite(trend.probability):
            yield Certainty(trend.probability, contradicted=trend.guard)
        if outcome in {Outcome.FAIL, Outcome.WARN}:
            yield from onset_of(life.series)

    def _forecast(self, trend: TrendAnswer, trait: Trait, life: Life) -> Forecast | None:
        line, down = trend.line, trait.growth == "down"
        end = trait.low if down else trait.ceiling
        if line is None or end is None or not (line.low > 0 and trend.probability >= self.fail):
            return None
        room = (-end if down else end) - line.centre
        since = life.window.seconds - line.centre_s
        with np.errstate(all="ignore"):
            after, soon, late = (room / slope - since for slope in (line.slope, line.high, line.low))
        if not (0 < after < math.inf and math.isfinite(late) and late - soon <= after):
            return None
        what = f"its {'minimum' if down else 'limit'} ({quantity(end, trait.unit)})"
        return Forecast(what, after, max(0.0, soon), late)


def _numbers(judged_life: GrowthOfLife, sign: int) -> dict[str, float]:
    trend = judged_life.trend
    return {
        "probability": trend.probability,
        "shape_weight": trend.weight,
        "level": abs(trend.level),
        "allowed_per_hour": per_hour(sign * trend.allowed),
        "blocks": float(trend.blocks),
        "missing_blocks": trend.missing,
        "correlation": trend.correlation,
        "cycles": float(trend.cycles),
        "straight_line": float(trend.guard),
    }


def _marks(trend: TrendAnswer, life: Life, *, several: bool) -> Iterator[Mark]:
    """The judged life if there are ``several``, and where its slope changed."""
    if several:
        yield Mark(life.window.begin_ns, life.window.end_ns, "the decisive lifetime")
    if trend.bend_s is not None:
        yield Mark(life.window.begin_ns + round(trend.bend_s * 1e9), None, f"change of slope ({trend.shape})")


def _doubts(judged_life: GrowthOfLife, unjudged: int) -> Iterator[str]:
    yield from doubts_of(judged_life.trend, judged_life.life.window.seconds)
    if judged_life.lowest:
        yield f"judged by the lowest sample of each of {judged_life.lowest}: means cannot distinguish it from jobs"
    if judged_life.cut:
        yield "a longer lifetime reached the same level and passed: a restart cut a sawtooth or a warm-up"
    if unjudged:
        yield f"{counted(unjudged, 'lifetime')} between restarts too short to judge"


TRAITS: Final = Traits(
    words=RuleWords("something keeps growing", happened="{thing} on {target} keeps growing"),
    rank=80,
    marks=Marks.WHOLE,
    growth=GrowthMethod.SHAPE,
    family=Family.MEMORY,
    guide=Guide(
        fails_when=(
            "At the end of the soak it grows faster than allowed (by default 5 % of its level a day) with 95 % "
            "certainty."
        ),
        misses="Soaks under 2 h, growth below the limit, and a leak that a sawtooth or a daily cycle hides.",
        change_with="growth: {tolerance: 10%, horizon: 24h}",
        next_step=(
            "Take a heap profile (or the vendor's memory report) now and some hours later, compare the two, and repeat"
            " the run at half of the load: a leak per request halves too."
        ),
    ),
)
