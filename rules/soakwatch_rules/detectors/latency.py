"""Latency: answers that became slow and stayed slow."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.finding import Finding, InconclusiveReason, Mark, Outcome
from soakwatch_model.label import label
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.baseline_before_window import baseline_doubt, imported_baseline, which_baseline
from soakwatch_rules.finding_draft import draft, each_series, half_unread
from soakwatch_rules.latency.latency_blocks import (
    EARLY,
    MIN_REFERENCE_BLOCKS,
    READINGS,
    ROUND_TRIP,
    LatencyGrid,
    baselines,
    compared_blocks,
    earlier_level,
    grid_of,
    ratio_words,
)
from soakwatch_rules.latency.slow_stretches import DOUBLED, SlowStretch, slow_stretches, without_overlap
from soakwatch_rules.parameter import Parameters, parameter
from soakwatch_rules.rule import Input, RuleSpec
from soakwatch_rules.sampling import cadence
from soakwatch_rules.stats.hysteresis import stretches
from soakwatch_rules.stats.slowdown import Slowness
from soakwatch_rules.traits import Family, Guide, RuleWords, Traits
from soakwatch_rules.wording.quantities import counted, duration, first_few, moment
from soakwatch_rules.wording.series_names import name_of

_LIMITS: Final = {
    "p50": ("p50", "0.5", "0.50", "50", "median"),
    "p90": ("p90", "0.9", "0.90", "90"),
    "p95": ("p95", "0.95", "95"),
    "p99": ("p99", "0.99", "99"),
    "p999": ("p999", "p99.9", "0.999", "99.9"),
    "mean": ("mean", "avg"),
    "highest": ("max",),
}
_SHORT = 0.1  # share of a short run that a block may take
_COARSE, _COARSEST = 0.02, 0.1  # shares of the run: the longest block; the longest where a pass would say nothing else
_NOISE, _GROSS_NOISE = 4.0, 6.0  # sigmas of a block
_TWICE = 2.0
_PASS = 3.0  # a pass must have been able to show a rise to this many times the usual latency
_MAX_MARKS = 50


@dataclass(frozen=True, slots=True)
class Latency(Parameters):
    """Fails if latency rose and stayed high: latencies of the load by percentile, round trips to a peer.

    Blocks: readings (seconds) are grouped into blocks of ``lasting`` (in short runs a tenth of the run) with at least
    three readings. A block's value is their median, so single slow answers are no fault, on a log scale because
    latencies have heavy tails.

    Usual level: that of the baseline phase, else of an earlier run named as baseline, else of the early part of the run
    (the first quarter of the soak, or the second if that is a quarter lower). It is corrected for load: the slope of
    log latency over log load of all blocks (median of pairs, 0 to 3) gives the usual level at a block's load. The load
    is what the generators were commanded to send, else what they sent, else what was answered.

    Fails: over ``gross`` times the usual level, and 6 robust sigmas of a block, for ``lasting``; or over ``factor``
    times and 4 sigmas of longer blocks (up to 2 % of the run), with a median about double, for ``share`` of the judged
    time. Up to the end, ``ending`` of it is enough, and a steep rise by ``factor`` instead of double. Anything shorter
    or less warns. Differences below ``floor`` do not count (a tenth of it for latencies of the load, and no floor if
    they are tenfold). Up to four times the level only warns under a load higher than any before, or after a gradual
    rise that came back (a wave); a gradual rise to the end with unknown load is inconclusive. Not reported: what
    earlier blocks at the same load had too, and cold caches (slow answers that end early).

    A limit of a percentile in the plan (``p99: 50ms``; ``round_trip`` for peers) decides instead: ``lasting`` above it
    fails, and slower answers below it only warn. Not judged: phases named stress and spike, ramps, ``recovery`` after a
    stress, and announced events; the rule ``recovery`` says whether the level comes back.

    How often wrong: `soakwatch rules latency` shows the measured table. Known weaknesses: without a baseline it does
    not see latency that was high from the start; a doubled latency under a load never seen before; percentiles of few
    requests scatter by half (then up to three times the level is not seen, and the finding says so); an imported
    baseline taken at another load.

    Neighbours: ``recovery`` judges the return after stress, ``step_change`` any lasting step (a warning), ``level`` a
    limit on the 99th percentile reading by reading, ``management_isolation`` slow management under stress.

    Parameters: ``factor``, ``gross``, ``lasting``, ``share``, ``ending``, ``floor``, and a limit per percentile.

    >>> from soakwatch_rules.signals import readings
    >>> rng = np.random.default_rng(1)
    >>> calm = 0.02 * rng.lognormal(0.0, 0.3, 1440)
    >>> for value in (calm, np.where(np.arange(1440) < 1150, calm, 2 * calm)):
    ...     series = readings("load.latency", value, 60.0, object="quantile=p99")
    ...     finding = Latency().judge(Case("dut", "", Window(0, 86400 * 10**9), (series,)))[0]
    ...     print(finding.outcome, "-", finding.reason.partition(" from")[0].partition(" (")[0])
    pass - p99 latency stayed near its usual 19.6 ms
    fail - p99 latency was 2 times the usual value

    References: P. Sen, Estimates of the regression coefficient based on Kendall's tau, JASA 63, 1968; L. Kleinrock,
    Queueing systems I, 1975 (delay grows with load, without bound near saturation); RFC 2544, 26.2 and RFC 7679 (what
    the latency of a device is); F. Hampel, JASA 69, 1974 (median absolute deviation).
    """

    name: ClassVar[str] = "latency"
    version: ClassVar[int] = 1
    summary: ClassVar[str] = "latency rose and stayed high"
    metrics: ClassVar[tuple[str, ...]] = ("load.latency", "load.flow.latency", ROUND_TRIP)
    scope: ClassVar[Literal["object", "metric", "target"]] = "metric"
    phases: ClassVar[tuple[str, ...]] = ()
    spec: ClassVar[RuleSpec] = RuleSpec(
        "18 samples, a third of them to know the usual latency (or a baseline)",
        shortest_s=1800.0,
        live="minutes",
        inputs=frozenset({Input.BASELINE}),
    )

    order: ClassVar[tuple[str, ...]] = (
        "factor <= gross",
        "ending <= share",
    )
    factor: float = parameter(
        1.6,
        "1",
        "allowed factor over the usual latency",
        "finds a doubled latency in most noise",
        within="(1, inf)",
    )
    gross: float = parameter(
        10.0, "1", "factor that fails however short", "no normal cycle is tenfold", within="(1, inf)"
    )
    lasting: float = parameter(
        60.0, "s", "minimum duration of high latency", "single slow answers are not a fault", within="(0, inf)"
    )
    share: float = parameter(
        0.1, "1", "allowed share of the judged time with high latency", "a batch job of 2 h a day", within="(0, 1)"
    )
    ending: float = parameter(
        0.05, "1", "the same if it lasts to the end of the run", "an hour of a day", within="(0, 1)"
    )
    floor: float = parameter(0.001, "s", "difference that is ignored", "0.3 to 0.7 ms of a ping is normal")
    p50: float = parameter(0.0, "s", "limit of the median; 0 = none")
    p90: float = parameter(0.0, "s", "limit of the 90th percentile; 0 = none")
    p95: float = parameter(0.0, "s", "limit of the 95th percentile; 0 = none")
    p99: float = parameter(0.0, "s", "limit of the 99th percentile; 0 = none")
    p999: float = parameter(0.0, "s", "limit of the 99.9th percentile; 0 = none")
    mean: float = parameter(0.0, "s", "limit of the mean; 0 = none")
    highest: float = parameter(0.0, "s", "limit of the maximum of each sample; 0 = none")
    round_trip: float = parameter(0.0, "s", "limit of the round trip to a peer; 0 = none")

    def definition(self) -> str:
        limits = [f"{name} {duration(value)}" for name in (*_LIMITS, "round_trip") if (value := getattr(self, name))]
        return (
            f"medians of {duration(self.lasting)} may not exceed {self.gross:g} times the usual latency at that load, "
            f"nor {self.factor:g} times for {100 * self.share:g} % of the judged time (for {100 * self.ending:g} % if "
            f"it lasts to the end), by at least {duration(self.floor)}; the usual latency is that of the baseline, "
            f"else of the early run; {'limits of ' + ', '.join(limits) if limits else 'no limit is set'}"
        )

    def judge(self, case: Case) -> tuple[Finding, ...]:
        """One finding a series."""
        return each_series(self, case, "latency or round trip", self._of)

    def _of(self, case: Case, series: Series) -> Finding:
        series = series.between(case.window.begin_ns, case.window.end_ns).finite()
        good = (series.values > 0) & (series.values < 1e9)
        series = replace(series, time_ns=series.time_ns[good], value=series.value[good])
        finding, apart = replace(draft(self, case, series), unit="s"), cadence(series)
        if apart is None or len(series) < READINGS * MIN_REFERENCE_BLOCKS:
            reason = (
                f"{counted(len(series), 'sample')} of {name_of(series)}; {READINGS * MIN_REFERENCE_BLOCKS} needed to "
                "know the "
                "usual latency"
            )
            settle = f"needs {READINGS * MIN_REFERENCE_BLOCKS} samples"
            return finding.undecided(reason, InconclusiveReason.TOO_FEW, settle)
        if unread := half_unread(finding, len(series)):
            return unread
        total_s = case.window.seconds
        block_s = max(min(self.lasting, _SHORT * total_s), READINGS * apart)
        return self._limited(case, finding, series, block_s) or self._compared(case, finding, series, block_s)

    def _limit(self, series: Series) -> float:
        if series.metric == ROUND_TRIP:
            return self.round_trip
        text = label(series.object, "quantile")
        return next((float(getattr(self, name)) for name, words in _LIMITS.items() if text in words), 0.0)

    def _limited(self, case: Case, finding: Finding, series: Series, block_s: float) -> Finding | None:
        """The finding by the plan's limit; None if it sets none."""
        limit = self._limit(series)
        if not limit:
            return None
        fine = grid_of(case, series, block_s)
        seen = fine.judged & np.isfinite(fine.value)
        positions = np.flatnonzero(seen)
        over = fine.value[positions] > limit
        pairs = [
            (int(positions[b]), int(positions[e - 1]) + 1)
            for b, e in stretches(over.astype(np.float64), 1.0, 1.0).tolist()
        ]
        spans = [Window(int(fine.edges_ns[b]), int(fine.edges_ns[e])) for b, e in pairs]
        highest = float(fine.value[seen].max()) if positions.size else 0.0
        finding = replace(
            finding,
            measured=highest,
            limit=limit,
            smallest_detectable=block_s,
            detectable_unit="s",
            marks=tuple(
                Mark(w.begin_ns, w.end_ns, f"above the limit of {duration(limit)}") for w in spans[:_MAX_MARKS]
            ),
            numbers={"stretches": float(len(spans)), "seconds": sum(w.seconds for w in spans), "highest": highest},
        )
        name = name_of(series)
        if spans:
            text = first_few([f"{moment(w.begin_ns)} for {duration(w.seconds)}" for w in spans])
            reason = f"{name} exceeded the limit of {duration(limit)}: {text}; highest median {duration(highest)}"
            return finding.fails(reason)
        if not positions.size:
            settle = f"needs {READINGS} samples per {duration(block_s)} in a judged phase"
            return finding.undecided(f"too few samples of {name}", InconclusiveReason.TOO_FEW, settle)
        finding = replace(finding, outcome=Outcome.PASS)
        reason = f"{name} stayed below the limit of {duration(limit)}; highest median {duration(highest)}"
        # Below the plan's limit, a slowdown against the usual value only warns.
        compared = self._compared(case, finding, series, block_s)
        if compared.outcome in {Outcome.FAIL, Outcome.WARN}:
            return replace(
                finding, outcome=Outcome.WARN, reason=f"{reason}; but {compared.reason}", marks=compared.marks
            )
        return replace(finding, reason=reason)

    def _compared(self, case: Case, finding: Finding, series: Series, block_s: float) -> Finding:
        before, name = imported_baseline(case, series), name_of(series)
        own = None if before is None else earlier_level(before)
        fine = grid_of(case, series, block_s)
        if not fine.judged.any():
            reason = f"{name} was only polled in phases that other rules judge"
            return finding.not_applicable(reason)
        known = int((fine.reference & np.isfinite(fine.value)).sum())
        if known < MIN_REFERENCE_BLOCKS:
            need = duration(MIN_REFERENCE_BLOCKS / EARLY * block_s)
            reason = (
                f"only {counted(known, 'block')} of {duration(block_s)} to know the usual {name}; "
                f"{MIN_REFERENCE_BLOCKS} needed"
            )
            settle = f"needs {need} of samples, or a baseline phase of {duration(MIN_REFERENCE_BLOCKS * block_s)}"
            return finding.undecided(reason, InconclusiveReason.TOO_SHORT, settle)
        quick = compared_blocks(fine, own)
        gross = max(math.log(self.gross), _GROSS_NOISE * quick.sigma)
        wide, slow = self._coarse(case, series, fine, own)
        least = max(math.log(self.factor), _NOISE * slow.sigma)
        brief = max(math.log(max(self.factor, 2.0)), _GROSS_NOISE * quick.sigma)
        stretches = slow_stretches(case, series, fine, quick, gross, self.floor, gross=True)
        stretches += slow_stretches(case, series, wide, slow, least, self.floor)
        shorter = slow_stretches(case, series, fine, quick, brief, self.floor)
        return self._conclude(case, finding, series, (wide, slow, least), stretches, shorter)

    def _coarse(self, case: Case, series: Series, fine: LatencyGrid, own: float | None) -> tuple[LatencyGrid, Slowness]:
        """Blocks doubled in length until the noise lets them show ``factor``, or the run has no room for longer
        ones."""
        most_s = max(fine.block_s, _COARSE * case.window.seconds)
        block_s, grid = fine.block_s, fine
        slow = compared_blocks(grid, own)
        while (_NOISE * slow.sigma > math.log(self.factor) and 2 * block_s <= most_s) or (
            _NOISE * slow.sigma > math.log(_PASS) and 2 * block_s <= _COARSEST * case.window.seconds
        ):
            block_s *= 2
            wider = grid_of(case, series, block_s)
            if int((wider.reference & np.isfinite(wider.value)).sum()) < MIN_REFERENCE_BLOCKS:
                break
            grid, slow = wider, compared_blocks(wider, own)
        return grid, slow

    def _conclude(
        self,
        case: Case,
        finding: Finding,
        series: Series,
        wide: tuple[LatencyGrid, Slowness, float],
        stretches: list[SlowStretch],
        shorter: list[SlowStretch],
    ) -> Finding:
        grid, slow, least = wide
        name, level = name_of(series), math.exp(slow.level)
        seen = grid.judged & np.isfinite(slow.off)
        judged_s = float(seen.sum()) * grid.block_s
        # What lasts fails; what rose gradually to the end is undecided; what passed again only warns.
        failing = self._failing(stretches, judged_s, grid.block_s)
        late = [
            s for s in stretches if s.gradual and s.to_end and s.times >= _TWICE and s.seconds >= self.ending * judged_s
        ]
        worst = float(slow.off[seen].max()) if seen.any() else 0.0
        long = [
            s for s in stretches if s.times >= DOUBLED or (s.times >= self.factor and s.seconds >= 3 * grid.block_s)
        ]
        reported = failing or late or without_overlap([*long, *shorter])
        finding = replace(
            finding,
            measured=max((s.value * level / s.usual for s in reported), default=level * math.exp(worst)),
            limit=level * math.exp(least),
            smallest_detectable=math.exp(least) - 1,
            detectable_unit="1",
            marks=tuple(
                Mark(s.window.begin_ns, s.window.end_ns, f"{s.times:.3g} times the usual value")
                for s in reported[:_MAX_MARKS]
            ),
            numbers={
                "usual": level,
                "times": max((s.times for s in reported), default=math.exp(worst)),
                "slope": slow.slope,
                "sigma": slow.sigma,
                "block_s": grid.block_s,
                "seconds": sum(s.seconds for s in reported),
            },
            doubts=(baseline_doubt(case),) if imported_baseline(case, series) is not None else (),
        )
        if failing or late:
            reason = self._lasting_words(case, series, failing or late, grid.block_s)
            if failing:
                return finding.fails(reason)
            reason += "; it rose gradually and the load is not known: a load cycle, or a device that slows down"
            settle = "record the offered load (load.offered.rate, load.tx.packets), or run for two whole cycles"
            return finding.undecided(reason, InconclusiveReason.CYCLE, settle)
        if reported:
            return finding.warns(_temporary_words(name, level, reported))
        if math.exp(least) > _PASS and finding.outcome is not Outcome.PASS:
            rise = f"a rise to {math.exp(least):.2g} times the usual {duration(level)}"
            settle = "needs more requests per sample, or longer phases"
            return finding.undecided(
                f"{name} is so noisy that {rise} cannot be detected", InconclusiveReason.NOISE, settle
            )
        highest = f"the slowest {duration(grid.block_s)} had {duration(level * math.exp(worst))}"
        reason = f"{name} stayed near its usual {duration(level)} ({self._usual(case, series)}); {highest}"
        return finding.passes(reason)

    def _failing(self, stretches: list[SlowStretch], judged_s: float, block_s: float) -> list[SlowStretch]:
        """The grossly slow stretches; without any, the slow ones that last and that a load does not explain."""
        return [s for s in stretches if s.gross and s.times >= DOUBLED / 2 * self.gross] or [
            s
            for s in stretches
            if not (s.gradual or s.above)
            and (s.times >= min(DOUBLED, self.factor**1.25) or (s.steep and s.to_end))
            and s.seconds >= (self.ending if s.to_end else self.share) * judged_s
            and s.seconds >= 2 * block_s
        ]

    def _lasting_words(self, case: Case, series: Series, lasting: list[SlowStretch], block_s: float) -> str:
        """The worst of these stretches in words: how slow, from when, how long."""
        s = max(lasting, key=lambda stretch: (stretch.gross, stretch.seconds * math.log(max(stretch.times, 1.01))))
        over = s.window.end_ns >= case.window.end_ns - round(2e9 * block_s)
        end = "to the end of the run" if over else "to the end of the judged time"
        ends = f" {end}" if s.to_end else f" for {duration(s.seconds)}"
        lasted = f", for {duration(s.seconds)}" if s.to_end else ""
        return (
            f"{name_of(series)} was {ratio_words(s.times)} the usual value from {moment(s.window.begin_ns)}{ends}: "
            f"{duration(s.value)} instead of {duration(s.usual)} ({self._usual(case, series)}){lasted}"
        )

    def _usual(self, case: Case, series: Series) -> str:
        if imported_baseline(case, series) is not None:
            return which_baseline(case)
        return "the baseline" if baselines(case) else "the early run"


def _temporary_words(name: str, level: float, reported: list[SlowStretch]) -> str:
    texts = first_few([f"{moment(s.window.begin_ns)} for {duration(s.seconds)}: {duration(s.value)}" for s in reported])
    least = ratio_words(min(s.times for s in reported))
    above = "; the load was higher than ever before" if any(s.above for s in reported) else ""
    return f"{name} temporarily exceeded {least} the usual {duration(level)}: {texts}{above}"


TRAITS: Final = Traits(
    words=RuleWords("latency rose and stayed high", happened="latency through {target} rose and stayed high"),
    family=Family.TRAFFIC,
    guide=Guide(
        fails_when=(
            "Medians of a minute exceed ten times the usual latency at that load, or 1.6 times for a tenth of the run."
        ),
        misses="Latency that was slow from the start in a run without a baseline phase.",
        change_with="latency: {factor: 2, p99: 20ms}",
        next_step=(
            "Compare the slow stretch with CPU, queues and drops in the same minutes; repeat it at a lower load to see"
            " whether it is queueing."
        ),
    ),
)
