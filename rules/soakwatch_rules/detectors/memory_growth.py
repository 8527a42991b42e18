"""Memory growth by the stage-interval method: is memory higher in the last third than in the first?"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.fact import Growth
from soakwatch_model.finding import Finding, InconclusiveReason, Mark
from soakwatch_model.roles import MONITOR
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.events.explanations import explanations, load_around
from soakwatch_rules.finding_draft import draft, each_series, half_unread
from soakwatch_rules.load.load_account import LoadAccount
from soakwatch_rules.parameter import Parameters, parameter
from soakwatch_rules.rule import RuleSpec
from soakwatch_rules.sampling import cadence, expected
from soakwatch_rules.series_lives import Life, dead_seconds, lives
from soakwatch_rules.stats.onset import onset_of
from soakwatch_rules.stats.rises import Rise, exceeds_start_up, rise_of
from soakwatch_rules.stats.stages import Comparison, compare, stages, still_rising
from soakwatch_rules.traits import Family, GrowthMethod, Guide, Marks, RuleWords, Traits
from soakwatch_rules.wording.quantities import counted, duration
from soakwatch_rules.wording.stage import JudgedLife, doubts_of, sentence

SHAPE, STAGES = 0.0, 1.0  # the choices of ``method``
_LEVELLED = 0.125  # share of the rise within the last third below which it has levelled off; a straight line has 0.25
_CUT = 0.75  # share of the window: a shorter life was cut by restarts
_EXPLAINS_S = 60.0  # a change of the load takes effect within a minute
_SLACK = 0.05  # of a run, at most
_CHANGED = 0.1  # share by which the load must have risen to explain a rise of memory
_OF_THE_RUN = " in the run (of available memory: lies below it), whatever the shape between them"
_UNLESS_FLAT = (
    "; only a warning if the rule growth judged the series and found none, or if the last third itself does not rise, "
    "unless it holds 1.8 times the first (2.5 times what rose from the first sample on) and neither a phase nor the "
    "load explains it"
)


@dataclass(frozen=True, slots=True)
class MemoryGrowth(Parameters):
    """Fails if the last third of a life lies above the first by more than their spread and the tolerance.

    A life (the time between two restarts) is divided into three equal stages by time; mean and sd (divisor n - 1) of
    the first (A) and the last (C) are taken over all their samples. It grew if and only if the intervals mean ±
    width·sd do not overlap AND mean C > (1 + tolerance)·mean A. Available memory counts downwards. The method is kept
    because users ask for it by name. Its literal wording also calls it growth if the intervals overlap but mean A <
    mean C·(1 - tolerance); where that differs, the finding says so.

    Because it compares populations, it is robust to noise and gaps, and more readings do not help. The tolerance is a
    ratio for the whole life, not a rate.

    How often wrong, measured on 100 seeded synthetic signals a shape (24 h, noise sd 1 % of the level, one reading a
    minute, tolerance 5 %): false growth in 0 % of white and AR(1) noise up to φ .999, hourly sawteeth of 20 %, readings
    in steps of 4 %, gaps, and warm-ups of 30 % with a time constant of 1 h; in 31 % under a daily wave of 5 %, in 100 %
    of lasting steps of 10 % and of warm-ups with a time constant of 4 h. A leak of 10 % a day is found in 100 % (97 %
    at φ .99, 0 % under sawteeth of 20 %), 5 % a day in 0 %, 20 % a day that begins at 60 % of the run in 9 %. Lives of
    30 s to 5 min at one reading a second (200 seeds): false growth in 0 % of noise of sd 1 % that wanders with a time
    constant of up to 5 min; of sd 3 % up to 9 %, of sd 5 % up to 18 %, most if a life lasts three to six time
    constants. Known weaknesses: a warm-up that lasts into the last two thirds, a cache that fills and a step count as
    growth; a leak smaller than the spread (sawtooth, daily cycle) or than the tolerance passes. Before the end of a run
    it mostly sees the warm-up, so read a live growth as a warning.

    Its result is always shown, and decides if ``growth`` did not judge the series or could not (a window shorter than
    its ``shortest``, too few samples). If ``growth`` found no growth, or is undecided, this is a warning that states
    both (the rulings on memory). Sums of a machine are judged together with the processes that were read
    (``memory_sums``). A life too short for ``growth`` only warns if its last third does not rise (the program is warm
    by then). It fails all the same if the last third holds 1.8 times the first (2.5 times if it rose from the first
    reading on), more than any start-up leaves, and no phase, event or change of the load began then. If memory is
    released at the end of a life, it is judged up to the release.

    With ``method: stages`` it decides alone, by the literal wording: committed and available memory (downwards) each by
    itself, half of ``least`` samples a third (24 hourly polls decide even if one is lost), the tolerance for the whole
    run. Then ``growth`` only warns about such a series.

    For the monitor's own memory the first hour of each life (``warm_up``) is left out, because the monitor fills caches
    that hold an hour. Growth after that is judged as usual, and only warns.

    Neighbours: ``process_restart`` reports the restarts between lives, ``oom_kill`` memory that ran out.

    Parameters: ``tolerance``, ``width``, ``least``, ``stage``, ``warm_up``, ``method`` (below).

    >>> import numpy as np
    >>> from soakwatch_model.case import Case
    >>> from soakwatch_model.window import Window
    >>> from soakwatch_rules.signals import leak, noise
    >>> end = 3600 * 10**9
    >>> flat = noise(seed=1, metric="process.memory.usage", seconds=3600, cadence_s=10)
    >>> leaking = leak(flat, rate=flat.value[0] / 3600 * 0.3)
    >>> for series in (flat, leaking):
    ...     print(MemoryGrowth().judge(Case("dut", series.object, Window(0, end), (series,)))[0].outcome)
    pass
    fail

    References: F. Machida, A. Andrzejak, R. Matias, E. Vicente, On the effectiveness of Mann-Kendall test for
    detection of software aging, ISSREW 2013 (why a trend test alone does no better on correlated readings). The
    threshold in closed form: growth over a life is seen from 3·width·s / sqrt(1 - width²/12) on, for width 1
    3.13 s (s: sd of the noise), whatever the number of readings.
    """

    name: ClassVar[str] = "memory_growth"
    version: ClassVar[int] = 3
    summary: ClassVar[str] = "memory was higher in the last third of the soak than in the first"
    metrics: ClassVar[tuple[str, ...]] = (
        "process.memory.usage",
        "system.memory.usage",
        "system.memory.available",
        "system.memory.committed",
        "system.memory.utilization",
        "system.memory.pool.usage",
        "system.memory.pool.utilization",
        "monitor.memory.usage",  # the monitor is judged by its own rules
    )
    scope: ClassVar[Literal["object", "metric", "target"]] = "metric"
    phases: ClassVar[tuple[str, ...]] = ("soak",)
    spec: ClassVar[RuleSpec] = RuleSpec(
        "8 samples and 10 s in the first and in the last third of a lifetime (4 with method: stages), half of those "
        "expected",
        live="minutes",
    )

    tolerance: float = parameter(0.05, "1", "allowed growth of the mean", "the method's definition")
    width: float = parameter(
        1.0, "{sd}", "half width of a stage's interval", "the method's definition", within="(0, 3]"
    )
    least: float = parameter(
        8.0,
        "{reading}",
        "samples that the first and the last stage need each (stages: half)",
        "half of 16 blocks",
        within="[2, inf)",
    )
    stage: float = parameter(10.0, "s", "shortest stage that is compared", "less is a starting program, not a soak")
    warm_up: float = parameter(
        3600.0, "s", "first part of a life of the monitor that is not judged", "the monitor keeps the last hour at hand"
    )
    method: float = parameter(
        SHAPE,
        "{way}",
        "what decides: the shape (rule growth), where it can, or the stages alone, as the method is worded",
        "a warm-up is not a leak",
        ("shape", "stages"),
    )

    @property
    def alone(self) -> bool:
        """Whether the stages decide without the rule ``growth``."""
        return self.method > SHAPE

    @property
    def needed(self) -> float:
        """Samples needed in each of the first and the last stage."""
        return self.least / 2 if self.alone else self.least

    def definition(self) -> str:
        return (
            f"growth if, between two restarts, the intervals mean ± {self.width:g} sd of the first and the last third "
            f"(by time) do not overlap and the last mean exceeds the first by more than {100 * self.tolerance:g} %"
            f"{_OF_THE_RUN if self.alone else ''}; each third needs {self.needed:g} samples and "
            f"{duration(self.stage)}, each lifetime and all together half of those expected"
            f"{'' if self.alone else _UNLESS_FLAT}; of the monitor's own memory the first "
            f"{duration(self.warm_up)} of each lifetime is left out"
        )

    def judge(self, case: Case) -> tuple[Finding, ...]:
        """One finding a series, decided by the life that grew most."""
        return each_series(self, case, "memory usage", self._of)

    def _of(self, case: Case, series: Series) -> Finding:
        series = series.between(case.window.begin_ns, case.window.end_ns).finite()
        finding = draft(self, case, series)
        apart, all_lives = cadence(series), lives(series, case.window, case.events)
        dead_s, window_s = dead_seconds(series, case.window, case.events), case.window.seconds
        if case.role == MONITOR and self.warm_up > 0:
            all_lives = tuple(warm for life in all_lives if (warm := _after(life, self.warm_up)) is not None)
            window_s = sum(life.window.seconds for life in all_lives)
            finding = self._without_warm_up(finding, all_lives, expected(window_s, apart))
            if not all_lives:
                return finding
        elif dead_s > 0:
            due = expected(case.window.seconds - dead_s, apart)
            finding = replace(finding, expected=None if due is None else max(due, finding.samples))
        with np.errstate(all="ignore"):
            judged = [c for life in all_lives if (c := self._compare(case, life, apart)) is not None]
        if not judged:
            return self._undecided(finding, all_lives, apart)
        worst = max(judged, key=lambda j: (j.of.grows, j.of.rise - max(j.of.allowed, j.of.spread)))
        # One life that rises may be a warm-up or a part of a sawtooth; if every life rises, it is a leak.
        again = sum(j.of.grows and not j.levelled for j in judged) > 1
        cut = worst.life.window.seconds < _CUT * window_s and not again
        finding = self._measured(finding, worst, series, len(all_lives), len(judged), cut=cut)
        if worst.of.grows:
            return finding.fails(sentence(worst, series, self.tolerance, len(all_lives)))
        read = sum(len(c.life.series) for c in judged)
        if unread := half_unread(finding, read, within=" in lifetimes that are long enough"):
            return unread
        return finding.passes(sentence(worst, series, self.tolerance, len(all_lives)))

    def _without_warm_up(self, finding: Finding, warm: tuple[Life, ...], due: int | None) -> Finding:
        """The monitor's finding on what came after its warm-up, undecided if nothing did."""
        first = f"the first {duration(self.warm_up)} of the monitor is its warm-up, which is not judged"
        samples = sum(len(life.series) for life in warm)
        finding = replace(finding, samples=samples, definition=f"{finding.definition}; {first}")
        if warm:
            return replace(finding, expected=None if due is None else max(due, samples))
        return finding.undecided(first, InconclusiveReason.TOO_SHORT, "needs a longer run")

    def _compare(self, case: Case, life: Life, apart: float | None) -> JudgedLife | None:
        window, series = life.window, life.series
        due = expected(window.seconds, apart)
        if due is not None and 2 * len(series) < due:
            return None
        parts = stages(series.time_ns, series.values, window.begin_ns, window.end_ns)
        if min(parts[0].n, parts[2].n) < self.needed or window.seconds < 3 * self.stage:
            return None
        down, quantum = series.trait.growth == "down", series.trait.quantum
        compared = compare(parts, down=down, tolerance=self.tolerance, width=self.width, quantum=quantum)
        if compared is None:
            return None
        if not compared.grows:
            return JudgedLife(life, compared)
        lately = _lately(series, window, compared)
        rise = rise_of(series.time_ns, series.values, window.begin_ns, window.end_ns, down=down)
        if rise is None or not lately < _LEVELLED:
            return JudgedLife(life, compared, lately, levelled=lately < _LEVELLED)
        if rise.released_ns is not None:
            held = Window(window.begin_ns, rise.released_ns)
            until = stages(series.time_ns, series.values, held.begin_ns, held.end_ns)
            whole = compare(until, down=down, tolerance=self.tolerance, width=self.width, quantum=quantum)
            if whole is not None and whole.grows:
                lately = _lately(series, held, whole)
        large = exceeds_start_up(compared.first, compared.last, rise, down=down) and not _explained(case, series, rise)
        return JudgedLife(life, compared, lately, levelled=lately < _LEVELLED and not large)

    def _undecided(self, finding: Finding, lifetimes: tuple[Life, ...], apart: float | None) -> Finding:
        needed = 3 * self.needed
        most = max((len(life.series) for life in lifetimes), default=0)
        between = " between restarts" if len(lifetimes) > 1 else ""
        reason = f"only {counted(most, 'sample')}{between}; {needed:g} needed"
        if apart is None:
            settle = f"needs at least {needed:g} samples without a restart"
            return finding.undecided(reason, InconclusiveReason.TOO_FEW, settle)
        length_s = min(most * apart, max((life.window.seconds for life in lifetimes), default=0.0))
        missing = max(needed * apart, 3 * self.stage) - length_s
        if missing <= 0:
            of = f" of {finding.expected:,} expected" if finding.expected is not None else ""
            reason = f"{counted(finding.samples, 'sample')}{of}: too few in the first or in the last third"
            settle = "needs samples in the first and the last third, and half of those expected"
            return finding.undecided(reason, InconclusiveReason.GAP, settle)
        if most >= needed:
            reason = f"only {duration(length_s)} of samples{between}; {duration(3 * self.stage)} needed"
        settle = (
            f"needs {duration(missing)} more without a restart, or more frequent polls (now every {duration(apart)})"
        )
        return finding.undecided(reason, InconclusiveReason.TOO_SHORT, settle)

    def _measured(
        self, finding: Finding, worst: JudgedLife, series: Series, alive: int, judged: int, *, cut: bool
    ) -> Finding:
        c, (first, middle, last) = worst.of, worst.of.stages
        sign = -1 if series.trait.growth == "down" else 1
        numbers = {
            "mean_first": c.first,
            "sd_first": c.sds[0],
            "n_first": float(first.n),
            "mean_last": c.last,
            "sd_last": c.sds[1],
            "n_last": float(last.n),
            "intervals_cross": float(c.crosses),
            "rise_per_hour": sign * c.rise / worst.hours,
            "smallest_rise": c.smallest,
            "lives": float(alive),
            "lives_judged": float(judged),
            "tolerance": self.tolerance,
        }
        if middle.mean is not None:
            numbers["mean_middle"] = middle.mean
        if math.isfinite(worst.lately):
            numbers["lately"] = worst.lately
        change = (c.last - c.first) / abs(c.first) if c.first != 0 else None
        numbers |= {} if change is None else {"change": change}
        numbers |= {"cut_by_restarts": 1.0} if cut else {}
        grew = Growth(numbers["rise_per_hour"], change, self.tolerance, worst.levelled, cut)
        half, decided = self.width * c.sds[1], worst.life.window
        return replace(
            finding,
            measured=c.last,
            limit=c.first + sign * max(c.allowed, c.spread),
            interval=(c.last - half, c.last + half),
            unit=series.trait.unit,
            smallest_detectable=c.smallest / worst.hours,
            detectable_unit=f"{series.trait.unit}/h",
            marks=(Mark(decided.begin_ns, decided.end_ns, "the decisive lifetime"),) if alive > 1 else (),
            facts=(grew, *(onset_of(series.between(decided.begin_ns, decided.end_ns)) if c.grows else ())),
            numbers=numbers,
            doubts=doubts_of(worst, series, alive - judged, self.tolerance),
        )


