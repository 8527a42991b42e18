"""Performance decline: a device that carries ever less of what it is offered."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.fact import Certainty, Onset
from soakwatch_model.finding import Finding, InconclusiveReason, Mark, Outcome
from soakwatch_model.roles import DUT
from soakwatch_model.series import Floats
from soakwatch_rules.finding_draft import absent, draft
from soakwatch_rules.load.throughput import Curve, Flow, curve, flows
from soakwatch_rules.parameter import Parameters, parameter
from soakwatch_rules.rule import RuleSpec
from soakwatch_rules.stats.daily import DAY_S, is_daily_sine
from soakwatch_rules.stats.decline import Fall, fall, late_fall
from soakwatch_rules.stats.judge_trend import judge_trend
from soakwatch_rules.stats.medians import median
from soakwatch_rules.stats.onset import onset_s
from soakwatch_rules.stats.standstill import Stop, stops_of_rate
from soakwatch_rules.stats.time_blocks import blocks, how_many
from soakwatch_rules.stats.trend_answer import TrendAnswer
from soakwatch_rules.traits import Family, Guide, Marks, RuleWords, Traits
from soakwatch_rules.wording.quantities import counted, duration, percent, quantity

_MIN_SAMPLES = 16
_HOUR_S = 3600.0
_STOP_S = 10.0  # a standstill this long is left out, as ``loss`` judges it
_SURE = 0.99
_LATE = 0.999
_MAX_VALUE = 1e100
_TIMES = 3.14  # Student's t of 99 % at six degrees of freedom
_MAX_HOURS = 1000.0
_WORDS = {
    "leak": "a steady decline",
    "late leak": "a decline that started late",
    "step": "a step down",
    "two slopes": "two slopes, one after the other",
    "stairs": "a few steps down",
    "plateau": "a decline that ended",
    "step and leak": "a step down and a decline",
    "leak in steps": "a decline in steps",
}


@dataclass(frozen=True, slots=True)
class PerformanceDecline(Parameters):
    """Fails if throughput fell over the run, or is falling at its end.

    Throughput is what each generator got answered (load.request.rate, else the rate of load.requests; the rate of
    load.rx.packets), divided by what it was commanded to send (load.offered.rate, load.offered.packet.rate), else sent
    (load.tx.packets), if that is known. It fails by any of three tests:
    1. At the end of the run it falls faster than ``tolerance`` of the level per run with 95 % probability (the trend
       engine of ``growth`` on mirrored blocks). This sees a decline that begins late or accelerates.
    2. The mean of the last quarter is below that of the first by more than ``tolerance`` with 99 % probability
       (``stats.decline.fall``, which allows for correlated noise). This sees a lasting step, or a decline that ended.
    3. The mean of the last twelfth or 24th is below what came before by more than ``tolerance`` with 99.9 %
       probability, and below every earlier part of that length (``stats.decline.late_fall``). This sees a late step.
    The shape does not matter: unlike memory, throughput has no cache that fills once, and a warm-up only raises it.

    The tolerance is per run, not per day: over hours 5 % a day would be below the noise, over days a daily loss of 5 %
    is unacceptable. It passes if no test fails and the trend passes. If several devices share the load it is unknown
    which one declined: a warning. Standstills of 10 s and more (``stats.standstill``) are left out; ``loss`` judges
    them.

    How often wrong, measured on 100 seeds of 12 h at 10 s with AR(1) noise of 2 % (.9 a minute): failed 0 % of steady
    runs, checkpoint waves of 6 %, warm-ups, a stop of a minute and an offered load that halves (3 to 7 % inconclusive);
    100 % of falls of 20 % within the run, of accelerating ones of 15 %, and by half in one step; 55 % of falls of
    7.5 %, the rest inconclusive. Noise that wanders by 5 % over longer than the run fails in up to 5 %. On ten real
    database runs of 2.6 h two of four declines failed and two were inconclusive (their means fell by 2 to 4 %, their
    medians by 11 %); no other run failed. Known weaknesses: a cycle of the device as long as the run is taken for a
    decline; if only sent packets are known and the generator waits for answers (TCP), it sends less when the device
    slows, and the ratio hides it (the finding says so); more work per request (a growing table) looks the same.

    Neighbours: ``step_change`` gives the time of a step, ``periodic_pause`` judges stops, ``queue_growth`` often shows
    the reason first.

    Parameters: ``tolerance``, ``shortest`` (below).

    >>> from soakwatch_model.window import Window
    >>> from soakwatch_rules.signals import readings
    >>> rate = 1000 + np.random.default_rng(1).normal(0, 20, 1440)
    >>> for loss in (0, 200):
    ...     load = (readings("load.request.rate", rate - loss * np.linspace(0, 1, 1440), 60.0),)
    ...     print(PerformanceDecline().judge(Case("dut", "", Window(0, 86400 * 10**9), load=load))[0].outcome)
    pass
    fail

    References: K. Vaidyanathan, K. Trivedi, A comprehensive model for software rejuvenation, IEEE TDSC 2, 2005 (aging
    shows in throughput before it fails; their straight lines call a warm-up aging); trend: see ``growth``.
    """

    name: ClassVar[str] = "performance_decline"
    version: ClassVar[int] = 3
    summary: ClassVar[str] = "throughput fell over the run"
    metrics: ClassVar[tuple[str, ...]] = ()
    scope: ClassVar[Literal["object", "metric", "target"]] = "target"
    phases: ClassVar[tuple[str, ...]] = ("soak",)
    spec: ClassVar[RuleSpec] = RuleSpec(
        "16 samples of throughput and 2 h; a decision is likely from 96 samples",
        shortest_s=7200.0,
        needs_load=True,
        live="minutes",
    )

    tolerance: float = parameter(
        0.05, "1", "allowed decline in the run, as a share of the level", "noise of real runs", within="(0, 1)"
    )
    shortest: float = parameter(7200.0, "s", "shortest window that is judged", "as for memory")

    def definition(self) -> str:
        return (
            f"throughput (per offered load) may not fall by more than {100 * self.tolerance:g} % of its level in "
            "the run: neither from the first to the last quarter (99 % probability), nor at the rate of its end "
            "(95 %), nor in its last twelfth compared with before (99.9 %); a window shorter than "
            f"{duration(self.shortest)} is not judged"
        )

    def judge(self, case: Case) -> tuple[Finding, ...]:
        """One finding a throughput; none unless the target is the device under test."""
        if case.role != DUT:
            return ()
        matches = flows(case)
        if not matches:
            return (absent(self, case, "throughput (load.request.rate, load.requests or load.rx.packets)"),)
        return tuple(self._of(case, flow) for flow in matches)

    def _of(self, case: Case, flow: Flow) -> Finding:
        finding = replace(
            draft(self, case, flow.series), object=flow.label, unit="1", limit=self.tolerance, detectable_unit="1"
        )
        plain = curve(flow.series)
        # Throughput per unit of load, so that a smaller load is no decline.
        by = (*flow.commanded, *flow.sent)[:1]
        relative = plain.per(by[0]) if by else None
        shown, stopped = _without_stops(relative or plain, flow)
        n, span = shown.rate.size, case.window.seconds
        if n < _MIN_SAMPLES or span < self.shortest:
            return self._too_little(finding, n, span)
        seconds, value = _scaled(case, shown)
        level = median(value)
        if level <= 0:
            reason = "no throughput in most of the window"
            return finding.undecided(reason, InconclusiveReason.NO_REFERENCE, "check that the load reached the device")
        trend = judge_trend(seconds, -value, allowed=self.tolerance * level / span, span_s=(0.0, span), sawtooth=False)
        parts = blocks(seconds, value, begin_s=0.0, end_s=span, number=how_many(n))
        fell = fall(parts.value, self.tolerance)
        doubts = [*self._doubts(flow, plain, relative)]
        if stopped:
            seconds_in = sum((stop.end_ns - stop.begin_ns) * 1e-9 for stop in stopped)
            doubts.append(f"{duration(seconds_in)} in which almost nothing came back were not counted (see loss)")
        if case.devices > 1:
            doubts.append(f"{case.devices} devices share the load: which of them declined is not known")
        finding = replace(self._measured(finding, trend, fell, level, span), doubts=tuple(doubts))
        result = self._conclude(finding, trend, fell, level)
        # A fall shortly before the end is too short for the line and the quarters.
        late = late_fall(parts.value, self.tolerance)
        if result.outcome is not Outcome.FAIL and late is not None and late.probability >= _LATE:
            reason = (
                f"throughput fell by {quantity(_cut(late.share), '1')} shortly before the end and stayed low; "
                f"allowed {quantity(self.tolerance, '1')}"
            )
            numbers = dict(finding.numbers) | {"fell_late": _cut(late.share), "fell_late_probability": late.probability}
            result = replace(finding, outcome=Outcome.FAIL, reason=reason, numbers=numbers)
        if (
            result.outcome is Outcome.FAIL
            and relative is None
            and span >= DAY_S / 3
            and is_daily_sine(parts.time_s, parts.value)
        ):
            reason = f"{result.reason}; but this may be a daily cycle, and the offered load is not known"
            settle = "record the offered load, or run for two days"
            return result.undecided(reason, InconclusiveReason.CYCLE, settle)
        return _with_onset(case, result, seconds, value) if result.outcome is Outcome.FAIL else result

    def _too_little(self, finding: Finding, n: int, span: float) -> Finding:
        more = max(self.shortest - span, 0.0)
        reason = (
            f"{counted(n, 'sample')} of throughput in {duration(max(span, 0.0))}; {_MIN_SAMPLES} samples in "
            f"{duration(self.shortest)} needed"
        )
        if more > 0:
            return finding.undecided(reason, InconclusiveReason.TOO_SHORT, f"needs {duration(more)} more")
        return finding.undecided(reason, InconclusiveReason.TOO_FEW, f"needs {_MIN_SAMPLES} samples")

    def _measured(self, finding: Finding, trend: TrendAnswer, fell: Fall | None, level: float, span: float) -> Finding:
        scale = span / level
        known = trend.smallest_detectable
        numbers = {"level": level, "probability": trend.probability, "falls_per_hour": _cut(trend.rate * 3600 / level)}
        if fell is not None:
            numbers |= {"fell": _cut(fell.share), "fell_error": _cut(fell.error), "fell_probability": fell.probability}
        return replace(
            finding,
            measured=_cut(trend.rate * scale),
            interval=(_cut(trend.rate_low * scale), _cut(trend.rate_high * scale)),
            smallest_detectable=None if known is None else _cut((trend.allowed + known) * scale),
            numbers=numbers,
            facts=(Certainty(trend.probability),),
        )

    def _conclude(self, finding: Finding, trend: TrendAnswer, fell: Fall | None, level: float) -> Finding:
        hourly = f"{percent(-_cut(trend.rate * _HOUR_S / level), sign=True)}/h"
        lower = fell is not None and fell.probability >= _SURE
        change = "" if fell is None else f"last quarter {percent(-_cut(fell.share), sign=True)} compared with the first"
        if trend.outcome is Outcome.FAIL or lower:
            word = _WORDS.get(trend.shape, f"shape {trend.shape}")
            still = f"still falling ({hourly})" if trend.outcome is Outcome.FAIL else "no longer falling"
            reason = "; ".join(
                x
                for x in (f"throughput declined (allowed {quantity(self.tolerance, '1')}): {word}", change, still)
                if x
            )
            return finding.fails(reason)
        if trend.outcome is Outcome.INCONCLUSIVE:
            hours = trend.hours_needed
            more = (
                f"needs {duration(max(hours, 0.1) * _HOUR_S)} more at this noise level"
                if hours is not None
                else (
                    "needs samples without gaps"
                    if trend.why is InconclusiveReason.GAP
                    else "needs a steadier load, or a longer run"
                )
            )
            reason = "; ".join(x for x in (f"whether throughput falls at the end ({hourly}) is undecided", change) if x)
            return finding.undecided(reason, trend.why or InconclusiveReason.NOISE, more)
        # Lower in the last quarter, but not with certainty.
        if fell is not None and fell.share > self.tolerance:
            longer = (_TIMES * fell.error / (fell.share - self.tolerance)) ** 2 - 1
            hours = min(max(longer, 0.1) * finding.window.seconds / _HOUR_S, _MAX_HOURS)
            reason = f"{change}, ± {percent(_cut(fell.error))}: a decline or noise; not falling at the end ({hourly})"
            numbers = dict(finding.numbers) | {"probability": fell.probability}
            return replace(
                finding,
                measured=_cut(fell.share),
                numbers=numbers,
                facts=(Certainty(fell.probability),),
                reason=reason,
                why=InconclusiveReason.NOISE,
                settle=f"needs {duration(hours * _HOUR_S)} more",
            )
        reason = "; ".join(x for x in (f"throughput does not decline ({hourly} at the end)", change) if x)
        return finding.passes(reason)

    def _doubts(self, flow: Flow, plain: Curve, relative: Curve | None) -> list[str]:
        if relative is None:
            return ["the offered load is not known: the load may have declined"]
        if flow.commanded or not flow.sent:
            return []
        absolute = (
            fall(plain.rate[: plain.rate.size // 96 * 96].reshape(96, -1).mean(axis=1), self.tolerance)
            if (plain.rate.size >= 96 and float(np.abs(plain.rate).max()) < _MAX_VALUE)
            else None
        )
        if absolute is None or absolute.probability < _SURE:
            return []
        share = quantity(_cut(absolute.share), "1")
        return [
            f"sent and received both fell by {share}: less was commanded, or the generator waits for a slower device"
        ]


def _without_stops(shown: Curve, flow: Flow) -> tuple[Curve, tuple[Stop, ...]]:
    """The throughput without its standstills, and these."""
    counts = flow.series.trait.unit.startswith("{") and not flow.commanded and not flow.sent
    stops = stops_of_rate(shown.begin_ns, shown.end_ns, shown.rate, _STOP_S, counts=counts)
    keep = np.ones(shown.rate.size, dtype=bool)
    for stop in stops:
        keep &= (shown.end_ns <= stop.begin_ns) | (shown.begin_ns >= stop.end_ns)
    return Curve(shown.begin_ns[keep], shown.end_ns[keep], shown.rate[keep]), stops


def _scaled(case: Case, shown: Curve) -> tuple[Floats, Floats]:
    """Seconds since the window's start (strictly increasing) and rates limited to a size that cannot overflow."""
    seconds = np.asarray((shown.end_ns - case.window.begin_ns) * 1e-9, dtype=np.float64)
    return seconds, np.clip(shown.rate, -_MAX_VALUE, _MAX_VALUE)


