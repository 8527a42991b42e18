"""CPU saturation: a CPU at its maximum for minutes, and whether packets were dropped meanwhile."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.finding import Finding, InconclusiveReason, Mark, Outcome
from soakwatch_model.metric import CATALOGUE
from soakwatch_model.metric_entry import FULL
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules import poll_mode_cores
from soakwatch_rules.finding_draft import absent, draft, half_unread
from soakwatch_rules.load.offered import OVERLOADS
from soakwatch_rules.parameter import Parameters, parameter
from soakwatch_rules.rule import Input, RuleSpec
from soakwatch_rules.sampling import cadence
from soakwatch_rules.stats.medians import median
from soakwatch_rules.stats.saturated_windows import Windows, covered_seconds
from soakwatch_rules.stats.spikes import MIN_SAMPLES, busy_throughout
from soakwatch_rules.stats.tally import Tally
from soakwatch_rules.traits import Family, Guide, Marks, RuleWords, Traits
from soakwatch_rules.wording.plateau import sparse
from soakwatch_rules.wording.quantities import counted, duration, first_few, moment, quantity

_TOTAL = "system.cpu.utilization"
_DROPS = tuple(metric.name for metric in CATALOGUE if metric.drops is not None and metric.drops.why == FULL)
"""Drop counters that mean "no room left": what an overloaded CPU did not get to."""
_EARLY_S = 1800.0  # a core that is busy over its first half hour may be in poll mode
_MAX_MARKS = 100
_SLACK_NS = 10 * 10**9  # a planned stress starts and ends within seconds of its phase


@dataclass(frozen=True, slots=True)
class _Full:
    """One saturated stretch of one utilisation; ``lost`` names the drops in it beyond the usual rate."""

    what: str
    window: Window
    planned: bool
    lost: str
    throughout: bool

    def mark(self) -> Mark:
        text = f"{self.what} saturated for {duration(self.window.seconds)}"
        if self.throughout:
            text += ", from the first sample to the last (or in poll mode, which nothing indicates)"
        if self.lost:
            text += f", {self.lost}"
        text += " (planned)" if self.planned else ""
        return Mark(self.window.begin_ns, self.window.end_ns, text, planned=self.planned)


@dataclass(frozen=True, slots=True)
class _Top:
    """Where one utilisation was saturated, and its highest mean (its highest reading if no window was covered)."""

    series: Series
    spans: list[tuple[int, int]]
    highest: float
    throughout: bool


@dataclass(frozen=True, slots=True)
class CpuSaturation(Parameters):
    """Warns if the whole CPU or one core was saturated for minutes; fails if packets were dropped meanwhile.

    Saturated is every window of ``seconds`` with a mean utilisation of at least ``enter``. A mean does not depend on
    the sampling rate; if samples lie further apart than ``seconds``, the window is as long as their distance. A window
    counts if samples cover nine tenths of it; a sample covers the time since the previous one, at most three intervals.

    Drops come from the target's own counters (softnet backlog, interfaces, queues, receive buffers). Because some
    counters always count a little, n drops in a saturated stretch count as evidence only if n > 2·m + 3·sqrt(m), where
    m is what the counter's rate outside of saturated stretches gives for that time.

    Saturation inside phases named spike or stress is intended: reported, but neither warning nor failure. A core that
    is over 90 % busy from the start and throughout is taken for poll mode, named and not judged, if there is evidence:
    the baseline phase, ``Case.polling`` (plan, isolated cores, DPDK, VPP), or a single core that hardly ever drops. The
    total is not judged either if it is busy throughout and the remaining cores have room. Without evidence it counts
    as saturated.

    How often wrong, on 100 seeded days per background, 10 s readings with a correlation of 30 s: no warning at 30 % ±
    6, 60 % ± 12, 85 % ± 4 and a daily wave of 25 points; 0.8 a day at 85 % ± 8, where the mean does reach 95 % over
    5 min. All faults of 290 s at 100 % were found, 93 % of those of 280 s; with samples c apart, ``seconds`` + c
    always. Known weaknesses: a core that is saturated from its first reading to its last is taken for one in poll mode;
    one saturated core of eight is invisible in the total (read the cores); unrelated drops in the same minutes turn a
    warning into a failure, and so do constant drops if the CPU was saturated all along.

    Neighbours: ``cpu_spike`` judges seconds, ``hang`` stopped forwarding, ``drops`` drops at any load,
    ``management_isolation`` whether the device still answers when saturated.

    Parameters: ``enter``, ``seconds`` (below).

    >>> from soakwatch_model.case import Case
    >>> from soakwatch_model.window import Window
    >>> from soakwatch_rules.signals import busy, raised
    >>> calm = busy(seed=1, seconds=3600, cadence_s=10)
    >>> for series in (calm, raised(calm, at_s=900, lasting_s=400)):
    ...     print(CpuSaturation().judge(Case("dut", "", Window(0, 3600 * 10**9), (series,)))[0].outcome)
    pass
    warn

    References: B. Gregg, Thinking Methodically about Performance, ACM Queue 10, 2012 (utilisation and saturation
    are two things: hence the drops); a mean over minutes hides what ``cpu_spike`` shows.
    """

    name: ClassVar[str] = "cpu_saturation"
    version: ClassVar[int] = 2
    summary: ClassVar[str] = "CPU was saturated for minutes"
    metrics: ClassVar[tuple[str, ...]] = (_TOTAL, poll_mode_cores.CORE, *_DROPS)
    scope: ClassVar[Literal["object", "metric", "target"]] = "target"
    phases: ClassVar[tuple[str, ...]] = ()
    spec: ClassVar[RuleSpec] = RuleSpec(
        "16 samples, half of those expected, three times the duration of a saturation, samples no further apart than "
        "it",
        shortest_s=900.0,
        inputs=frozenset({Input.ONE_BY_ONE}),
    )

    enter: float = parameter(
        0.95, "1", "utilisation from which a CPU is saturated", "as for cpu_spike", within="(0, 1]"
    )
    seconds: float = parameter(
        300.0, "s", "duration over which the mean is taken", "shorter is a spike", within="(0, inf)"
    )

    def definition(self) -> str:
        return (
            f"saturated is a mean utilisation of at least {100 * self.enter:g} % over {duration(self.seconds)}, of all "
            "cores or of one, outside of phases named spike or stress; it warns, and fails if more than twice as much "
            "was dropped meanwhile as at other times; cores known to be in poll mode are not judged"
        )

    def judge(self, case: Case) -> tuple[Finding, ...]:
        """One finding a target."""
        loads, drops_seen = _loads(case)
        if not loads:
            return (absent(self, case, "CPU utilisation"),)
        about = max(loads, key=lambda s: (len(s) >= MIN_SAMPLES, s.metric == _TOTAL, len(s)))
        apart, n = cadence(about), len(about)
        finding = replace(draft(self, case, about), limit=self.seconds, unit="s")
        if n < MIN_SAMPLES or apart is None:
            more = f"needs {duration((MIN_SAMPLES - n) * apart)} more" if apart else f"needs {MIN_SAMPLES} samples"
            reason = f"{counted(n, 'sample')}: {MIN_SAMPLES} needed"
            return (finding.undecided(reason, InconclusiveReason.TOO_FEW, more),)
        enough = [s for s in loads if len(s) >= MIN_SAMPLES]
        polls = _polling(enough, case, self.enter)
        judged = [s for s in enough if s not in polls]
        tops = list(_tops(judged, max(self.seconds, apart), self.enter))
        stretches = list(_saturated(case, tops, _in_window(case, _DROPS)))
        planned, unplanned = [f for f in stretches if f.planned], [f for f in stretches if not f.planned]
        worst = max((f.window.seconds for f in unplanned), default=0.0)
        finding = replace(
            finding,
            measured=worst,
            marks=tuple(f.mark() for f in stretches[:_MAX_MARKS]),
            smallest_detectable=max(self.seconds, apart) + apart,
            detectable_unit="s",
            doubts=tuple(_doubts(polls, loads, drops_seen=drops_seen)),
            numbers={
                "stretches": float(len(unplanned)),
                "planned": float(len(planned)),
                "longest_s": worst,
                "with_drops": float(sum(bool(f.lost) for f in unplanned)),
                "polling": float(len(polls)),
                "highest_mean": max((top.highest for top in tops), default=0.0),
            },
        )
        return (self._outcome(finding, unplanned, planned, judged, polls, apart),)

    def _outcome(
        self,
        finding: Finding,
        unplanned: list[_Full],
        planned: list[_Full],
        judged: list[Series],
        polls: list[Series],
        apart: float,
    ) -> Finding:
        lossy = [f for f in unplanned if f.lost]
        if unplanned:
            text = first_few([f"{moment(f.window.begin_ns)}: {f.mark().text}" for f in lossy or unplanned])
            outcome = Outcome.FAIL if lossy else Outcome.WARN
            tail = "" if lossy else "; no drops were seen meanwhile"
            return replace(finding, outcome=outcome, reason=f"{text}{tail}")
        if not judged:
            reason = f"poll mode: {_names(polls)} busy from the start, so utilisation says nothing about load"
            return finding.not_applicable(f"{reason}; use cycles per packet instead")
        n = len(judged[0])
        if (short := 3 * self.seconds - n * apart) > 0:
            reason = f"{duration(n * apart)} of samples: too short to show a saturation of {duration(self.seconds)}"
            return finding.undecided(reason, InconclusiveReason.TOO_SHORT, f"needs {duration(short)} more")
        if unread := half_unread(finding, finding.samples):
            return unread
        if apart > 1.05 * self.seconds:
            seen, facts = sparse(n, apart, max(float(s.values.max()) for s in judged), self.enter)
            reason = (
                f"a sample every {duration(apart)} cannot show a saturation shorter than {duration(2 * apart)}; {seen}"
            )
            settle = f"poll every {duration(self.seconds)}"
            return replace(finding, reason=reason, why=InconclusiveReason.CADENCE, settle=settle, facts=facts)
        highest = quantity(finding.numbers["highest_mean"], "1")
        aside = f", {counted(len(planned), 'planned saturation')}" if planned else ""
        reason = f"not saturated{aside}: highest mean over {duration(self.seconds)} {highest}"
        return finding.passes(reason)


def _in_window(case: Case, metrics: Container[str]) -> Iterator[Series]:
    """The series of these metrics, one at a time."""
    for series in case.series:
        if series.metric in metrics:
            yield series.between(case.window.begin_ns, case.window.end_ns).finite()


def _loads(case: Case) -> tuple[list[Series], bool]:
    """The utilisations, and whether any counter of drops was read; of a hundred series only those are kept."""
    loads, drops_seen = [], False
    for s in _in_window(case, CpuSaturation.metrics):
        if s.metric in _DROPS:
            drops_seen = drops_seen or len(s) > 1
        else:
            loads.append(s if _within_bounds(s) else replace(s, value=np.clip(s.values, 0.0, 1.0)))
    return loads, drops_seen


def _within_bounds(share: Series) -> bool:
    """Whether no reading has to be limited; a copy of each of a hundred cores is hundreds of MB."""
    value = share.values
    return not value.size or bool(value.min() >= 0.0 and value.max() <= 1.0)


def _saturated(case: Case, tops: list[_Top], drops: Iterable[Series]) -> Iterator[_Full]:
    spans = [(top, span) for top in tops for span in top.spans]
    lost = _Drops(case, drops, [span for _, span in spans], _union([span for _, span in spans]))
    for top, (begin, end) in spans:
        series = top.series
        planned = any(
            p.window.begin_ns - _SLACK_NS <= begin and end <= p.window.end_ns + _SLACK_NS
            for p in case.phases
            if p.name in OVERLOADS
        )
        what = series.object or ("the CPU" if series.metric == _TOTAL else "a core")
        yield _Full(what, Window(begin, end), planned, "; ".join(lost.within(begin, end)), top.throughout)


def _tops(judged: list[Series], seconds: float, enter: float) -> Iterator[_Top]:
    windows: Windows | None = None
    for series in judged:
        value, covered = series.values, covered_seconds(series.time_ns, cadence(series) or 1.0)
        if windows is None or not windows.fits(series.time_ns, covered):
            windows = Windows(series.time_ns, covered, seconds)
        mean = windows.means(value)
        highest = mean if mean.size else value
        whole = _throughout(series) and median(value) >= enter
        yield _Top(series, windows.union(mean, enter), float(highest.max()), whole)


def _polling(loads: list[Series], case: Case, enter: float) -> list[Series]:
    """The series in poll mode: busy already in the baseline phase, or busy throughout with other evidence; the total
    too if the cores that do not poll have room."""
    matches = [s for s in loads if _polls(s, case)]
    cores = [s for s in loads if s.metric == poll_mode_cores.CORE]
    others = [float(np.mean(s.values)) for s in cores if s not in matches]
    if others and len(others) < len(cores) and sum(others) < enter * len(others):
        matches += [s for s in loads if s.metric == _TOTAL and s not in matches and _throughout(s)]
    return matches


def _polls(series: Series, case: Case) -> bool:
    for phase in case.phases:
        calm = series.between(phase.window.begin_ns, phase.window.end_ns) if phase.name == "baseline" else None
        if calm is not None and len(calm) >= MIN_SAMPLES:
            return busy_throughout(series.values, median(calm.values), MIN_SAMPLES)
    if not _throughout(series):
        return False
    return bool(poll_mode_cores.evidence(case, series.object)) or poll_mode_cores.constant(series.metric, series.values)


def _throughout(series: Series) -> bool:
    return busy_throughout(series.values, None, _early(series))


def _early(series: Series) -> int:
    return max(MIN_SAMPLES, round(_EARLY_S / (cadence(series) or 1.0)))


def _union(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((begin, end))
    return joined


class _Drops:
    """What the drop counters of a target counted in each of some stretches, beside their rate outside of all ``hot``
    ones."""

    def __init__(
        self, case: Case, drops: Iterable[Series], stretches: Iterable[tuple[int, int]], hot: list[tuple[int, int]]
    ) -> None:
        self._rose: dict[tuple[int, int], list[str]] = {stretch: [] for stretch in stretches}
        for series in drops if self._rose else ():
            tally = Tally([series])  # one at a time: with what it covers it is as large as three series
            total, seen_s = tally.between(case.window.begin_ns, case.window.end_ns)
            busy = [tally.between(*span) for span in hot]
            calm, calm_s = total - sum(b[0] for b in busy), seen_s - sum(b[1] for b in busy)
            rate = max(0.0, calm) / calm_s if calm_s > 0 else 0.0
            for stretch, rose in self._rose.items():
                count, seen_s = tally.between(*stretch)
                usual = rate * seen_s
                if count >= 1 and count > 2 * usual + 3 * math.sqrt(usual):
                    rose.append(f"{f'{series.metric} {series.object}'.rstrip()} counted {count:.0f}")

    def within(self, begin_ns: int, end_ns: int) -> list[str]:
        """The counters that rose in one of the stretches by more than their usual rate explains."""
        return self._rose[begin_ns, end_ns]


def _names(series: list[Series]) -> str:
    return first_few([s.object or "all cores" for s in series])


def _doubts(polls: list[Series], loads: list[Series], *, drops_seen: bool) -> Iterator[str]:
    if polls:
        yield f"in poll mode, not judged: {_names(polls)}"
    if all(s.metric == _TOTAL for s in loads):
        yield "only the total was polled: one saturated core of several does not show in it"
    if not drops_seen:
        yield "no drop counter was polled: a saturation could only warn"


TRAITS: Final = Traits(
    words=RuleWords("CPU was saturated", "CPU saturated", happened="the CPU of {target} was saturated"),
    rank=90,
    marks=Marks.WITNESSES,
    family=Family.CPU,
    guide=Guide(
        fails_when=(
            "The CPU stays at 95 % or more for 5 min outside stress phases and more than twice as many packets are "
            "dropped meanwhile; without drops it warns."
        ),
        misses=(
            "A core that was busy from the first reading on (it is taken for a polling one), and one busy core of many"
            " in the total."
        ),
        change_with="cpu_saturation: {enter: 98%, seconds: 10m}",
        next_step=(
            "Profile the device at that load (perf top, or the vendor's task list) and see which process or interrupt "
            "holds the core."
        ),
    ),
)
