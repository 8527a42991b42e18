"""CPU spikes: utilisation that jumps to the top and stays there."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from soakwatch_rules.draft import absent, draft
from soakwatch_rules.parameter import parameter
from soakwatch_rules.rule import Case, Finding, Manner, Mark, Outcome, Why
from soakwatch_rules.series import Series
from soakwatch_rules.sight import cadence
from soakwatch_rules.stats.level import robust
from soakwatch_rules.stats.spikes import LEAST, Shape, Spike, head_room, poll_mode, spikes
from soakwatch_rules.words import counted, lasting, moment, quantity, some

_PLANNED = frozenset({"spike", "stress"})
_PLANNED_SLACK_S = 5.0
_GAP = 3.0  # cadences
_WINDOWS = 3.0  # a window that holds less than three spikes is no soak


@dataclass(frozen=True, slots=True)
class CpuSpike:
    """Says that a utilisation (of all cores, or of one) jumped to at least 95 % and stayed there for 10 s.

    A spike opens at the first reading of at least max(``enter``, level + max(``rise``, ``sigmas``·robust sigma)),
    closes at the first below ``leave``, and counts if it spent ``seconds`` at or above that threshold. Level and
    sigma are median and 1.4826·MAD of the baseline phase where it has 16 readings, else of the ``trailing`` time (or
    16 readings) before the spike, other spikes left out: frozen while it lasts, so a long spike does not become the
    level. Spikes wholly inside a phase named spike or stress (give or take 5 s and one reading) were asked for:
    they are told and do not fail.

    The rise keeps busy devices from failing for being busy, the duration keeps single readings out, the gap between
    ``enter`` and ``leave`` makes one spike of a wavering plateau. Utilisations are ratios, times seconds; a reading
    speaks for the time since the one before, at most three cadences.

    How often wrong, measured on 20 seeded synthetic signals a shape: no false spike in 24 h on 30 % busy (quiet or
    with 2 s bursts), a daily wave, 60 % ± 12, 85 % ± 8 and poll mode (the last three not applicable). At a cadence
    c a spike of c·(ceil(``seconds``/c) + 1) is always seen: 11 s at 1 s, 15 s at 5 s, 120 s at 60 s (all found); of
    10 s at 5 s and of 60 s at 60 s 5 % were found, a share that depends on how polls fall. Known weaknesses: where
    the level leaves no head room for the rise nothing can be seen (not applicable); one core of eight is invisible
    in the total; sources that average over a minute reach 95 % minutes late; a slow climb to 100 % rises with its
    own level and passes.

    Neighbours: ``coverage`` tells whether silence hid something; busy cycles per packet judge poll-mode cores.

    Parameters: ``enter``, ``leave``, ``rise``, ``sigmas``, ``seconds``, ``trailing``, ``coarsest`` (below).

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
    version: ClassVar[int] = 1
    summary: ClassVar[str] = "CPU jumped to the top and stayed there"
    metrics: ClassVar[tuple[str, ...]] = ("system.cpu.utilization", "system.cpu.core.utilization")
    scope: ClassVar[Literal["object", "metric", "target"]] = "metric"
    phases: ClassVar[tuple[str, ...]] = ()
    manner: ClassVar[Manner] = Manner(
        "16 readings, half of those expected, a cadence of at most half the duration of a spike"
    )

    enter: float = parameter(0.95, "1", "a spike is at least this busy", "99.9 % is a spike as much as 100 %")
    leave: float = parameter(0.85, "1", "a spike ends below this", "measured: one plateau is one spike")
    rise: float = parameter(0.20, "1", "least rise above the level", "measured: no false alarm on busy devices")
    sigmas: float = parameter(6.0, "{sigma}", "least rise in robust sigmas of the level", "measured, as above")
    seconds: float = parameter(10.0, "s", "least time at the top", "shorter peaks are counted and told")
    trailing: float = parameter(1800.0, "s", "time before a spike that makes the level", "30 min follow a daily wave")
    coarsest: float = parameter(60.0, "s", "readings further apart decide nothing", "a pass would hide 2 min spikes")

    def __post_init__(self) -> None:
        """Refuses parameters that mean nothing."""
        if not 0 < self.leave <= self.enter <= 1:
            raise ValueError(f"cpu_spike: leave {self.leave} and enter {self.enter}: use 0 < leave <= enter <= 1")
        if not all(0 <= x < math.inf for x in (self.rise, self.sigmas)):
            raise ValueError("cpu_spike: rise and sigmas are 0 or more")
        if not all(0 < x < math.inf for x in (self.seconds, self.trailing, self.coarsest)):
            raise ValueError("cpu_spike: seconds, trailing and coarsest are durations above 0")

    def definition(self) -> str:
        """The definition with its parameters."""
        return (
            f"a spike is a utilisation of at least {100 * self.enter:g} % and of max({100 * self.rise:g} points, "
            f"{self.sigmas:g} robust sigmas) above the device's own level (baseline phase, else the "
            f"{self.trailing:g} s before) for at least {self.seconds:g} s; it ends below {100 * self.leave:g} %; none "
            f"may happen outside of phases named spike or stress; readings at most {self.coarsest:g} s apart"
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
        value, keep = np.clip(series.values, 0.0, 2.0), max(LEAST, round(self.trailing / apart))
        base = _baseline(case, series)
        if poll_mode(value, base, keep):
            reason = f"poll-mode: the median is {quantity(float(np.median(value)), '1')}, so being busy says nothing"
            return replace(made, outcome=Outcome.NOT_APPLICABLE, reason=f"{reason}; judge it by cycles per packet")
        shape = Shape(self.enter, self.leave, self.rise, self.sigmas, self.seconds, self.trailing)
        cover_s = np.minimum(np.append(apart, np.diff(series.time_ns) * 1e-9), _GAP * apart)
        seen = spikes(value, cover_s, shape, keep, base)
        marks = [_mark(spike, series, cover_s) for spike in seen.found]
        asked = [_asked(mark, case, apart) for mark in marks]
        unasked = [i for i, phase in enumerate(asked) if phase is None]
        middle, sigma = base or robust(value)
        numbers = {
            "spikes": float(len(unasked)), "planned_spikes": float(len(marks) - len(unasked)),
            "brief_peaks": float(seen.brief), "gradual": float(seen.gradual), "highest": float(value.max()),
            "level": middle, "sigma": sigma, "threshold": shape.threshold(middle, sigma),
        }  # fmt: skip
        worst = max((seen.found[i].above_s for i in unasked), default=seen.longest_brief_s)
        made = replace(
            made,
            measured=worst,
            smallest_detectable=apart * (math.ceil(self.seconds / apart - 1e-9) + 1),
            detectable_unit="s",
            marks=tuple(m if p is None else replace(m, text=f"{m.text} (planned: phase {p})")
                        for m, p in zip(marks, asked, strict=True)),
            numbers=numbers,
            doubts=tuple(_doubts(series, apart, marks, asked, seen.gradual)),
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
        if apart > self.coarsest:
            reason = f"a reading every {lasting(apart)} would not show a spike under {lasting(2 * apart)}"
            return replace(made, reason=reason, why=Why.CADENCE, settle=f"poll every {lasting(self.seconds / 2)}")
        room = head_room(value, shape, keep) if base is None else float(shape.threshold(*base) <= 1)
        if room < 0.5:
            reason = (f"no head room: the level {quantity(middle, '1')} ± {quantity(sigma, '1')} leaves no room for a "
                      "sudden rise")  # fmt: skip
            return replace(made, outcome=Outcome.NOT_APPLICABLE, reason=reason)
        planned = f", {counted(len(marks), 'planned one')} in phases that asked for it" if marks else ""
        peaks = f"; {counted(seen.brief, 'brief peak')} of up to {lasting(seen.longest_brief_s)}" if seen.brief else ""
        reason = f"no spike{planned}; highest reading {quantity(float(value.max()), '1')}{peaks}"
        return replace(made, outcome=Outcome.PASS, reason=reason)


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