def _cut(number: float) -> float:
    return float(np.clip(number, -_MAX_VALUE, _MAX_VALUE)) if not math.isnan(number) else 0.0


def _with_onset(case: Case, failed: Finding, seconds: Floats, value: Floats) -> Finding:
    """The failure with the moment from which throughput declines; a warning if several devices share the load."""
    since_s = onset_s(seconds, value)
    begin = case.window.begin_ns + round((since_s or 0.0) * 1e9)
    begin = min(max(begin, case.window.begin_ns), case.window.end_ns)
    since = () if since_s is None else (Onset(begin, from_first=bool(since_s <= seconds[0])),)
    marks = (Mark(begin, case.window.end_ns, "throughput declines"),)
    result = replace(failed, marks=marks, facts=(*failed.facts, *since))
    return replace(result, outcome=Outcome.WARN) if case.devices > 1 else result


TRAITS: Final = Traits(
    words=RuleWords("throughput declined over time", "forwarding paused", happened="throughput of {target} declined"),
    marks=Marks.WHOLE,
    of_returned_load=True,
    family=Family.TRAFFIC,
    guide=Guide(
        fails_when="The throughput for the same offered load falls by more than 5 % over the run.",
        misses="Runs under 2 h, and declines smaller than the noise.",
        change_with="performance_decline: {tolerance: 10%}",
        next_step=(
            "Compare CPU per packet, memory and table sizes at the begin and at the end: something makes each packet "
            "dearer."
        ),
    ),
)
