"""Trend: does a series grow, at the end of its run, faster than allowed? Yes, no, or why that is undecided."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from soakwatch_model.finding import InconclusiveReason, Outcome
from soakwatch_model.series import Floats
from soakwatch_rules.stats.ar1 import Slope, hours_more, power, slope
from soakwatch_rules.stats.cycles import Cycles, cycles
from soakwatch_rules.stats.falls import Release, freed, released
from soakwatch_rules.stats.medians import median
from soakwatch_rules.stats.mixture import Mixture, mixture
from soakwatch_rules.stats.robust_level import level_before_growth
from soakwatch_rules.stats.time_blocks import MIN_SAMPLES, Blocks, Statistic, blocks, how_many, winsorised
from soakwatch_rules.stats.tolerance import Thresholds, Tolerance
from soakwatch_rules.stats.trend_answer import PivotLine, TrendAnswer, scaled_back

_GUARDED: Final = 48  # blocks of the straight line
_TAIL: Final = 12  # blocks after a bend that suffice for a line of their own
_SHORT_S: Final = 6 * 3600.0  # shorter windows need more certainty to pass
_SOME: Final = 4096  # readings from which the quantum is taken
_DITHERED: Final = 0.2  # quanta of spread within a sixteenth of the run
_RISEN: Final = 1.5  # quanta of growth that must have shown
_EXACT: Final = 1e-6  # share of the largest reading to which a fit is trusted
_ROUNDED: Final = 1 + 1e-9
_MISSING: Final = 0.5
_UNEVEN: Final = 0.1  # share of a sawtooth's height by which two peaks may differ
_BEYOND: Final = 0.5  # share of its height above its highest peak at which it is no sawtooth any more
_RIM: Final = 32  # parts of the run; the last one gives its end
_EVENS: Final = 0.5
_LATEST: Final = 0.82  # share of the run: growth that begins later was not seen for long enough
_HALF: Final = 0.5
_WAVE: Final = 2.0  # times the movement worth a verdict: a wave that swings by less is not judged as growth
_LONG_SINCE: Final = 0.25  # share of the run since a release that is enough to be judged
_STRETCHES: Final = 16  # parts of the run whose means show how far it moved
_RULED_OUT: Final = 0.1  # share of the probability ``clear``
_BENDING: Final = frozenset({"late leak", "two slopes", "step and leak"})
_STRAIGHT: Final = frozenset({"constant", "leak"})
_BENDLESS: Final = frozenset(
    {
        "constant",
        "leak",
        "warm-up",
        "two warm-ups",
        "warm-up and leak",
        "two warm-ups and leak",
        "half wave",
        "leak in steps",
        "cycle",
        "cycle and leak",
    }
)


def judge_trend(
    time_s: Floats,
    value: Floats,
    *,
    allowed: float | Tolerance,
    span_s: tuple[float, float] | None = None,
    quantum: float | None = None,
    statistic: Statistic = "mean",
    sawtooth: bool = True,
    thresholds: Thresholds | None = None,
) -> TrendAnswer:
    """Judges finite readings at strictly increasing times; growth is upwards. Never raises on data.

    ``allowed`` is growth per second, or a tolerance of the level. ``span_s`` is the window on the axis of ``time_s``
    (default: from the first reading to one distance after the last), ``quantum`` the smallest step that the source
    states, ``statistic`` the value of a block, ``sawtooth`` whether one is searched and removed.
    """
    begin_s, end_s = span_s if span_s is not None else _span(time_s)
    size = float(np.max(np.abs(value), initial=0.0)) or 1.0
    with np.errstate(all="ignore"):
        share = allowed if isinstance(allowed, Tolerance) else Tolerance(0.0, 1.0, allowed * (end_s - begin_s))
        scaled = replace(share, floor=share.floor / size)
        asked = _Question(
            time_s - begin_s,
            value / size,
            end_s - begin_s,
            scaled,
            (quantum or 0.0) / size,
            statistic,
            thresholds or Thresholds(),
            sawtooth,
        )
        return scaled_back(asked.answer(), size, begin_s)


def may_grow(time_s: Floats, value: Floats, allowed_per_s: float) -> bool:
    """Whether the slope may exceed half of what is allowed, so that a running soak is worth the full judgement.

    For block means (some hundred at most): by the upper 95 % bound of their AR(1)-corrected slope, or of their last
    half's.
    """
    if value.size < MIN_SAMPLES:
        return False
    size = float(np.max(np.abs(value))) or 1.0
    with np.errstate(all="ignore"):
        limit, half, scaled = 0.5 * allowed_per_s / size, value.size // 2, value / size
        return slope(time_s, scaled).high() > limit or slope(time_s[half:], scaled[half:]).high() > limit


@dataclass(frozen=True, eq=False)
class _Question:
    """Readings from time 0 on, scaled so that the largest is 1."""

    time_s: Floats
    value: Floats
    span_s: float
    tolerance: Tolerance
    quantum: float
    statistic: Statistic
    thresholds: Thresholds
    sawtooth: bool

    def answer(self) -> TrendAnswer:
        """The answer for too few readings, too many gaps, a constant, a sawtooth, or else by blocks."""
        if self.value.size < MIN_SAMPLES or not self.span_s > 0:
            level = median(self.value) if self.value.size else 0.0
            allowed = self.tolerance.per_second(level, self.span_s)
            return TrendAnswer(
                Outcome.INCONCLUSIVE, InconclusiveReason.TOO_FEW, allowed, "none", level, blocks=self.value.size
            )
        whole = blocks(
            self.time_s,
            self.value,
            begin_s=0.0,
            end_s=self.span_s,
            number=how_many(self.value.size),
            statistic=self.statistic,
        )
        level = level_before_growth(whole.value)
        blank = TrendAnswer(
            Outcome.INCONCLUSIVE,
            InconclusiveReason.GAP,
            self.tolerance.per_second(level, self.span_s),
            "none",
            level,
            blocks=len(whole),
            missing=whole.missing,
        )
        if whole.missing > _MISSING:
            return blank
        if float(np.ptp(self.value)) == 0:
            return self._constant(blank)
        match = None
        if self.sawtooth:
            match = cycles(self.time_s, self.value, begin_s=0.0, end_s=self.span_s, quantum=self._step)
        return self._by_blocks(blank, whole) if match is None else self._by_cycles(match)

    def _constant(self, blank: TrendAnswer) -> TrendAnswer:
        hidden = max(self.quantum - self.tolerance.floor, 0.0) / self.span_s
        trend = replace(
            blank,
            outcome=Outcome.PASS,
            why=None,
            mode="constant",
            probability=0.0,
            shape="constant",
            weight=1.0,
            smallest_detectable=hidden,
            line=PivotLine(self.span_s / 2, blank.level, 0.0, 0.0, hidden),
        )
        if hidden <= trend.allowed * _ROUNDED:
            return trend
        hours = (self.quantum / trend.allowed - self.span_s) / 3600 if trend.allowed > 0 else None
        return replace(trend, outcome=Outcome.INCONCLUSIVE, why=InconclusiveReason.RESOLUTION, hours_needed=hours)

    def _by_cycles(self, match: Cycles) -> TrendAnswer:
        """The answer without the sawtooth; its line is raised to the peaks."""
        rest = replace(self, value=match.taken_out(self.time_s, self.value), quantum=self._step, sawtooth=False)
        trend = self._open_end(rest.answer(), rest, match)
        line = None if trend.line is None else replace(trend.line, centre=trend.line.centre + match.height)
        level = match.floors_rise(self.time_s, self.value) <= trend.allowed * self.span_s
        return replace(trend, mode="sawtooth", cycles=int(match.falls.size), line=line, level_floors=level)

    def _open_end(self, trend: TrendAnswer, rest: _Question, match: Cycles) -> TrendAnswer:
        """The answer, given that the last climb has not fallen yet and cycles differ: up to the usual peak only what
        came before the climb decides; up to half of a fall above the highest peak the climb proves no growth by
        itself."""
        last = self.value[-max(1, self.value.size // _RIM) :]
        beyond = median(last) - match.peak
        if trend.outcome is Outcome.PASS or beyond > _BEYOND * match.height:
            return trend
        end_s = float(match.falls[-1])
        doubt = replace(
            trend,
            outcome=Outcome.INCONCLUSIVE,
            why=InconclusiveReason.CYCLE,
            hours_needed=match.longest / 3600,
            climbing=True,
        )
        if end_s < _HALF * self.span_s:
            return doubt if trend.outcome is Outcome.FAIL else trend
        seen = self.time_s < end_s
        before = replace(rest, time_s=rest.time_s[seen], value=rest.value[seen], span_s=end_s).answer()
        if trend.outcome is Outcome.FAIL and before.outcome is Outcome.FAIL:
            return trend
        if beyond <= _UNEVEN * match.height:
            return before
        return doubt if trend.outcome is Outcome.FAIL else trend

    def _worth(self, trend: TrendAnswer) -> float:
        """The movement within the run that is worth a verdict: what is allowed in the run, or, from half a horizon on,
        what is allowed per horizon."""
        within = trend.allowed * self.span_s
        long = self.span_s >= _HALF * self.tolerance.horizon_s
        return max(within, self.tolerance.share * abs(trend.level)) if long else within

    def _small(self, trend: TrendAnswer, value: Floats) -> TrendAnswer:
        """A pass instead of a doubt about less than is allowed in the run (per horizon if growth is unlikely, since
        half of a small wave is no leak)."""
        if (
            trend.outcome is not Outcome.INCONCLUSIVE
            or trend.why not in {InconclusiveReason.CYCLE, InconclusiveReason.NOISE}
            or trend.guard
        ):
            return trend
        means = [float(np.mean(part)) for part in np.array_split(value, min(_STRETCHES, value.size))]
        small = self._worth(trend) if trend.probability <= self.thresholds.free else trend.allowed * self.span_s
        if trend.probability >= _EVENS or max(means) - min(means) > small:
            return trend
        return replace(trend, outcome=Outcome.PASS, why=None, hours_needed=None, waived="small")

    def _by_blocks(self, blank: TrendAnswer, whole: Blocks) -> TrendAnswer:
        value = winsorised(whole.value)
        parts = mixture(value, resolution=_EXACT, quantum=self._step)
        pairs = 1 if value.size <= _GUARDED else 2
        number = value.size // pairs
        joined = value[: pairs * number].reshape(number, pairs).mean(axis=1)
        times = whole.time_s[: pairs * number].reshape(number, pairs).mean(axis=1)
        fit, tail = slope(times, joined), slope(times[number // 2 :], joined[number // 2 :])
        guard = fit.low(self.thresholds.guard) > blank.allowed and tail.slope > blank.allowed
        trend = replace(
            blank,
            mode="mean",
            guard=guard,
            smallest_detectable=fit.detectable(self.thresholds.guard),
            correlation=fit.correlation,
        )
        trend, free, goes_on = _with_parts(trend, parts, self.span_s, self.thresholds.guard)
        trend = replace(trend, line=self._end_line(trend, whole.time_s, value, fit))
        trend = self._decided(trend, free, goes_on, fit, parts, value)
        if trend.outcome is Outcome.FAIL:
            trend = self._after_release(self._line_disagrees(trend, parts, whole.time_s, value), value)
        trend = self._resolved(self._small(replace(trend, release=freed(value)), value), value)
        return trend if trend.release is None else self._since(trend, trend.release)

    def _since(self, trend: TrendAnswer, release: Release) -> TrendAnswer:
        """A pass instead of a doubt if the series since the release passes and is long enough to be judged."""
        begin_s = self.span_s * (release.index + 1) / trend.blocks
        since = self.time_s >= begin_s
        if trend.outcome is not Outcome.INCONCLUSIVE or self.span_s - begin_s < _LONG_SINCE * self.span_s:
            return trend
        rest = replace(
            self,
            time_s=self.time_s[since] - begin_s,
            value=self.value[since],
            span_s=self.span_s - begin_s,
            sawtooth=False,
        )
        if rest.answer().outcome is not Outcome.PASS:
            return trend
        return replace(trend, outcome=Outcome.PASS, why=None, hours_needed=None, waived="freed")

    def _line_disagrees(self, trend: TrendAnswer, parts: Mixture, times: Floats, value: Floats) -> TrendAnswer:
        """Two growing shapes as doubts if the straight line does not confirm them. Growth that begins late in the run
        may be a step, a job or a cache that begins to fill, if nothing grew before. A leak under a cycle may be the
        cycle, if it is less than twice what is allowed or the run is short.
        """
        begun = trend.bend_s if trend.shape in _BENDING and trend.bend_s is not None else 0.0
        late = begun >= _LATEST * self.span_s
        if late and trend.shape == "step and leak":
            late = not self._grew(value[times < begun], trend.allowed * self.span_s / value.size)
        cycle = trend.shape == "cycle and leak" and (trend.rate_low < _WAVE * trend.allowed or self.span_s < _SHORT_S)
        cycle = cycle and parts.without("cycle and leak", trend.allowed * self.span_s) < _EVENS
        if trend.guard or not (late or cycle):
            return trend
        hours = (begun / _LATEST - self.span_s) / 3600 if late else self.span_s / 3600
        return replace(
            trend,
            outcome=Outcome.INCONCLUSIVE,
            why=InconclusiveReason.NOISE if late else InconclusiveReason.CYCLE,
            hours_needed=max(hours, 0.0),
        )

    def _grew(self, value: Floats, allowed: float) -> bool:
        """Whether the shapes of what came before a step agree that it grew by more than ``allowed`` a block."""
        if value.size < 2 * MIN_SAMPLES:
            return False
        sure, _, goes_on = mixture(value, resolution=_EXACT, quantum=self._step).above(allowed * value.size)
        return min(sure, goes_on) >= self.thresholds.fail

    def _after_release(self, trend: TrendAnswer, value: Floats) -> TrendAnswer:
        """Growth since an abrupt release: a pass if that took back all earlier growth (a sawtooth seen once), else
        open."""
        release = released(value, trend.allowed * self.span_s / value.size)
        if release is None:
            return trend
        if release.whole:
            return replace(trend, outcome=Outcome.PASS, why=None, hours_needed=None, waived="released")
        return replace(trend, outcome=Outcome.INCONCLUSIVE, why=InconclusiveReason.RELEASE, hours_needed=None)

    def _end_line(self, trend: TrendAnswer, times: Floats, value: Floats, whole: Slope) -> PivotLine | None:
        """The straight line that continues after the end, through what comes after a bend."""
        if trend.shape == "leak" or trend.shape not in _BENDING | {"warm-up and leak", "two warm-ups and leak"}:
            return _line(whole, times, value)
        begin_s = trend.bend_s if trend.bend_s is not None else self.span_s / 2
        begin = int(np.searchsorted(times, begin_s))
        if value.size - begin < _TAIL:
            return None
        return _line(slope(times[begin:], value[begin:]), times[begin:], value[begin:])

    def _decided(
        self,
        trend: TrendAnswer,
        free: float,
        goes_on: float,
        fit: Slope,
        parts: Mixture | None,
        value: Floats | None = None,
    ) -> TrendAnswer:
        want, sure = self.thresholds, trend.probability
        limit, small = trend.allowed * self.span_s, _WAVE * self._worth(trend)
        turning = parts.turning(limit, small) if parts is not None else 0.0
        if turning > want.clear and parts is not None and value is not None:
            back = parts.came_back(limit, small, value)
            turning -= back
            trend = replace(trend, waived="wave" if back > want.clear else "")
        fail, guarded, clear = want.fail, want.guarded, want.free
        if self.span_s < _SHORT_S:
            fail, clear = max(fail, want.fail_short), min(clear, want.free_short)
        if sure >= fail or (trend.guard and goes_on >= guarded):
            return replace(trend, outcome=Outcome.FAIL, why=None, waived="")
        # P among the shapes that can grow does not matter once the readings have excluded those shapes
        doubted = free > clear and sure + turning > _RULED_OUT * want.clear
        if sure + turning <= want.clear and not trend.guard and not doubted:
            return replace(trend, outcome=Outcome.PASS, why=None)
        if trend.waived and sure <= want.free and not trend.guard:
            return replace(trend, outcome=Outcome.PASS, why=None)
        trend = replace(trend, waived="")
        if turning > max(want.clear, sure):
            return replace(trend, why=InconclusiveReason.CYCLE, hours_needed=self.span_s / 3600)
        return replace(trend, why=InconclusiveReason.NOISE, hours_needed=hours_more(fit, trend.allowed, self.span_s))

    def _resolved(self, trend: TrendAnswer, value: Floats) -> TrendAnswer:
        """Undecided if readings without noise hide growth, or its absence, within one quantum."""
        step = self._step
        if not step > 0 or self._spread() >= _DITHERED * step:
            return trend
        some = max(2, value.size // 16)
        grown = float(value[-some:].mean() - value[:some].mean())
        last = median(value[-some:])
        hidden = np.maximum(last - np.minimum.accumulate(value[::-1]), 0.0) + max(step - self.tolerance.floor, 0.0)
        lengths = np.arange(1, value.size + 1) * self.span_s / value.size
        unseen = float(np.min(hidden / lengths)) > trend.allowed * _ROUNDED
        if not (
            (trend.outcome is Outcome.FAIL and grown < _RISEN * step) or (trend.outcome is Outcome.PASS and unseen)
        ):
            return trend
        hours = None
        if trend.allowed > 0:
            hours = max(0.0, (max(0.0, last - float(value.min())) + step) / trend.allowed - self.span_s) / 3600
        return replace(trend, outcome=Outcome.INCONCLUSIVE, why=InconclusiveReason.RESOLUTION, hours_needed=hours)

    def _some(self) -> Floats:
        return self.value[:: max(1, self.value.size // _SOME)]

    @cached_property
    def _step(self) -> float:
        """The smallest step between different readings (of some thousand), at least the source's quantum."""
        steps = np.diff(np.sort(self._some()))
        steps = steps[steps > 1e-9]
        return max(float(steps.min()) if steps.size else 0.0, self.quantum)

    def _spread(self) -> float:
        """The standard deviation within a sixteenth of the run (median over the sixteenths)."""
        return math.sqrt(median(_variances(self._some(), _STRETCHES)))


