"""Recovery: does a level return after stress, and when?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.finding import Finding, InconclusiveReason, Mark, Outcome
from soakwatch_model.label import label
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.baseline_before_window import baseline_doubt, imported_baseline
from soakwatch_rules.episodes import Episode, episodes
from soakwatch_rules.events.explanations import median_load
from soakwatch_rules.finding_draft import draft, each_series
from soakwatch_rules.load.load_account import LoadAccount
from soakwatch_rules.natural_variation import JudgedEpisode, memory_kept, weighed_against_history, without_level
from soakwatch_rules.parameter import Parameters, parameter
from soakwatch_rules.rule import Input, RuleSpec
from soakwatch_rules.sampling import cadence, expected
from soakwatch_rules.series_lives import lives
from soakwatch_rules.stats.distributions import student_quantile
from soakwatch_rules.stats.return_to_level import MIN_WINDOW, OUT, Reference, Return, reference, returned, trend
from soakwatch_rules.traits import Guide, Inconclusive, RuleWords, Traits
from soakwatch_rules.wording.quantities import counted, duration, first_few, moment, plus_minus, quantity
from soakwatch_rules.wording.series_names import name_of

_CALM_S = 1800.0
_CALM_READINGS = 400
_MIN_SAMPLES_BEFORE = 16
_MIN_EFFECTIVE = 4.0
_LATELY = 0.1  # share of the time after: an absence shorter than this at its end may end in a moment
_SURE = 0.01  # risk of calling a residue growing from repetition to repetition
_WANDER = " independent samples"


@dataclass(frozen=True, slots=True)
class Recovery(Parameters):
    """Fails if a level did not return after stress; states when it returned and the residue.

    Before: level and noise come from the calm before the first stress: the baseline phase next to it, else the last
    30 min (400 readings) of the soak, else the imported baseline of an earlier run with about the same sampling rate.
    Band = max(``tolerance``·level, ``share`` of the range of the metric, the metric's floor, its quantum).

    After: windows of 30 readings (more if the noise requires it) are *near* if |mean - level| + t(.95)·error <= band
    (TOST), and *outside* if |mean - level| - t(.995)·error > band and farther off than any window before the stress;
    correlated readings count as fewer. It recovered at the first near window after the last one outside, so a relapse
    is seen and the first crossing of an oscillating level does not count, nor do means over whole swings wider than the
    band (``stats.return_to_level.returned``). The *residue* (mean from there on minus level) must be proven inside the
    band too.

    pass: recovered within ``within`` (0: the recovery phase, else ``look`` s) and residue inside the band.
    fail: the last window or the residue is proven outside, or it returned too late.
    warn: it settled at another level in the harmless direction (less memory); the residue grows from repetition to
    repetition; the residue is no more than the series moved by itself before the stress (a daily wave, a cache that
    fills), which is 1.5 times the range of its means over stretches of an eighth of the calm or of the time after,
    without the first tenth; memory keeps up to ``kept`` of its level after one stress, as allocators and caches do (it
    fails if the residue grows from repetition to repetition).
    inconclusive: too few samples before or after, too noisy, or another load than before. Noise as large as its own
    movement passes, and the finding states the residue that it would hide.

    How often wrong, on 300 seeded signals a shape (band 5 %, readings each 10 s, 1 h before, 2 h after; returns as a
    step, exponential, oscillating, with a relapse of 5 min, or after half of the time): none failed. White noise or
    AR(1) .9 of sd 1 and 3 %: all pass but one, the time wrong by 0 to 90 s (median; swinging each 240 s: 110 s early,
    each 600 s: 50 s); AR(1) .97 of sd 3 %: 78 to 85 % pass, else inconclusive. What never returns fails in 98 to 100 %.
    A residue as large as the band passes in 5 to 10 %, one of twice the band never (sd 3 %: white 100 % fail, .9 53 %,
    .97 40 %, else inconclusive). Known weaknesses: a relapse shorter than a window may not be seen; what wanders over
    more than a tenth of the time after is mostly inconclusive; a leak between the first and the last stress counts as
    residue; without a load series it is unknown whether the load was the same.

    Neighbours: ``event_impact`` measures the outage of an event, ``growth`` judges what rises again later,
    ``cpu_spike`` the stress itself, ``management_isolation`` whether the device answered meanwhile, ``reboot`` and
    ``process_restart`` a device that only recovered by restarting (judged here too; the finding says so).

    Parameters: ``tolerance``, ``share``, ``kept``, ``within``, ``look``, ``load`` (below).

    >>> import numpy as np
    >>> from soakwatch_model.case import Case
    >>> from soakwatch_model.window import Phase, Window
    >>> from soakwatch_rules.signals import busy, raised
    >>> edges = {"soak": (0, 1800), "stress": (1800, 2400), "recovery": (2400, 6000)}
    >>> phases = tuple(Phase(name, Window(a * 10**9, b * 10**9)) for name, (a, b) in edges.items())
    >>> for lasts in (900, 9999):
    ...     series = raised(busy(seed=1, sd=0.02, seconds=6000, tau_s=0), at_s=1800, lasting_s=lasts, to=0.6)
    ...     finding = Recovery().judge(Case("dut", "", Window(0, 6000 * 10**9), (series,), phases=phases))[0]
    ...     print(finding.outcome, finding.measured)
    pass 303.0
    fail None

    References: D. Schuirmann, A comparison of the two one-sided tests procedure, J. Pharmacokin. Biopharm. 15, 1987;
    C. Geyer, Practical Markov chain Monte Carlo, Statistical Science 7, 1992 (effective sample size). RFC 2544 §26.5
    (system recovery) takes the last lost frame, which is the first entry: it does not see a relapse.
    """

    name: ClassVar[str] = "recovery"
    version: ClassVar[int] = 6
    summary: ClassVar[str] = "a level did not recover after stress, or not in time"
    metrics: ClassVar[tuple[str, ...]] = (
        "system.cpu.utilization",
        "system.cpu.module.utilization",
        "system.memory.usage",
        "system.memory.utilization",
        "system.memory.pool.usage",
        "system.sessions",
        "system.conntrack.count",
        "process.memory.usage",
        "process.open_files",
        "queue.depth",
        "queue.usage",
        "load.latency",
    )
    scope: ClassVar[Literal["object", "metric", "target"]] = "metric"
    phases: ClassVar[tuple[str, ...]] = ()
    spec: ClassVar[RuleSpec] = RuleSpec(
        "16 samples before the stress and 60 after it under the same load",
        shortest_s=3600,
        live="end",
        inputs=frozenset({Input.BASELINE}),
    )

    tolerance: float = parameter(
        0.05, "1", "band around the level before", "the reference experiment's", within="(0, inf)"
    )
    share: float = parameter(
        0.02, "1", "minimum band, as a share of the metric's range", "2 points of a utilisation", within="[0, 1)"
    )
    within: float = parameter(0.0, "s", "time to recover; 0: the recovery phase", "set in the plan")
    look: float = parameter(
        3600.0,
        "s",
        "time judged if no recovery phase follows",
        "longer changes are judged by growth",
        within="(0, inf)",
    )
    kept: float = parameter(0.1, "1", "share of its level that memory may keep after one stress", "arenas and caches")
    load: float = parameter(
        0.10, "1", "load difference from which levels are not compared", "twice the tolerance", within="(0, inf)"
    )

    def definition(self) -> str:
        limit = f"within {duration(self.within)}" if self.within else "within the recovery phase"
        return (
            "recovered at the first window (30 samples or more) whose mean is proven within "
            f"max({100 * self.tolerance:g} %, {100 * self.share:g} % of the range) of the level before the stress, "
            f"after the last one proven outside or swinging farther than that; {limit} (without one "
            f"{duration(self.look)}), the mean from there on proven inside as well (memory may keep "
            f"{100 * self.kept:g} % after one stress); the load may differ by {100 * self.load:g} %"
        )

    def judge(self, case: Case) -> tuple[Finding, ...]:
        """One finding a series, decided by its worst episode."""
        return each_series(self, case, "metric that stress could change", self._of)

    def _of(self, case: Case, series: Series) -> Finding:
        series = series.between(case.window.begin_ns, case.window.end_ns).finite()
        finding, apart = draft(self, case, series), cadence(series)
        calm_s = max(_CALM_S, _CALM_READINGS * (apart or 0.0))
        matches = episodes(case, round(self.look * 1e9), round(calm_s * 1e9))
        if not matches:
            reason = "no stress or spike phase, failover or upgrade has ended: nothing to recover from"
            return finding.not_applicable(reason)
        if _kept(series):
            reason = f"{name_of(series)} is the maximum since the generator started: it cannot recover"
            return finding.not_applicable(reason)
        if apart is None:
            reason = f"{counted(finding.samples, 'sample')}: too few to know the level"
            return finding.undecided(
                reason, InconclusiveReason.TOO_FEW, f"needs {2 * MIN_WINDOW} samples after the stress"
            )
        judged = [self._episode(case, series, matches[: index + 1], apart) for index in range(len(matches))]
        long = [j for j in judged if j.why is not InconclusiveReason.TOO_SHORT or j.back is not None]
        worst = min(long or judged, key=lambda j: (j.outcome.rank, -(j.seconds or 0.0)))
        return self._conclude(finding, case, series, judged, worst)

    def _episode(self, case: Case, series: Series, so_far: Sequence[Episode], apart: float) -> JudgedEpisode:
        episode = so_far[-1]
        after = series.between(episode.after.begin_ns, episode.after.end_ns)
        due = expected(episode.after.seconds, apart) or 0
        if due < 2 * MIN_WINDOW or len(after) < 2 * MIN_WINDOW:
            reason = f"{counted(len(after), 'sample')} after the {episode.name}; {2 * MIN_WINDOW} needed"
            missing = 2 * MIN_WINDOW - min(due, len(after))
            why = InconclusiveReason.TOO_SHORT if due < 2 * MIN_WINDOW else InconclusiveReason.GAP
            settle = f"needs {duration(missing * apart)} more of recovery at a sample every {duration(apart)}"
            return JudgedEpisode(episode, Outcome.INCONCLUSIVE, reason, why, settle)
        if 2 * len(after) < due:
            reason = f"only {len(after):,} of {due:,} expected samples were read after the {episode.name}"
            settle = "needs at least half of the expected samples"
            return JudgedEpisode(episode, Outcome.INCONCLUSIVE, reason, InconclusiveReason.GAP, settle)
        chosen, trouble = self._before(case, series, episode)
        if chosen is None and trouble.endswith(_WANDER):
            episode_result = without_level(series, episode, after, lambda level: self._band(series, level))
            if episode_result is not None:
                return replace(episode_result, caveat=trouble)
        if chosen is None:
            settle = f"needs {duration(max(_CALM_S, 100 * apart))} under the same load before the stress"
            return JudgedEpisode(episode, Outcome.INCONCLUSIVE, trouble, InconclusiveReason.NO_REFERENCE, settle)
        band = self._band(series, chosen.mean)
        back = returned(after.values, chosen, band) if math.isfinite(band) else None
        if back is None:
            reason = "the values are too large to compute with"
            settle = "needs values in a larger unit"
            return JudgedEpisode(episode, Outcome.INCONCLUSIVE, reason, InconclusiveReason.RESOLUTION, settle, chosen)
        begun = JudgedEpisode(episode, Outcome.PASS, "", None, "", chosen, band, back, caveat=trouble)
        judged = weighed_against_history(self._decided(begun, series, after, apart), series, so_far, chosen)
        return memory_kept(judged, series, self.kept)

    def _before(self, case: Case, series: Series, episode: Episode) -> tuple[Reference | None, str]:
        trouble, load, own = f"no calm samples before the {episode.name}", LoadAccount.of(case.load).commands(), False
        later = median_load(load, (episode.after.begin_ns + episode.after.end_ns) // 2, episode.after.end_ns)
        for window in episode.before:
            value = series.between(window.begin_ns, window.end_ns).values
            if value.size < _MIN_SAMPLES_BEFORE or float(np.abs(value).max()) > 1e150:
                trouble = (
                    f"{counted(value.size, 'sample')} of the calm before the {episode.name}; "
                    f"{_MIN_SAMPLES_BEFORE} needed"
                )
                continue
            own = True
            earlier = median_load(load, window.begin_ns, window.end_ns)
            if earlier is not None and later is not None:
                largest = max(abs(earlier), abs(later))
                if abs(later - earlier) > self.load * largest:
                    trouble = f"the load differs ({earlier:.3g} before the {episode.name}, {later:.3g} after it)"
                    continue
            result = reference(value)
            if result.effective >= _MIN_EFFECTIVE:
                return result, ""
            trouble = (
                f"the {duration(window.seconds)} before the {episode.name} fluctuate slowly: they are worth only "
                f"{result.effective:.1f}{_WANDER}"
            )
        other = None if own else imported_baseline(case, series, alike=True)
        if other is not None and len(other) >= _MIN_SAMPLES_BEFORE and float(np.abs(other.values).max()) <= 1e150:
            result = reference(other.values)
            if result.effective >= _MIN_EFFECTIVE:
                return result, f"{baseline_doubt(case)}, whose load is not known here"
        return None, trouble

    def _band(self, series: Series, level: float) -> float:
        trait = series.trait
        span = trait.high - trait.low if trait.high is not None and trait.low is not None else 0.0
        return max(self.tolerance * abs(level), self.share * span, trait.floor, trait.quantum or 0.0)

    def _decided(self, judged: JudgedEpisode, series: Series, after: Series, apart: float) -> JudgedEpisode:
        back, unit, episode = judged.back, series.trait.unit, judged.episode
        assert back is not None
        limit_s = self.within or episode.after.seconds
        window_s = back.width * apart
        seconds = None if back.index is None else self._since(after, back, episode)
        judged = replace(judged, seconds=seconds, window_s=window_s, limit_s=limit_s)
        rest = plus_minus(back.residue, back.residue_half, unit)
        aside = back.outside or _outside(back, judged.band)
        if aside:
            lately = None if back.since is None else (len(after) - back.since) * apart
            return self._not_back(judged, back, rest, lately, harmless=self._harmless(series, back))
        if seconds is None and back.swing:
            reason = f"still oscillates by {quantity(back.swing, unit)} around the level at the end"
            settle = f"needs {duration(episode.after.seconds)} more of recovery"
            return judged.undecided(reason, InconclusiveReason.PENDING, settle)
        if seconds is None and back.last is not None and back.last + back.width > len(after):
            reason = f"recovered too shortly before the end to be proven: off by {rest}"
            return judged.undecided(
                reason, InconclusiveReason.TOO_SHORT, f"needs {duration(2 * window_s)} more of recovery"
            )
        if seconds is None or abs(back.residue) + back.residue_half > judged.band:
            what = "" if seconds is None else ", and the residue may be outside the band"
            reason = f"too noisy to prove recovery{what}: off by {rest}"
            return judged.undecided(reason, InconclusiveReason.NOISE, self._wanted(judged))
        text = f"recovered {duration(seconds)} (± {duration(window_s)}) after the {episode.name}, residue {rest}"
        text = text if back.last is not None else f"no effect remained after the {episode.name}, residue {rest}"
        if seconds > limit_s:
            return replace(judged, outcome=Outcome.FAIL, reason=f"{text}; allowed {duration(limit_s)}")
        return replace(judged, reason=text)

    def _not_back(
        self, judged: JudgedEpisode, back: Return, rest: str, lately: float | None, *, harmless: bool
    ) -> JudgedEpisode:
        """The episode after which the level is outside of the band; ``lately`` is for how many seconds, if known."""
        after_s, name = judged.episode.after.seconds, judged.episode.name
        if harmless:
            reason = f"stayed {rest} from the level before, in the harmless direction"
            return replace(judged, outcome=Outcome.WARN, reason=reason)
        judged = replace(judged, seconds=None)
        if after_s < self.within:
            reason = f"not recovered {duration(after_s)} after the {name}: off by {rest}"
            return judged.undecided(reason, InconclusiveReason.PENDING, f"needs {duration(self.within - after_s)} more")
        if back.outside and lately is not None and back.since and lately < _LATELY * after_s:
            reason = f"recovered, and left the band again {duration(lately)} before the end"
            settle = f"needs {duration(lately + 2 * judged.window_s)} more of recovery"
            return judged.undecided(reason, InconclusiveReason.PENDING, settle)
        if back.outside:
            return replace(
                judged, outcome=Outcome.FAIL, reason=f"did not recover in {duration(after_s)}: off by {rest}"
            )
        return replace(judged, outcome=Outcome.FAIL, reason=f"a residue of {rest} remains")

    def _since(self, after: Series, back: Return, episode: Episode) -> float:
        """Seconds from the end of the stress to the first reading of the recovered window."""
        if back.last is None or back.index is None:
            return 0.0
        return max(0.0, (int(after.time_ns[back.index]) - episode.stress.end_ns) * 1e-9)

    def _harmless(self, series: Series, back: Return) -> bool:
        growth = series.trait.growth
        return (growth == "up" and back.residue < 0) or (growth == "down" and back.residue > 0)

    def _wanted(self, judged: JudgedEpisode) -> str:
        back = judged.back
        assert back is not None
        gap = judged.band - abs(back.residue)
        if gap <= 0.05 * judged.band:
            return "needs a wider tolerance: the residue is as large as the band"
        times = (back.residue_half / gap) ** 2 if back.index is not None else (back.half / (0.6 * judged.band)) ** 2 * 4
        longer = judged.episode.after.seconds * max(times, 1.2)
        return f"needs about {duration(longer)} of recovery, and as long a calm before, at this noise level"

    def _conclude(
        self, finding: Finding, case: Case, series: Series, judged: Sequence[JudgedEpisode], worst: JudgedEpisode
    ) -> Finding:
        unit, judgeds = series.trait.unit, [j for j in judged if j.back is not None and j.before is not None]
        numbers = {"episodes": float(len(judged)), "recovered": float(sum(j.seconds is not None for j in judged))}
        doubts, grown = self._doubts(case, series, judged, judgeds), self._grows(series, judgeds)
        kept = [j for j in judged if j.kept]
        if grown is not None and kept and worst.outcome is not Outcome.FAIL:  # one stress may leave it, many may not
            worst = replace(kept[-1], outcome=Outcome.FAIL)
        outcome, reason = worst.outcome, f"{name_of(series)}: {worst.reason}"
        if len(judged) > 1:
            reason += f" (worst of {counted(len(judged), 'episode')}, at {moment(worst.episode.stress.begin_ns)})"
        back = worst.back
        if back is not None and worst.before is not None:
            error = back.residue_error * _t(back)
            numbers |= {
                "level": worst.before.mean,
                "sd": worst.before.sd,
                "band": worst.band,
                "residue": back.residue,
                "residue_low": back.residue - back.residue_half,
                "residue_high": back.residue + back.residue_half,
                "overshoot": back.overshoot,
                "window": worst.window_s,
                "relapses": float(sum(j.back.relapses for j in judgeds if j.back is not None)),
            }
            finding = replace(finding, smallest_detectable=worst.band + error, detectable_unit=unit)
        if worst.seconds is not None:
            low = max(0.0, worst.seconds - worst.window_s)
            finding = replace(finding, measured=worst.seconds, interval=(low, worst.seconds + worst.window_s), unit="s")
        if worst.limit_s:
            finding = replace(finding, limit=worst.limit_s, unit="s")
        if grown is not None:
            numbers["residue_per_repetition"] = grown
            text = f"the residue grows by {quantity(grown, unit)} with each repetition"
            doubts.append(text)
            if outcome is Outcome.PASS or worst.kept:
                outcome = Outcome.FAIL if worst.kept else Outcome.WARN
                reason = f"{reason}; but {text}"
        marks = tuple(
            Mark(
                j.episode.stress.end_ns + round((j.seconds or 0.0) * 1e9), None, f"recovered after the {j.episode.name}"
            )
            if j.seconds is not None
            else Mark(j.episode.after.begin_ns, j.episode.after.end_ns, f"after the {j.episode.name}: {j.reason}")
            for j in judged
        )
        return replace(
            finding,
            outcome=outcome,
            reason=reason,
            why=worst.why if outcome is Outcome.INCONCLUSIVE else None,
            settle=worst.settle,
            numbers=numbers,
            marks=marks,
            doubts=tuple(doubts),
        )

    def _grows(self, series: Series, judgeds: Sequence[JudgedEpisode]) -> float | None:
        """The rise of the residue per repetition, if it is significant and in the bad direction; else None."""
        backs = [j.back for j in judgeds if j.back is not None]
        answer = trend(np.array([b.residue for b in backs]), np.array([b.residue_error for b in backs]))
        if answer is None or abs(answer.step) * (len(backs) - 1) <= max(
            0.2 * judgeds[0].band, series.trait.quantum or 0.0
        ):
            return None
        up, down = answer.p_up < _SURE, answer.p_down < _SURE
        bad = {"up": up, "down": down}.get(series.trait.growth or "", up or down)
        return answer.step if bad else None

    def _doubts(
        self, case: Case, series: Series, judged: Sequence[JudgedEpisode], judgeds: Sequence[JudgedEpisode]
    ) -> list[str]:
        doubts = sorted({j.caveat for j in judgeds if j.caveat})
        short = sum(j.why is InconclusiveReason.TOO_SHORT and j.back is None for j in judged)
        if short and judgeds:
            doubts.append(f"the time after {counted(short, 'episode')} is too short to judge")
        relapses = [moment(j.episode.stress.end_ns) for j in judgeds if j.back is not None and j.back.relapses]
        if relapses:
            doubts.append(f"it recovered and left the band again after the stress that ended at {first_few(relapses)}")
        for j in judgeds:
            whole = Window(j.episode.stress.begin_ns, j.episode.after.end_ns)
            born = [life.window.begin_ns for life in lives(series, whole, case.events)[1:]]
            if born:
                doubts.append(f"it restarted at {first_few([moment(b) for b in born])}, which resets most levels")
        if judgeds and not LoadAccount.of(case.load).commands():
            doubts.append("no generator reports the load: whether it was the same before and after is not known")
        return doubts


def _kept(series: Series) -> bool:
    """Whether it is a maximum since the start, which never falls; a maximum per sample falls now and then."""
    return label(series.object, "quantile") == "max" and bool(np.all(np.diff(series.values) >= 0))


def _outside(back: Return, band: float) -> bool:
    """Whether the residue is proven outside the band."""
    return abs(back.residue) - student_quantile(back.freedom, OUT) * back.residue_error > band


def _t(back: Return) -> float:
    """Standard errors beyond the band from which a residue is proven outside with 80 % probability."""
    return float(student_quantile(back.freedom, OUT) + student_quantile(back.freedom, 0.8))


TRAITS: Final = Traits(
    words=RuleWords(
        "it did not recover to its earlier level",
        happened="{thing} on {target} did not recover to its earlier level",
    ),
    inconclusive=Inconclusive(by_majority=True),
    of_returned_load=True,
    guide=Guide(
        fails_when=(
            "After stress a level is not back within 5 % of what it was before, or not within the recovery phase."
        ),
        misses="Runs without a stress phase, and loads that differ by more than 10 % before and after.",
        change_with="recovery: {tolerance: 10%, within: 30m}",
        next_step="See which table or memory stays full after the stress, and how long its entries live.",
    ),
)
