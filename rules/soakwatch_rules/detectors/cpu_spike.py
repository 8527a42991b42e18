"""CPU spikes: utilisation that jumps to the top and stays there."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from soakwatch_rules import lent
from soakwatch_rules.draft import absent, draft
from soakwatch_rules.parameter import parameter
from soakwatch_rules.rule import Case, Finding, Manner, Mark, Outcome, Why
from soakwatch_rules.series import Series
from soakwatch_rules.sight import cadence
from soakwatch_rules.stats.level import robust
from soakwatch_rules.stats.spikes import LEAST, Shape, Spike, chance, head_room, poll_mode, spikes
from soakwatch_rules.words import counted, lasting, moment, quantity, some

_PLANNED = frozenset({"spike", "stress"})
_PLANNED_SLACK_S = 5.0
_GAP = 3.0  # cadences
_LEVEL_READINGS = 60  # of 30 readings a deviation is wrong by a fifth, and false alarms come of it
_WINDOWS = 3.0  # a window that holds less than three spikes is no soak
_UNEVEN = 1.05  # a poll a minute comes every 60 s and a little
_LOADED_S = 60.0  # after the begin of a phase the load changes


@dataclass(frozen=True, slots=True)
class CpuSpike:
    """Says that a utilisation (of all cores, or of one) jumped to at least 95 % and stayed there for 10 s.

    A spike opens at the first reading of at least max(``enter``, level + max(``rise``, ``sigmas``·robust sigma)),
    closes at the first below ``leave``, and counts if it spent ``seconds`` at or above that threshold. Level and
    sigma are median and 1.4826·MAD of the baseline phase where it has 16 readings, else of the ``trailing`` time (or
    60 readings) before the spike, other spikes left out: frozen while it lasts, so a long spike does not become the
    level. Where the sigmas leave no room below 100 % but two thirds of them do, a plateau of 99.5 % that lasts three
    times ``seconds``, and three readings, is a spike. Spikes wholly inside a phase named spike or stress (give or take
    5 s and one reading) were asked for: they are told and do not fail.

    A surge only warns: a rise by ``surge_rise`` (and half of the sigmas) to at least ``surge`` for ``surge_seconds``
    that is no spike, was not asked for, and does not begin within a minute of a phase (whose load may explain it).

    The rise keeps busy devices from failing for being busy, the duration keeps single readings out, the gap between
    ``enter`` and ``leave`` makes one spike of a wavering plateau. Utilisations are ratios, times seconds; a reading
    speaks for the time since the one before, at most three cadences.

    How often wrong: no spike in 410 seeded days on each of nine backgrounds without one (100 at 10 s, 10 at 1 s,
    300 at 60 s): 30 % ± 6, with 2 s bursts, a daily wave of 25 points, 45 % ± 15 white, 60 % ± 12, 85 % ± 8 and
    three kinds of poll mode (mostly not applicable from 45 % ± 15 on). In 86 real days of quiet servers (70 of them
    at 5 min) and 6 router-hours none. Three readings at 100 %: all found from 30 % ± 6 at 3.3 to 60 s, 98 % from
    the daily wave at 10 s. Of CPU faults in containers, a minute a reading, 10 of 11 (tuned on these) and 4 of 4
    (not) were found; 0 and 7 alarms in 8 and 29 container-days remained unexplained. At a cadence c a spike of
    c·(ceil(``seconds``/c) + 1) is always seen: 11 s at 1 s, 15 s at 5 s, 120 s at 60 s; ``chance_of_shortest``
    tells how probably one of ``seconds`` is.

    Known weaknesses: where the level leaves no head room for the rise nothing can be seen (not applicable); one core
    of eight is invisible in the total; sources that average over a minute reach 95 % minutes late; a slow climb to
    100 % rises with its own level and passes.

    Neighbours: ``coverage`` tells whether silence hid something; busy cycles per packet judge poll-mode cores.

    Parameters: ``enter``, ``leave``, ``rise``, ``sigmas``, ``seconds``, ``trailing``, ``coarsest``, ``surge``,
    ``surge_rise``, ``surge_seconds`` (below).

    >>> from soakwatch_rules.rule import Case, Window
    >>> from soakwatch_rules.synthetic import busy, raised
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
    version: ClassVar[int] = 2
    summary: ClassVar[str] = "CPU jumped to the top and stayed there"
    metrics: ClassVar[tuple[str, ...]] = (
        "system.cpu.utilization", "system.cpu.core.utilization", "system.cpu.module.utilization",
    )  # fmt: skip
    scope: ClassVar[Literal["object", "metric", "target"]] = "metric"
    phases: ClassVar[tuple[str, ...]] = ()
    manner: ClassVar[Manner] = Manner(
        "16 readings, half of those expected, a cadence of at most half the duration of a spike", baseline=True
    )

    enter: float = parameter(0.95, "1", "a spike is at least this busy", "99.9 % is a spike as much as 100 %")
    leave: float = parameter(0.85, "1", "a spike ends below this", "measured: one plateau is one spike")
    rise: float = parameter(0.20, "1", "least rise above the level", "measured: no false alarm on busy devices")
    sigmas: float = parameter(6.0, "{sigma}", "least rise in robust sigmas of the level", "measured, as above")
    seconds: float = parameter(10.0, "s", "least time at the top", "shorter peaks are counted and told")
    trailing: float = parameter(1800.0, "s", "time before a spike that makes the level", "30 min follow a daily wave")
    coarsest: float = parameter(60.0, "s", "readings further apart decide nothing", "a pass would hide 2 min spikes")
    surge: float = parameter(
        0.80, "1", "a surge, which only warns, is at least this busy", "measured on pods of a cluster"
    )
    surge_rise: float = parameter(0.50, "1", "least rise of a surge above the level", "measured, as above")
    surge_seconds: float = parameter(90.0, "s", "least time of a surge", "measured: two readings a minute apart")

    def __post_init__(self) -> None:
        """Refuses parameters that mean nothing."""
        if not 0 < self.leave <= self.enter <= 1:
            raise ValueError(f"cpu_spike: leave {self.leave} and enter {self.enter}: use 0 < leave <= enter <= 1")
        if not all(0 <= x < math.inf for x in (self.rise, self.sigmas)):
            raise ValueError("cpu_spike: rise and sigmas are 0 or more")
        if not (0 < self.surge <= 1 and 0 <= self.surge_rise < math.inf):
            raise ValueError(f"cpu_spike: surge {self.surge} is a share above 0 up to 100%, surge_rise is 0 or more")
        if not all(0 < x < math.inf for x in (self.seconds, self.trailing, self.coarsest, self.surge_seconds)):
            raise ValueError("cpu_spike: seconds, trailing, coarsest and surge_seconds are durations above 0")

    def definition(self) -> str:
        """The definition with its parameters."""
        return (
            f"a spike is a utilisation of at least {100 * self.enter:g} % and of max({100 * self.rise:g} points, "
            f"{self.sigmas:g} robust sigmas) above the device's own level (baseline phase, else the "
            f"{self.trailing:g} s before) for at least {self.seconds:g} s; it ends below {100 * self.leave:g} %; none "
            f"may happen outside of phases named spike or stress; readings at most {self.coarsest:g} s apart; a "
            f"rise of {100 * self.surge_rise:g} points to at least {100 * self.surge:g} % for {self.surge_seconds:g} s "
            "warns"
        )

    def judge(self, case: Case) -> tuple[Finding, ...]:
        """One finding a series."""
        if not case.series:
            return (absent(self, case, "CPU utilisation"),)
        return tuple(self._of(case, series) for series in case.series)

    def _of(self, case: Case, series: Series) -> Finding:
        series = series.between(case.window.begin_ns, case.window.end_ns).finite()
        made = replace(draft(self, case, series), limit=self.seconds, unit="s")
        apart, n = cadence(series), len(series)
        if n < LEAST or apart is None:
            more = f"needs {lasting((LEAST - n) * apart)} more" if apart else f"needs {LEAST} readings"
            return replace(
                made,
                reason=f"{counted(n, 'reading')}: too few to know the device's level",
                why=Why.TOO_FEW,
                settle=more,
            )
        value, keep = np.clip(series.values, 0.0, 2.0), max(_LEVEL_READINGS, round(self.trailing / apart))
        base = _baseline(case, series)
        if poll_mode(value, base, keep):
            reason = f"poll-mode: the median is {quantity(float(np.median(value)), '1')}, so being busy says nothing"
            return replace(made, outcome=Outcome.NOT_APPLICABLE, reason=f"{reason}; judge it by cycles per packet")
        shape = Shape(self.enter, self.leave, self.rise, self.sigmas, self.seconds, self.trailing)
        cover_s = np.minimum(np.append(apart, np.diff(series.time_ns) * 1e-9), _GAP * apart)
        seen = spikes(value, cover_s, shape, keep, base)
        marks = [_mark(spike, series, cover_s) for spike in seen.found]
        surges = self._surges(case, series, cover_s, keep, base, marks)
        asked = [_asked(mark, case, apart) for mark in marks]
        unasked = [i for i, phase in enumerate(asked) if phase is None]
        middle, sigma = base or robust(value)
        numbers = {
            "spikes": float(len(unasked)), "planned_spikes": float(len(marks) - len(unasked)),
            "brief_peaks": float(seen.brief), "gradual": float(seen.gradual), "highest": float(value.max()),
            "level": middle, "sigma": sigma, "threshold": shape.threshold(middle, sigma),
            "surges": float(len(surges)), "chance_of_shortest": chance(self.seconds, apart, shape, middle),
        }  # fmt: skip
        worst = max((seen.found[i].above_s for i in unasked), default=seen.longest_brief_s)
        made = replace(
            made,
            measured=worst,
            smallest_detectable=apart * (math.ceil(self.seconds / apart - 1e-9) + 1),
            detectable_unit="s",
            marks=(*(m if p is None else replace(m, text=f"{m.text} (planned: phase {p})")
                     for m, p in zip(marks, asked, strict=True)), *surges),
            numbers=numbers,
            doubts=(*_doubts(series, apart, marks, asked, seen.gradual), *(() if base is None else lent.doubt(case))),
        )  # fmt: skip
        if unasked:
            told = some([f"{moment(marks[i].begin_ns)}: {marks[i].text}" for i in unasked])
            return replace(made, outcome=Outcome.FAIL, reason=f"{counted(len(unasked), 'spike')}: {told}")
        if (short := _WINDOWS * self.seconds - n * apart) > 0:
            reason = f"{lasting(n * apart)} of readings: too short to have shown a spike of {self.seconds:g} s"
            return replace(made, reason=reason, why=Why.TOO_SHORT, settle=f"needs {lasting(short)} more")
        if made.expected is not None and 2 * n < made.expected:
            reason = f"{n} of {made.expected} expected readings, less than half: a spike may lie between them"
            return replace(made, reason=reason, why=Why.GAP, settle="needs at least half of the expected readings")
        if apart > _UNEVEN * self.coarsest:
            reason = f"a reading every {lasting(apart)} would not show a spike under {lasting(2 * apart)}"
            return replace(made, reason=reason, why=Why.CADENCE, settle=f"poll every {lasting(self.seconds / 2)}")
        if surges:
            told = some([f"{moment(m.begin_ns)}: {m.text}" for m in surges])
            return replace(made, outcome=Outcome.WARN, reason=f"no spike, but {counted(len(surges), 'surge')}: {told}")
        room = head_room(value, shape, keep) if base is None else float(shape.demand(*base)[0] <= 1)
        if room < 0.5:
            reason = (f"no head room: the level {quantity(middle, '1')} ± {quantity(sigma, '1')} leaves no room for a "
                      "sudden rise")  # fmt: skip
            return replace(made, outcome=Outcome.NOT_APPLICABLE, reason=reason)
        if room < 1:
            hidden = f"the level left no head room for a spike in {quantity(1 - room, '1')} of the time"
            made = replace(made, doubts=(*made.doubts, hidden))
        planned = f", {counted(len(marks), 'planned one')} in phases that asked for it" if marks else ""
        peaks = f"; {counted(seen.brief, 'brief peak')} of up to {lasting(seen.longest_brief_s)}" if seen.brief else ""
        reason = f"no spike{planned}; highest reading {quantity(float(value.max()), '1')}{peaks}"
        if numbers["chance_of_shortest"] < 1:
            shown = quantity(numbers["chance_of_shortest"], "1")
            reason += f"; a spike of {lasting(self.seconds)} would have shown with a probability of {shown}"
        return replace(made, outcome=Outcome.PASS, reason=reason)

    def _surges(
        self, case: Case, series: Series, cover_s: NDArray[np.float64], keep: int, base: tuple[float, float] | None,
        marks: list[Mark],
    ) -> list[Mark]:  # fmt: skip
        """Rises that are no spikes, and that no phase explains: one that just began, or one of stress."""
        leave = max(0.0, self.surge - (self.enter - self.leave))
        shape = Shape(self.surge, leave, self.surge_rise, self.sigmas / 2, self.surge_seconds, self.trailing)
        apart = float(np.median(cover_s))
        found = spikes(np.clip(series.values, 0.0, 2.0), cover_s, shape, keep, base).found
        rises = [_mark(spike, series, cover_s) for spike in found]
        return [
            replace(mark, text=f"surge: {mark.text}")
            for mark in rises
            if not any(m.begin_ns <= (mark.end_ns or 0) and mark.begin_ns <= (m.end_ns or 0) for m in marks)
            and _asked(mark, case, apart) is None
            and not _begins(mark, case, apart)
        ]


