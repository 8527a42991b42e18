"""CPU spikes: utilisation that jumps to its maximum and stays there for seconds."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.finding import Finding, InconclusiveReason, Mark
from soakwatch_model.series import Floats, Series
from soakwatch_rules import poll_mode_cores
from soakwatch_rules.baseline_before_window import baseline_caveat
from soakwatch_rules.cpu_habits import PLANNED, CpuHabits
from soakwatch_rules.finding_draft import draft, each_series, half_unread
from soakwatch_rules.parameter import Parameters, parameter
from soakwatch_rules.rule import Input, RuleSpec
from soakwatch_rules.sampling import cadence
from soakwatch_rules.stats.medians import median
from soakwatch_rules.stats.spikes import (
    MIN_SAMPLES,
    LevelAndScatter,
    Plateau,
    Plateaus,
    SpikeDefinition,
    busy_throughout,
    chance,
    plateaus,
    shortest,
)
from soakwatch_rules.traits import Family, Guide, Marks, RuleWords, Traits
from soakwatch_rules.wording.plateau import GAP, SortedPlateaus, doubts_of, mark_of, sparse
from soakwatch_rules.wording.quantities import counted, duration, first_few, moment, quantity

_PLANNED_SLACK_S = 5.0
_LEVEL_READINGS = 60  # with 30, the deviation is wrong by a fifth and causes false alarms
_WINDOWS = 3.0  # a run shorter than this many spikes is too short to pass
_UNEVEN = 1.05  # polls once a minute arrive slightly more than 60 s apart
_LOADED_S = 60.0  # a new phase changes the load for this long


@dataclass(frozen=True, slots=True)
class CpuSpike(Parameters):
    """Fails if a utilisation (of all cores, or of one) jumped to at least 95 % and stayed there for 10 s.

    Plateau: opens at the first reading of at least ``enter``, closes at the first below ``leave``, and counts if it
    spent ``seconds`` at or above ``enter``.

    Spike: a plateau whose mean lies max(``rise``, ``sigmas``·sigma) above the device's own level. Level and sigma are
    median and 1.4826·MAD of the baseline phase if it has 16 readings, else of the ``trailing`` time (or 60 readings)
    before the plateau, without earlier spikes and frozen while a plateau lasts, so that it never becomes its own level.
    With fewer readings before it, sigma is the least of three: of all of them, without the first half (a start-up), and
    with the calm readings after it; few readings contain only short means, which scatter more. Sigma is that of means
    as long as the plateau (or a twelfth of the time before it): single readings of 35 % ± 14 swing to 77 %, means of
    ten do not. Five sixths of the sigmas suffice for twice ``seconds``, two thirds for 99.5 % over three times
    ``seconds`` (three readings in either case). Spikes entirely inside a phase named spike or stress (within 5 s and
    one reading) are intended: reported, not failed.

    Any other plateau makes the finding inconclusive, with two exceptions. Scatter: normal noise of the device's own
    sigma reaches the plateau's mean in at least one of twenty such runs. Recurrence: plateaus at least half as long
    occur in each quarter of the run, eight or more (or five at even intervals, as by a timer): duty cycles, cron jobs,
    scrapes; fewer than 24 at uneven intervals warn. Plateaus that start with the load do not count as recurrence.

    A CPU that is over 90 % busy in nine tenths of its readings from the start on is in poll mode and not judged if
    there is evidence: the baseline phase, ``Case.polling`` (plan, isolated cores, DPDK, VPP), or, weaker, a single core
    with a median of 98.5 % and at most a twentieth of its samples below 95 %. Without evidence it is inconclusive.

    A surge only warns: a rise by ``surge_rise`` (and half of the sigmas) to at least ``surge`` for ``surge_seconds``
    that is no spike, not recurrent, not intended, and does not start within a minute of a phase, whose load may explain
    it. Utilisations are ratios up to 1 (slightly more counts as 1); a sample covers the time since the previous one, at
    most three intervals.

    How often wrong, measured on whole tables: of 60 artificial faults of 20 to 80 s in tables of 3 to 6 min at 1 s, on
    12 to 60 % ± 4 to 18, half of them with a start-up, 58 fail and 2 are inconclusive; without the fault all pass. Of
    15 labelled CPU faults in containers, one reading a minute, all are found, with 7 unlabelled alarms in 38
    container-days. In 86 real days of quiet servers (70 of them at 5 min) and 6 router-hours the only alarm is one
    reading that the data set itself scaled to 100 %. ``smallest_detectable`` is the longest duration that any stretch
    of the run required, plus one reading; ``chance_of_shortest`` is the probability that a spike of ``seconds`` shows
    in such samples.

    Known weaknesses: a plateau that exists from the first sample on may have been a fault all along; one less than
    twice as long as recurrent plateaus is taken for one of them; above 80 % there is no room for the rise
    (inconclusive); one core of eight is invisible in the total; sources that average over a minute reach 95 % minutes
    late.

    Neighbours: ``cpu_saturation`` judges minutes, and a CPU busy from the first reading on; ``coverage`` says whether a
    silence hid something; busy cycles per packet judge poll-mode cores.

    Parameters: ``enter``, ``leave``, ``rise``, ``sigmas``, ``seconds``, ``trailing``, ``coarsest``, ``surge``,
    ``surge_rise``, ``surge_seconds`` (below).

    >>> from soakwatch_model.case import Case
    >>> from soakwatch_model.window import Window
    >>> from soakwatch_rules.signals import busy, raised
    >>> calm = busy(seed=1, level=0.3, sd=0.06, seconds=1800)
    >>> spiky = raised(calm, at_s=900, lasting_s=30, to=1.0)
    >>> for series in (calm, spiky):
    ...     print(CpuSpike().judge(Case("dut", "", Window(0, 1800 * 10**9), (series,)))[0].outcome)
    pass
    fail

    References: F. Hampel, The influence curve and its role in robust estimation, JASA 69, 1974 (median and MAD);
    O. H. Schmitt, A thermionic trigger, J. Sci. Instrum. 15, 1938 (two thresholds against wavering).
    """

    name: ClassVar[str] = "cpu_spike"
    version: ClassVar[int] = 4
    summary: ClassVar[str] = "CPU jumped to 95 % or more and stayed there"
    metrics: ClassVar[tuple[str, ...]] = (
        "system.cpu.utilization",
        "system.cpu.core.utilization",
        "system.cpu.module.utilization",
    )
    scope: ClassVar[Literal["object", "metric", "target"]] = "metric"
    phases: ClassVar[tuple[str, ...]] = ()
    spec: ClassVar[RuleSpec] = RuleSpec(
        "16 samples, half of those expected, a poll interval of at most half the duration of a spike",
        inputs=frozenset({Input.BASELINE}),
    )

    order: ClassVar[tuple[str, ...]] = ("leave <= enter",)
    enter: float = parameter(
        0.95, "1", "utilisation from which it is a spike", "99.9 % is a spike as much as 100 %", within="(0, 1]"
    )
    leave: float = parameter(
        0.85, "1", "utilisation below which a spike ends", "measured: one plateau is one spike", within="(0, 1]"
    )
    rise: float = parameter(
        0.20, "1", "minimum rise above the device's own level", "measured: no false alarm on busy devices"
    )
    sigmas: float = parameter(6.0, "{sigma}", "minimum rise in robust sigmas of the level", "measured, as above")
    seconds: float = parameter(
        10.0, "s", "minimum duration of a spike", "shorter peaks are only counted", within="(0, inf)"
    )
    trailing: float = parameter(
        1800.0, "s", "time before a spike that gives the level", "30 min follow a daily wave", within="(0, inf)"
    )
    coarsest: float = parameter(
        60.0, "s", "samples further apart are inconclusive", "a pass would hide 2 min spikes", within="(0, inf)"
    )
    surge: float = parameter(
        0.80,
        "1",
        "utilisation from which it is a surge, which only warns",
        "measured on pods of a cluster",
        within="(0, 1]",
    )
    surge_rise: float = parameter(0.50, "1", "minimum rise of a surge above the level", "measured, as above")
    surge_seconds: float = parameter(
        90.0, "s", "minimum duration of a surge", "measured: two samples a minute apart", within="(0, inf)"
    )

    def definition(self) -> str:
        return (
            f"a spike is a utilisation of at least {100 * self.enter:g} % and of max({100 * self.rise:g} points, "
            f"{self.sigmas:g} robust sigmas of means as long) above the device's own level (baseline phase, else the "
            f"{duration(self.trailing)} before) for at least {duration(self.seconds)}; it ends below "
            f"{100 * self.leave:g} %; none may happen outside of phases named spike or stress, unless the same recurs "
            f"from the start of the run to its end; samples at most {duration(self.coarsest)} apart; a rise of "
            f"{100 * self.surge_rise:g} points to at least {100 * self.surge:g} % for {duration(self.surge_seconds)} "
            "warns"
        )

    def judge(self, case: Case) -> tuple[Finding, ...]:
        """One finding a series."""
        return each_series(self, case, "CPU utilisation", self._of)

    def _of(self, case: Case, series: Series) -> Finding:
        series = _shares(series.between(case.window.begin_ns, case.window.end_ns))
        finding = replace(draft(self, case, series), limit=self.seconds, unit="s")
        apart, n = cadence(series), len(series)
        if n < MIN_SAMPLES or apart is None:
            more = f"needs {duration((MIN_SAMPLES - n) * apart)} more" if apart else f"needs {MIN_SAMPLES} samples"
            return finding.undecided(
                f"{counted(n, 'sample')}: {MIN_SAMPLES} needed to know the device's own level",
                InconclusiveReason.TOO_FEW,
                more,
            )
        value, keep = series.values, max(_LEVEL_READINGS, round(self.trailing / apart))
        base = _baseline(case, series, apart)
        if busy_throughout(value, None if base is None else base.middle, keep):
            busy = self._busy(finding, case, value, base)
            if busy is not None:
                return busy
        cover_s = np.minimum(np.append(apart, np.diff(series.time_ns) * 1e-9), GAP * apart)
        seen = plateaus(value, cover_s, self._shape, keep, base)
        sorted_plateaus = self._sorted(case, series, cover_s, seen)
        return self._decide(
            self._numbered(finding, case, series, cover_s, seen, sorted_plateaus, base), series, sorted_plateaus
        )

    @property
    def _shape(self) -> SpikeDefinition:
        return SpikeDefinition(self.enter, self.leave, self.rise, self.sigmas, self.seconds, self.trailing)

    def _busy(self, finding: Finding, case: Case, value: Floats, base: LevelAndScatter | None) -> Finding | None:
        """The finding of a CPU that is busy throughout: poll mode, saturated from the start, or None: judge it."""
        middle = quantity(median(value), "1")
        metrics = "use cycles per packet instead"
        if base is not None:
            reason = (
                f"CPU was at {quantity(base.middle, '1')} in the baseline already, as a busy-polling (DPDK) core "
                "would be; spikes cannot be judged"
            )
        elif (evidence := poll_mode_cores.evidence(case, finding.object)) or poll_mode_cores.constant(
            finding.metric, value
        ):
            how = evidence or f"CPU was at {middle} from the start and hardly ever below"
            reason = f"busy-polling core ({how}); spikes cannot be judged"
        elif median(value) >= self.enter:
            return finding.undecided(
                f"CPU was at {middle} from the start: saturated, or a busy-polling (DPDK) core; no spike can "
                "rise from there, there is no baseline, and nothing says that it is in poll mode",
                InconclusiveReason.NO_REFERENCE,
                "add a baseline phase without load, or name the cores in the plan (poll_mode: [2, 3])",
            )
        else:
            return None
        return finding.not_applicable(f"{reason}; {metrics}")

    def _sorted(self, case: Case, series: Series, cover_s: Floats, seen: Plateaus) -> SortedPlateaus:
        """Each long plateau as planned, scatter, recurrent, spike, or set aside as unexplained."""
        marks = [mark_of(plateau, series, cover_s) for plateau in seen.long]
        apart = median(cover_s)
        planned_phases = [_planned_phase(mark, case, apart) for mark in marks]
        habits = CpuHabits(case, series, cover_s, seen)
        plateaus = SortedPlateaus()
        for plateau, mark, phase in zip(seen.long, marks, planned_phases, strict=True):
            if phase is not None:
                plateaus.planned.append(replace(mark, text=f"{mark.text} (planned: phase {phase})", planned=True))
            elif not plateau.spike and plateau.scatter:
                plateaus.scatter += 1
            elif (habit := habits.of(plateau.above_s)) is not None:
                plateaus.habits.append((habit, plateau.above_s))
                plateaus.unsure += not habit.sure
            elif plateau.spike:
                plateaus.spikes.append(mark)
                plateaus.worst_s = max(plateaus.worst_s, plateau.above_s)
            else:
                plateaus.aside.append(replace(mark, text=f"{mark.text}: {self._why(plateau)}"))
                plateaus.worst_s = max(plateaus.worst_s, plateau.above_s)
        return plateaus

    def _why(self, plateau: Plateau) -> str:
        """Why a plateau is neither a spike nor explained."""
        if plateau.level is None:
            return "there is nothing to compare it with"
        if plateau.top < plateau.level + self.rise:
            return f"less than {100 * self.rise:g} points above the device's own level"
        return f"less than {self.sigmas:g} sigmas ({quantity(plateau.sigma, '1')}) above the device's own level"

    def _numbered(
        self,
        finding: Finding,
        case: Case,
        series: Series,
        cover_s: Floats,
        seen: Plateaus,
        plateaus: SortedPlateaus,
        base: LevelAndScatter | None,
    ) -> Finding:
        apart, value = cadence(series) or 1.0, series.values
        keep = max(_LEVEL_READINGS, round(self.trailing / apart))
        plateaus.surges = self._surges(case, series, cover_s, keep, base, (*plateaus.spikes, *plateaus.aside))
        matches = [self._shape.shortest(base, apart)] if base else shortest(value, seen, self._shape, keep, apart)
        could = [match for match in matches if match is not None]
        plateaus.room = len(could) / len(matches) if matches else 0.0
        level = base or LevelAndScatter(value, apart)
        brief = seen.above_s[seen.above_s < self.seconds]
        plateaus.brief, plateaus.brief_s = seen.brief, float(brief.max(initial=0.0))
        used = max(could, default=None)
        return replace(
            finding,
            measured=plateaus.worst_s or plateaus.brief_s,
            smallest_detectable=None if used is None else apart * (math.ceil(used / apart - 1e-9) + 1),
            detectable_unit="s",
            marks=(*plateaus.spikes, *plateaus.planned, *plateaus.aside, *plateaus.surges),
            numbers={
                "spikes": float(len(plateaus.spikes)),
                "planned_spikes": float(len(plateaus.planned)),
                "brief_peaks": float(plateaus.brief),
                "set_aside": float(len(plateaus.aside)),
                "habitual": float(len(plateaus.habits)),
                "scatter": float(plateaus.scatter),
                "highest": float(value.max()),
                "level": level.middle,
                "sigma": level.sigma(self.seconds),
                "surges": float(len(plateaus.surges)),
                "chance_of_shortest": chance(self.seconds, apart, self._shape, level.middle) if used else 0.0,
            },
            doubts=(*doubts_of(series, apart, plateaus), *(() if base is None else baseline_caveat(case))),
        )

    def _decide(self, finding: Finding, series: Series, plateaus: SortedPlateaus) -> Finding:
        apart, n = cadence(series) or 1.0, len(series)
        if plateaus.spikes:
            text = first_few([f"{moment(mark.begin_ns)}: {mark.text}" for mark in plateaus.spikes])
            return finding.fails(f"{counted(len(plateaus.spikes), 'spike')}: {text}")
        if plateaus.aside:
            text = first_few([f"{moment(mark.begin_ns)}: {mark.text}" for mark in plateaus.aside])
            return finding.undecided(
                f"{counted(len(plateaus.aside), 'plateau')} that may be a spike: {text}",
                InconclusiveReason.NO_REFERENCE,
                "add a baseline phase without load, or an hour of samples before it",
            )
        if plateaus.unsure:
            reason = f"{plateaus.habit()}: normal behaviour or a fault; the run is too short to tell"
            return finding.undecided(
                reason, InconclusiveReason.TOO_SHORT, "needs a run in which it occurs five times or more"
            )
        if (short := _WINDOWS * self.seconds - n * apart) > 0:
            reason = f"{duration(n * apart)} of samples: too short to show a spike of {duration(self.seconds)}"
            return finding.undecided(reason, InconclusiveReason.TOO_SHORT, f"needs {duration(short)} more")
        if unread := half_unread(finding, n, "a spike may have been missed"):
            return unread
        if apart > _UNEVEN * self.coarsest:
            seen, facts = sparse(n, apart, finding.numbers["highest"], self.enter)
            reason = f"a sample every {duration(apart)} cannot show a spike shorter than {duration(2 * apart)}; {seen}"
            return replace(
                finding,
                facts=facts,
                reason=reason,
                why=InconclusiveReason.CADENCE,
                settle=f"poll every {duration(self.seconds / 2)}",
            )
        if plateaus.surges:
            text = first_few([f"{moment(m.begin_ns)}: {m.text}" for m in plateaus.surges])
            return finding.warns(f"no spike, but {counted(len(plateaus.surges), 'surge')}: {text}")
        if plateaus.habits and plateaus.rare():
            reason = f"{plateaus.habit()}, throughout the run: its normal behaviour, or a fault from the start"
            return finding.warns(reason)
        return finding.passes(self._passed(finding, plateaus))

    def _passed(self, finding: Finding, plateaus: SortedPlateaus) -> str:
        planned = (
            f", {counted(len(plateaus.planned), 'planned spike')} in spike or stress phases" if plateaus.planned else ""
        )
        parts = [f"no spike{planned}; highest sample {quantity(finding.numbers['highest'], '1')}"]
        if plateaus.habits:
            parts.append(f"{plateaus.habit()}, throughout the run: its normal behaviour")
        if plateaus.brief and not plateaus.habits:
            parts.append(f"{counted(plateaus.brief, 'brief peak')} of up to {duration(plateaus.brief_s)}")
        if plateaus.scatter:
            parts.append(f"its normal scatter reached {100 * self.enter:g} % {counted(plateaus.scatter, 'time')}")
        share = finding.numbers["chance_of_shortest"]
        if share < 1 and finding.smallest_detectable is not None:
            chance = "would probably have been missed" if share < 0.5 else "might have been missed"
            parts.append(
                f"a spike of {duration(self.seconds)} {chance} (probability of finding it {quantity(share, '1')})"
            )
        return "; ".join(parts)

    def _surges(
        self,
        case: Case,
        series: Series,
        cover_s: Floats,
        keep: int,
        base: LevelAndScatter | None,
        marks: tuple[Mark, ...],
    ) -> list[Mark]:
        """Surges: rises that are no spikes, do not recur, and that no phase explains."""
        leave = max(0.0, self.surge - (self.enter - self.leave))
        shape = SpikeDefinition(self.surge, leave, self.surge_rise, self.sigmas / 2, self.surge_seconds, self.trailing)
        apart = median(cover_s)
        seen = plateaus(series.values, cover_s, shape, keep, base)
        habits = CpuHabits(case, series, cover_s, seen)
        rises = [
            mark_of(plateau, series, cover_s)
            for plateau in seen.long
            if plateau.spike and habits.of(plateau.above_s) is None
        ]
        return [
            replace(mark, text=f"surge: {mark.text}")
            for mark in rises
            if not any(m.begin_ns <= (mark.end_ns or 0) and mark.begin_ns <= (m.end_ns or 0) for m in marks)
            and _planned_phase(mark, case, apart) is None
            and not _begins(mark, case, apart)
        ]


def _begins(mark: Mark, case: Case, apart: float) -> bool:
    """Whether a phase began within the minute before: its load may explain the rise."""
    slack_ns, after_ns = round((_PLANNED_SLACK_S + apart) * 1e9), round((_LOADED_S + apart) * 1e9)
    begins = (phase.window.begin_ns for phase in case.phases)
    return any(begin - slack_ns <= mark.begin_ns <= begin + after_ns for begin in begins)


def _shares(series: Series) -> Series:
    known = series.finite()
    return replace(known, value=np.clip(known.values, 0.0, 1.0))


def _baseline(case: Case, series: Series, apart_s: float) -> LevelAndScatter | None:
    for other in case.before.baseline:
        calm = _shares(other) if (other.metric, other.object) == (series.metric, series.object) else None
        if calm is not None and len(calm) >= MIN_SAMPLES:
            return LevelAndScatter(calm.values, cadence(calm) or apart_s)
    return None


def _planned_phase(mark: Mark, case: Case, apart: float) -> str | None:
    slack, end = round((_PLANNED_SLACK_S + apart) * 1e9), mark.end_ns or mark.begin_ns
    for phase in case.phases:
        inside = phase.window.begin_ns - slack <= mark.begin_ns and end <= phase.window.end_ns + slack
        if phase.name in PLANNED and inside:
            return phase.name
    return None


TRAITS: Final = Traits(
    words=RuleWords("CPU spiked to its maximum", "CPU saturated", happened="the CPU of {target} went to its maximum"),
    rank=91,
    marks=Marks.WITNESSES,
    family=Family.CPU,
    guide=Guide(
        fails_when=(
            "The CPU jumps to 95 % or more (99.9 % counts like 100 %), far above its own level, for at least 10 s "
            "outside stress phases."
        ),
        misses=(
            "Jumps of sources that average over a minute, what comes and goes between two polls (a minute between "
            "hourly ones), and a CPU that was busy from the start (at 97 %, say): nothing can rise from there."
        ),
        change_with="cpu_spike: {enter: 98%, seconds: 30s}",
        next_step=(
            "See what ran at that second: the flight recorder's capture, cron jobs and log lines around the moment."
        ),
    ),
)