def _lately(series: Series, window: Window, of: Comparison) -> float:
    """The share of the whole rise that falls in the last third, or twice that in the last sixth if this is less."""
    down = series.trait.growth == "down"
    sixth, twelfth = (
        still_rising(stages(series.time_ns, series.values, window.begin_ns, window.end_ns, part), of, down=down)
        for part in (6, 12)
    )
    return float(np.fmin(sixth, 2 * twelfth))


def _explained(case: Case, series: Series, rise: Rise) -> bool:
    """Whether an event, a phase or a change of the load happened when half of the rise was reached."""
    slack_ns = max(round(_EXPLAINS_S * 1e9), round(3e9 * (cadence(series) or 1.0)))
    slack_ns = min(slack_ns, round(_SLACK * case.window.seconds * 1e9))
    if explanations(case, series, rise.half_ns, slack_ns, _CHANGED, 2 * _EXPLAINS_S):
        return True
    loads = (load_around(load, rise.half_ns, slack_ns, 2 * _EXPLAINS_S) for load in LoadAccount.of(case.load).demand())
    return any(None not in {a, b} and (b or 0.0) > (1 + _CHANGED) * (a or 0.0) for a, b in loads)


def _after(life: Life, seconds: float) -> Life | None:
    """The life from ``seconds`` after its first reading on; None if it has no reading then."""
    begin_ns = int(life.series.time_ns[0]) + round(seconds * 1e9)
    rest = life.series.between(begin_ns, life.window.end_ns)
    return Life(Window(begin_ns, life.window.end_ns), rest) if len(rest) else None


TRAITS: Final = Traits(
    words=RuleWords("memory keeps growing", happened="memory of {thing} on {target} keeps growing"),
    rank=81,
    marks=Marks.WHOLE,
    growth=GrowthMethod.STAGES,
    family=Family.MEMORY,
    guide=Guide(
        fails_when="The last third of the soak lies above the first by more than their spread and 5 %.",
        misses="Leaks smaller than that; a warm-up or a cache that fills looks the same, so short soaks alarm on them.",
        change_with="memory_growth: {tolerance: 10%, method: stages}",
        next_step=(
            "Run it for 2 h or more, so that the rule growth can tell a leak from a warm-up; take a heap profile at "
            "both ends and compare."
        ),
    ),
)