def _span(time_s: Floats) -> tuple[float, float]:
    if time_s.size < 2:
        return 0.0, 0.0
    return float(time_s[0]), float(time_s[-1] + median(np.diff(time_s)))


def _variances(value: Floats, parts: int) -> Floats:
    """The variance of each of some parts that are as equal as possible, of at least one value each."""
    size, more = divmod(value.size, parts)
    longer, rest = value[: more * (size + 1)], value[more * (size + 1) :]
    return np.concatenate([longer.reshape(more, size + 1).var(axis=1), rest.reshape(parts - more, size).var(axis=1)])


def _line(fit: Slope, times: Floats, value: Floats) -> PivotLine:
    return PivotLine(float(times.mean()), float(value.mean()), fit.slope, fit.low(), fit.high())


def _with_parts(trend: TrendAnswer, parts: Mixture, span_s: float, risk: float) -> tuple[TrendAnswer, float, float]:
    """The answer with the shapes' results, P(growth) among shapes free to grow at the end, and their share of P."""
    shape, weight = next(iter(parts.families().items()))
    low, high = parts.quantiles(0.05, 0.95)
    sure, free, goes_on = parts.above(trend.allowed * span_s)
    rate, detectable = float(parts.weight @ parts.middle), trend.smallest_detectable
    if shape not in _STRAIGHT and detectable is not None:
        # the deviation of a step or a warm-up from a straight line is no noise
        detectable = power(risk) * parts.blur() / span_s
    answer = replace(
        trend,
        probability=sure,
        rate=rate / span_s,
        rate_low=min(low, rate) / span_s,
        rate_high=max(high, rate) / span_s,
        smallest_detectable=detectable,
        shape=shape,
        weight=weight,
        bend_s=None if shape in _BENDLESS else parts.bend(shape) * span_s,
    )
    return answer, free, goes_on
