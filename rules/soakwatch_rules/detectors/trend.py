"""Trend: a level that no rule of its own watches moves steadily the wrong way through the whole run"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.fact import Happened
from soakwatch_model.finding import Finding, InconclusiveReason, Mark, Outcome
from soakwatch_model.metric import DOWN
from soakwatch_model.metric_entry import WARNS
from soakwatch_model.metric_queries import bad_direction, trending, why_mild, words_of
from soakwatch_model.series import Floats, Series
from soakwatch_model.shared_times import seconds_since
from soakwatch_model.window import Window
from soakwatch_rules.finding_draft import draft, each_series, half_unread
from soakwatch_rules.growth.load_following import load_followed
from soakwatch_rules.load.load_account import LoadAccount
from soakwatch_rules.parameter import Parameters, parameter
from soakwatch_rules.rule import RuleSpec
from soakwatch_rules.sampling import cadence
from soakwatch_rules.series_lives import Life, lives
from soakwatch_rules.stats.ar1 import slope
from soakwatch_rules.stats.daily import DAY_S, is_daily_sine
from soakwatch_rules.stats.judge_trend import judge_trend
from soakwatch_rules.stats.onset import onset_of
from soakwatch_rules.stats.steady import Rise, rise_of, rises_throughout
from soakwatch_rules.stats.time_blocks import Blocks, blocks, without_jobs
from soakwatch_rules.stats.tolerance import Thresholds, Tolerance
from soakwatch_rules.stats.value_ceiling import Ceiling, ceiling_of
from soakwatch_rules.traits import Guide, Marks, RuleWords, Traits
from soakwatch_rules.wording.quantities import counted, duration, quantity
from soakwatch_rules.wording.series_names import name_of

_BLOCKS: Final = 48
_SCREEN: Final = 0.5  # share of the least rise below which a series passes at once
_FOLLOWS: Final = 0.2  # share of the movement that a load must explain for its part to be taken out
_EXPLAINS: Final = 0.5  # the same for a load that only rises
_PART_OF_A_DAY: Final = 0.65  # share of a day: a shorter run may rise with the daily wave
_WARM: Final = "Cel"
_UNKNOWN: Final = 0.5  # share of missing blocks above which nothing is decided
_FLOORS: Final = {"s": 1e-4, "{process}": 1.0, "W": 10.0, "{session}/s": 1.0}
"""By unit, the rise that is negligible, however large its share."""
_STEADY_LOAD: Final = 0.05  # a steady load stays within this share of its mean, up or down
_LIKELY: Final = 0.95  # probability from which a doubt is reported
_EVENS: Final = 0.5  # the same for a large rise
_LARGE: Final = 2.0  # times the least rise: more than a room and a warm-up do together
_ENOUGH: Final = ((3.0, 0.5), (_LARGE, 0.75))
"""Times the least rise, and the probability that suffices for it if each part of the run lies above the one before."""
_HOT: Final = 2.5  # times the least rise of a temperature: devices warm up in hours, a room varies by half the least
_WHOLE: Final = 0.5  # share of the risk for the shapes of a whole life
_OTHER: Final = 0.125  # share of the risk for its parts, and for each test of the way to a ceiling
_UNBROKEN: Final = 0.35  # least share of a rise in the second half of the way to a ceiling: a warm-up slows down there
_FULL: Final = (0.9, 1.02)  # where the ceiling of a share may lie (some sources read slightly over 1)
_BAND: Final = 0.02  # what is this close to the ceiling is at it
_STAYS_S: Final = 0.5 * DAY_S  # no daily wave stays at its top for longer


@dataclass(frozen=True, slots=True)
class JudgedLife:
    """The result of one life: its rise in the bad direction, and why it does not fail if it might."""

    outcome: Outcome
    rise: Rise
    life: Life  # up to the ceiling if it reached one
    cut: Blocks
    probability: float
    why: str
    ceiling: Ceiling | None = None
    stayed_s: float = 0.0  # time at the ceiling after ``life``


@dataclass(frozen=True, slots=True)
class Trend(Parameters):
    """Fails if a level moves steadily in its bad direction through the whole run: CPU that creeps up, a board that gets
    hotter, answers that get slower. The catalogue says for each metric which direction is bad and whether it fails or
    only warns (``soakwatch metrics NAME``).

    Each life (between reboots; for a process between its restarts) of at least ``shortest`` is cut into 48 blocks, each
    the mean without 15 % at both ends; jobs that raise a share for at most a twelfth of the life are left out. The rise
    is 1.5 times the difference of the medians of the outer thirds. The least rise that counts is ``points`` for a
    share, ``kelvin`` for a temperature, else ``share`` of the level at the start (and at least 0.1 ms, one process,
    10 W, one session a second). Less than half of it passes at once. The others are judged:

    1. The part that a load explains (at least a fifth of the movement, in each part of the life) is taken out.
    2. The rise must be steady: at least a quarter of it falls in the second half, its highest eighth is the last, and
       four of five pairs of eighths rise.
    3. The shapes of ``growth`` (warm-ups, steps, bumps, waves, plateaus, lines; correlated errors) must show, with a
       risk of ``risk``/2m, that it rises at the end by more than the least rise per run; or with .75 if the
       AR(1)-corrected straight line shows it with that risk. m is the number of series judged in the run (Bonferroni),
       so that all of them together fail a healthy night with at most ``risk``.
    4. A large rise of twice (three times) the least also fails with .75 (.5) from the shapes, if the load is known (or
       it is a temperature) and at least eight parts of the run each lie above the one before: so many that chance
       orders them so with a risk of ``risk``/8m (Kendall). A temperature that rises so by 2.5 times the least fails
       whatever its shape: devices are warm after some hours, and a room that cools hides a rise.
    5. A share that ends at its ceiling (.9 to 1.02, within two points of it) cannot rise to the end, so the way to the
       ceiling is judged likewise, each test with ``risk``/8m. About a third of its rise must fall in its second half; a
       rise that slows down before the ceiling is a warm-up.
    6. These only warn: a rise in less than two thirds of a day unless the load is known to be steady, and of a
       temperature in any such run (a daily wave; none stays at its ceiling for half a day); a rise that a sine of a day
       explains; a rise beside a load that rises too; a rise that the shapes only call likely.

    How often wrong: `soakwatch rules trend` shows the measured table. Known weaknesses: a level other than a share
    that reaches a ceiling; half of a wave of some days with no load known, and a warm-up with a time constant of half a
    run, look like a trend; a creep that begins in the last third, or comes in few steps, passes (``step_change`` sees
    the steps); so does one that a falling load hides.

    Neighbours: ``growth`` and ``memory_growth`` judge what fills up, ``performance_decline`` throughput, ``latency``
    answers that became slow and stayed so, ``step_change`` steps, ``hardware_limit`` limits that the device states.

    Parameters: ``points``, ``kelvin``, ``share``, ``risk``, ``shortest`` (below).

    >>> from soakwatch_model.case import Case
    >>> from soakwatch_model.window import Window
    >>> from soakwatch_rules.signals import readings
    >>> busy = 0.05 + 0.01 * np.random.default_rng(1).standard_normal(1440)
    >>> for rise in (0.0, 0.24):
    ...     series = readings("system.cpu.utilization", busy + np.linspace(0.0, rise, 1440), 60.0)
    ...     finding = Trend().judge(Case("dut", "", Window(0, 86400 * 10**9), (series,)))[0]
    ...     print(finding.outcome, "-", finding.reason.partition(";")[0])
    pass - CPU did not rise by 5 points
    fail - CPU rose steadily from 5.27 % to 28.6 % in 24 h (0.97 points/h)

    References: as of ``growth`` (shape averaging by BIC; Bonferroni, O. Dunn 1961); M. Kendall, A new measure of rank
    correlation, Biometrika 30, 1938; H. Theil 1950.
    """

    name: ClassVar[str] = "trend"
    version: ClassVar[int] = 2
    summary: ClassVar[str] = "a level moved steadily the wrong way through the run"
    metrics: ClassVar[tuple[str, ...]] = trending()
    scope: ClassVar[Literal["object", "metric", "target"]] = "metric"
    phases: ClassVar[tuple[str, ...]] = ("soak",)
    spec: ClassVar[RuleSpec] = RuleSpec(
        "24 blocks over 6 h without a restart, and half of the samples", shortest_s=21600.0, live="end"
    )

    points: float = parameter(
        0.10,
        "1",
        "rise of a share (CPU) in the run that counts",
        "a twentieth is daily variation",
        within="(0, 1)",
    )
    kelvin: float = parameter(
        10.0, "Cel", "rise of a temperature in the run that counts", "a room varies by five", within="(0, inf)"
    )
    share: float = parameter(
        0.5, "1", "rise of all else, as a share of the begin", "finds a doubled latency", within="(0, inf)"
    )
    risk: float = parameter(
        0.005, "1", "risk of one false failure in a healthy run", "one night in two hundred", within="(0, 0.25)"
    )
    shortest: float = parameter(
        21600.0, "s", "shortest time without a restart that is judged", "warm-ups take hours", within="(0, inf)"
    )

    def definition(self) -> str:
        return (
            f"a rise (a fall, where that is bad) of {100 * self.points:g} points, {self.kelvin:g} K or "
            f"{100 * self.share:g} % of the begin, all through the run of at least {duration(self.shortest)} and still "
            "at its end (of a share, until it came to its ceiling), beside what the load explains, with a risk of "
            f"{100 * self.risk:g} % over all series of the "
            "run; in less than 16 h it only warns unless the load is steady, and some metrics only warn"
        )

    def judge(self, case: Case) -> tuple[Finding, ...]:
        """One finding a series."""
        return each_series(self, case, "level that may creep", self._of)

    def _of(self, case: Case, series: Series) -> Finding:
        series = series.between(case.window.begin_ns, case.window.end_ns).finite()
        finding, apart = replace(draft(self, case, series), unit=series.trait.unit), cadence(series)
        value = series.values
        if apart is None or len(series) < _BLOCKS // 2 or float(np.max(np.abs(value))) > 1e150:
            reason = f"{counted(len(series), 'sample')} of {name_of(series)}: too few to see a trend"
            return finding.undecided(reason, InconclusiveReason.TOO_FEW, f"needs {_BLOCKS} samples")
        of_lives = lives(series, case.window, case.events)
        judged = [
            life for life in of_lives if life.window.seconds >= self.shortest and len(life.series) >= _BLOCKS // 2
        ]
        if not judged:
            longest = max((life.window.seconds for life in of_lives), default=0.0)
            reason = (
                f"{name_of(series)}: at most {duration(longest)} without a restart, {duration(self.shortest)} needed"
            )
            settle = f"needs {duration(self.shortest)} without a restart"
            return finding.undecided(reason, InconclusiveReason.TOO_SHORT, settle)
        if unread := half_unread(finding, len(series)):
            return unread
        with np.errstate(all="ignore"):
            results = [self._of_life(case, series, life) for life in judged]
        worst = max(results, key=lambda each: (_RANK[each.outcome], each.rise.height))
        return self._said(finding, series, worst)

    def _least(self, series: Series, first: float) -> float:
        """The least rise that counts for a level that begins at ``first``."""
        if series.trait.unit == _WARM:
            return self.kelvin
        if series.trait.unit == "1":
            return self.points
        return max(self.share * abs(first), _FLOORS.get(series.trait.unit, 0.0))

    def _of_life(self, case: Case, series: Series, life: Life) -> JudgedLife:
        """The result of a life as a whole, or, if worse, of its way to the ceiling at which it ends."""
        cut = _cut(life, _sign(series) * life.series.values)
        whole = self._of_blocks(case, series, life, cut)
        low, high = _FULL
        bounded = _bounded(series) and whole.outcome is not Outcome.FAIL
        ceiling = ceiling_of(cut.value, low=low, high=high, band=_BAND) if bounded else None
        if ceiling is None:
            return whole
        up_s = life.window.seconds * ceiling.first / len(cut)
        window = Window(life.window.begin_ns, life.window.begin_ns + round(up_s * 1e9))
        way = Life(window, life.series.between(window.begin_ns, window.end_ns))
        if up_s < self.shortest or len(way.series) < _BLOCKS // 2:
            return whole
        stayed_s = life.window.seconds - up_s
        up = self._of_blocks(case, series, way, _cut(way, _sign(series) * way.series.values), stayed_s)
        return replace(up, ceiling=ceiling, stayed_s=stayed_s) if _RANK[up.outcome] > _RANK[whole.outcome] else whole

    def _of_blocks(self, case: Case, series: Series, life: Life, cut: Blocks, stayed_s: float = 0.0) -> JudgedLife:
        """The result of a life cut into blocks, which then stayed at its ceiling for ``stayed_s``."""
        read, rise = cut, rise_of(cut.value)
        if cut.missing > _UNKNOWN:
            return JudgedLife(Outcome.INCONCLUSIVE, rise, life, cut, 0.0, "")
        if rise.height < _SCREEN * self._least(series, rise.first):
            return JudgedLife(Outcome.PASS, rise, life, cut, 0.0, "")
        # A rise that follows a load is judged without the load's part, unless both rise in straight lines.
        load = tuple(of for of in case.load if of.target != series.target or of.metric != series.metric)
        value, straight = _sign(series) * life.series.values, ""
        if (found := load_followed(_seconds(life), value, life, load, _FOLLOWS)) is not None:
            follows, rest = found
            if not follows.straight:
                cut = _cut(life, rest)
            elif follows.share >= _EXPLAINS:
                straight = f"{words_of(follows.metric)} rises too, and would explain it"
        # A share cannot rise for ever; what jobs add to it for a while is taken out.
        if _bounded(series):
            cut = replace(cut, value=without_jobs(cut.value, _SCREEN * self.points))
        rise = rise_of(cut.value)
        least = self._least(series, rise.first)
        each = self.risk / max(case.family, 1)
        everywhere = rise.height >= _LARGE * least and rises_throughout(cut.value, _OTHER * each)
        hot = everywhere and series.trait.unit == _WARM and rise.height >= _HOT * least
        steady = rise.steady and not (stayed_s and rise.late < _UNBROKEN)
        if rise.height < least or not (steady or hot):
            return JudgedLife(Outcome.PASS, rise, life, read, 0.0, "")
        # The shape must confirm the rise, unless it is so large and so steady that its shape does not matter.
        risk = each * (_OTHER if stayed_s else _WHOLE)
        wanted = Thresholds(fail=1 - risk, guard=risk, fail_short=1 - risk)
        answer = judge_trend(
            cut.time_s,
            cut.value,
            allowed=Tolerance(0.0, DAY_S, least),
            span_s=(0.0, life.window.seconds),
            sawtooth=False,
            thresholds=wanted,
        )
        times, likely = rise.height / least, answer.probability
        enough = any(times >= least_times and likely >= chance for least_times, chance in _ENOUGH)
        sure = hot or (everywhere and enough and _explicable(case, series))
        if answer.outcome is not Outcome.FAIL and not sure:
            doubt = Outcome.WARN if likely >= (_EVENS if times >= _LARGE else _LIKELY) else Outcome.PASS
            return JudgedLife(doubt, rise, life, read, answer.probability, "its shape leaves a doubt")
        doubt_text = straight or ("" if stayed_s > _STAYS_S else self._wave(case, series, life, cut.time_s, cut.value))
        return JudgedLife(
            Outcome.WARN if doubt_text else Outcome.FAIL, rise, life, read, answer.probability, doubt_text
        )

    def _wave(self, case: Case, series: Series, life: Life, time_s: Floats, value: Floats) -> str:
        """Why a rise may be part of a daily wave; empty if it cannot be."""
        span_s = life.window.seconds
        if span_s < _PART_OF_A_DAY * DAY_S:
            if series.trait.unit == _WARM:
                return f"in {duration(span_s)} the room may have become warmer"
            return "" if _load_is_steady(case) else f"in {duration(span_s)} it may be a part of a daily wave"
        return "a sine of a day explains it as well" if span_s < 2 * DAY_S and is_daily_sine(time_s, value) else ""

    def _said(self, finding: Finding, series: Series, judged: JudgedLife) -> Finding:
        sign = _sign(series)
        rise, name, unit = judged.rise, name_of(series), series.trait.unit
        begun, ended = (quantity(sign * end, unit) for end in rise.seen)
        least = self._least(series, rise.first)
        span_s = judged.life.window.seconds
        if judged.outcome is Outcome.INCONCLUSIVE:
            reason = f"{name}: no sample in {100 * judged.cut.missing:.0f} % of {duration(span_s)}"
            settle = "needs samples in at least half of the intervals"
            return finding.undecided(reason, InconclusiveReason.GAP, settle)
        finding = replace(
            finding,
            measured=sign * rise.seen[1],
            limit=sign * (rise.seen[0] + least),
            smallest_detectable=_detectable(judged, least),
            detectable_unit=unit,
            numbers={"first": sign * rise.first, "last": sign * rise.last, "probability": judged.probability},
        )
        went = "fell" if sign < 0 else "rose"
        # The words say why it passes: too little, a doubtful shape, unsteady, or explained by the load.
        if judged.outcome is Outcome.PASS:
            fell = "fall" if sign < 0 else "rise"
            if rise.height < _SCREEN * least:
                reason = f"{name} did not {fell} by {amount(_SCREEN * least, unit)}"
            elif rise.height >= least and rise.steady:
                reason = (
                    f"{name} {went} by {amount(rise.height, unit)}, but its shape leaves a doubt whether it still "
                    f"{'falls' if sign < 0 else 'rises'} (probability of it: {100 * judged.probability:.0f} %)"
                )
            elif rise.height >= least:
                reason = f"{name} {went} by {amount(rise.height, unit)}, but not steadily to the end of the run"
            else:
                reason = f"{name} did not {fell} by {amount(least, unit)} beside the load"
            return finding.passes(reason)
        hourly = amount((rise.seen[1] - rise.seen[0]) / span_s * 3600, unit)
        stayed = ""
        if judged.ceiling is not None:
            stayed = f", and stayed at {quantity(judged.ceiling.level, unit)} for {duration(judged.stayed_s)}"
        reason = (
            f"{name} {went} steadily from {begun} to {ended} in "
            f"{duration(span_s)} ({hourly}/h){stayed}; {amount(least, unit)} allowed"
        )
        only = series.metric in TRAITS.only_warns
        if judged.why:
            reason += f"; {judged.why}"
        if only:
            reason += f"; it only warns: {why_mild(series.metric)}"
        window = judged.life.window
        text = f"{name} {went} from {begun} to {ended}"
        return replace(
            finding,
            outcome=Outcome.WARN if only else judged.outcome,
            reason=reason,
            marks=(Mark(window.begin_ns, window.end_ns, text),),
            facts=(Happened(name, f"{went} steadily from {begun} to {ended}"), *onset_of(judged.life.series)),
        )


_RANK: Final = {Outcome.PASS: 0, Outcome.INCONCLUSIVE: 1, Outcome.WARN: 2, Outcome.FAIL: 3}


def amount(height: float, unit: str) -> str:
    """A difference in words: points for a share, kelvins for a temperature.

    >>> amount(0.05, "1"), amount(12.0, "Cel"), amount(0.002, "s")
    ('5 points', '12 K', '2 ms')
    """
    if unit == "1":
        return f"{100 * height:.2g} points"
    return f"{height:.2g} K" if unit == _WARM else quantity(height, unit)


def _sign(series: Series) -> float:
    """The factor that turns the bad direction of a metric upwards."""
    return -1.0 if bad_direction(series.metric) == DOWN else 1.0


def _bounded(series: Series) -> bool:
    """Whether it is a share that gets worse upwards, and so cannot rise for ever."""
    return series.trait.unit == "1" and _sign(series) > 0


def _cut(life: Life, value: Floats) -> Blocks:
    number = min(_BLOCKS, value.size)
    return blocks(_seconds(life), value, begin_s=0.0, end_s=life.window.seconds, number=number)


def _explicable(case: Case, series: Series) -> bool:
    """Whether what could move it is known: the load, which was corrected for; a temperature also follows its room."""
    return series.trait.unit == _WARM or bool(LoadAccount.of(case.load).demand())


def _load_is_steady(case: Case) -> bool:
    """Whether a load is known and hardly varies."""
    spreads = []
    for series in LoadAccount.of(case.load).demand():
        with np.errstate(all="ignore"):
            value = (series.rate() if series.trait.kind == "counter" else series).finite().values
        if value.size >= _BLOCKS:
            parts = np.array([float(np.mean(part)) for part in np.array_split(value, _BLOCKS // 2)])
            spreads.append(float(np.ptp(parts)) / max(float(np.abs(parts).mean()), 1e-300))
    return bool(spreads) and max(spreads) <= 2 * _STEADY_LOAD


def _detectable(judged: JudgedLife, least: float) -> float:
    """The rise over the run that a straight line would show with 80 % power."""
    return least + slope(judged.cut.time_s, judged.cut.value).detectable() * judged.life.window.seconds


def _seconds(life: Life) -> Floats:
    """Times of the readings in seconds since the life began."""
    return seconds_since(life.series.time_ns, life.window.begin_ns)


TRAITS: Final = Traits(
    words=RuleWords(
        "a level moved steadily the wrong way",
        "a level that crept",
        happened="{thing} on {target} went up or down all the time",
    ),
    rank=170,
    marks=Marks.WHOLE,
    only_warns=frozenset(trending(WARNS)),
    guide=Guide(
        fails_when=(
            "CPU rises by 10 points, a temperature by 10 K, a latency by half, steadily through the run and beside "
            "what the load explains."
        ),
        misses="Runs under 6 h, a creep that begins in the last third, and one that a daily wave hides.",
        change_with="trend: {points: 15%, share: 100%}",
        next_step=(
            "Compare a profile of the first hour with one of the last; see which process, table or timer grew with it,"
            " and whether the room got warmer."
        ),
    ),
)