def _begins(mark: Mark, case: Case, apart: float) -> bool:
    """Whether a phase began just before: its load makes the device busy."""
    slack_ns, after_ns = round((_PLANNED_SLACK_S + apart) * 1e9), round((_LOADED_S + apart) * 1e9)
    begins = (phase.window.begin_ns for phase in case.phases)
    return any(begin - slack_ns <= mark.begin_ns <= begin + after_ns for begin in begins)


def _baseline(case: Case, series: Series) -> tuple[float, float] | None:
    for other in case.baseline:
        calm = other.finite() if (other.metric, other.object) == (series.metric, series.object) else None
        if calm is not None and len(calm) >= LEAST:
            return robust(np.clip(calm.values, 0.0, 2.0))
    return None


def _mark(spike: Spike, series: Series, cover_s: NDArray[np.float64]) -> Mark:
    begin = int(series.time_ns[spike.open]) - round(cover_s[spike.open] * 1e9)
    text = f"{quantity(spike.peak, '1')} for {lasting(spike.above_s)} from a level of {quantity(spike.level, '1')}"
    return Mark(begin, int(series.time_ns[spike.close - 1]), text)


def _asked(mark: Mark, case: Case, apart: float) -> str | None:
    slack, end = round((_PLANNED_SLACK_S + apart) * 1e9), mark.end_ns or mark.begin_ns
    for phase in case.phases:
        inside = phase.window.begin_ns - slack <= mark.begin_ns and end <= phase.window.end_ns + slack
        if phase.name in _PLANNED and inside:
            return phase.name
    return None


def _doubts(series: Series, apart: float, marks: list[Mark], asked: list[str | None], gradual: int) -> list[str]:
    doubts, steps = [], np.diff(series.time_ns)
    gaps = np.flatnonzero(steps > _GAP * apart * 1e9)
    if gaps.size:
        longest = float(steps.max()) * 1e-9
        doubts.append(f"{counted(int(gaps.size), 'gap')} of up to {lasting(longest)} in the readings: unseen there")
        ends = np.array([(m.begin_ns, m.end_ns or m.begin_ns) for m in marks]).reshape(-1, 2)
        inside = [(ends[:, 0] <= series.time_ns[g]) & (ends[:, 1] >= series.time_ns[g + 1]) for g in gaps[:1000]]
        if bool(np.any(inside)):
            doubts.append("a spike was still open after a gap: it is taken for one")
    if gradual:
        doubts.append(f"{counted(gradual, 'stretch').replace('stretchs', 'stretches')} at the top came without a jump")
    planned = sum(phase is not None for phase in asked)
    if planned:
        doubts.append(f"{counted(planned, 'spike')} inside spike or stress phases did not count")
    if apart > 10:
        doubts.append(f"a reading every {lasting(apart)}: spikes under {lasting(2 * apart)} may be missed")
    return doubts
