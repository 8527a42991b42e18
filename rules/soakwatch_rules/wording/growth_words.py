"""Sentences of the rule ``growth`` about one lifetime."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from soakwatch_model.finding import InconclusiveReason, Outcome
from soakwatch_model.series import Series, Trait
from soakwatch_rules.stats.following import LoadDependence
from soakwatch_rules.stats.trend_answer import TrendAnswer
from soakwatch_rules.wording.quantities import counted, duration, moment, quantity
from soakwatch_rules.wording.series_names import name_of

_HOUR = 3600.0
_MAX_FLOAT = 1.7e308
_DAY = 86400.0
_NOTHING = 1e-4  # share of what is allowed that is shown as 0
_SHAPES = {
    "constant": "no change",
    "leak": "steady growth",
    "late leak": "flat at first, then growing",
    "two slopes": "two slopes, one after the other",
    "step": "a lasting step",
    "stairs": "a few lasting steps",
    "leak in steps": "growth in steps",
    "half wave": "half of a wave",
    "step and leak": "a step and steady growth",
    "warm-up": "a warm-up that levels off",
    "two warm-ups": "a two-stage warm-up",
    "warm-up and leak": "a warm-up and steady growth",
    "two warm-ups and leak": "a two-stage warm-up and steady growth",
    "plateau": "growth that reached a plateau",
    "ramp between plateaus": "a ramp between two plateaus",
    "bump": "a bump that is over",
    "bump and leak": "a bump and steady growth",
    "cycle": "a cycle",
    "cycle and leak": "a cycle and steady growth",
    "accelerating leak": "accelerating growth",
}


def per_hour(per_second: float) -> float:
    """A rate per hour, limited to the largest float."""
    return max(-_MAX_FLOAT, min(_MAX_FLOAT, per_second * _HOUR))


def hourly(per_second: float, trait: Trait) -> str:
    """A rate per hour in words, in the direction of the metric."""
    sign = -1 if trait.growth == "down" else 1
    return quantity(sign * per_second * _HOUR, f"{trait.unit}/h")


def shape_of(trend: TrendAnswer) -> str:
    """The shape and its weight, and the sawtooth that was removed before."""
    text = _SHAPES.get(trend.shape, trend.shape)
    if not trend.rate_low > trend.allowed:  # a slope that may be zero is no growth
        text = text.replace("steady growth", "a straight line")
    under = f" under a sawtooth of {counted(trend.cycles, 'fall')}" if trend.mode == "sawtooth" else ""
    return f"{text} ({100 * trend.weight:.0f} % likely){under}"


def rate_of(trend: TrendAnswer, trait: Trait) -> str:
    """The rate at the end with its interval, in words."""
    ends = sorted((trend.rate_low, trend.rate_high), reverse=trait.growth == "down")
    rate, low, high = (x if abs(x) > _NOTHING * trend.allowed else 0.0 for x in (trend.rate, *ends))
    return f"{hourly(rate, trait)} ({hourly(low, trait)} to {hourly(high, trait)})"


def sentence(name: str, trend: TrendAnswer, trait: Trait, span_s: float, follows: LoadDependence | None) -> str:
    """The reason of a finding on the series called ``name``."""
    allowed = hourly(trend.allowed, trait)
    what = f"{name}{' corrected for load' if follows is not None else ''}"
    change = "falls" if trait.growth == "down" else "grows"
    if trend.mode == "constant":
        return f"{what} stayed at {quantity(abs(trend.level), trait.unit)} for {duration(span_s)}"
    if trend.mode == "none" or trend.why in {InconclusiveReason.TOO_FEW, InconclusiveReason.GAP}:
        if trend.why is InconclusiveReason.GAP:
            return f"{what}: no samples in {100 * trend.missing:.0f} % of {trend.blocks} time blocks"
        return f"{what}: only {counted(trend.blocks, 'sample')}; too few to tell steady growth from a step"
    odds = f"{100 * min(trend.probability, 0.999):.1f} %"
    rate, shape = rate_of(trend, trait), shape_of(trend)
    if trend.outcome is Outcome.FAIL:
        sure = f"probability {odds}{', confirmed by a straight-line fit' if trend.guard else ''}"
        return f"{what} {change} by {rate} at the end; allowed {allowed} ({sure}); shape: {shape}"
    if trend.outcome is Outcome.PASS:
        return f"{what} changes by {rate} at the end; allowed {allowed} (probability of more: {odds}); shape: {shape}"
    if trend.why is InconclusiveReason.NO_REFERENCE:
        return f"{what} {change} by {rate} at the end; allowed {allowed}; shape: {shape}"
    if trend.why is InconclusiveReason.CYCLE and trend.climbing:
        return (
            f"{what} is a sawtooth of {counted(trend.cycles, 'fall')}, and has climbed to a new peak since the last: a "
            "late fall cannot be distinguished from growth"
        )
    if trend.why is InconclusiveReason.CYCLE:
        moves = " is a sawtooth whose minima move" if trend.mode == "sawtooth" else " moves"
        return (
            f"{what}{moves} like a cycle as long as the run, which cannot be distinguished from growth; shape: {shape}"
        )
    if trend.why is InconclusiveReason.RELEASE:
        return f"{what} {change} by {rate} since an abrupt release and has not regained its peak: maybe a long sawtooth"
    if trend.why is InconclusiveReason.RESOLUTION:
        return f"{what} has a resolution too coarse to show a change of {allowed} (the limit)"
    return f"{what} changes by {rate} at the end; allowed {allowed} (probability of more: {odds}); shape: {shape}"


def released_words(series: Series, height: float, at_ns: int) -> str:
    """How much had grown and was released during the run, and when."""
    verb = "had fallen" if series.trait.growth == "down" else "had grown"
    return f"{name_of(series)} {verb} by {quantity(height, series.trait.unit)}, released at {moment(at_ns)}"


def near_limit(series: Series, facts: Mapping[str, float], share: float = 0.95) -> list[str]:
    """The time at which memory came within 5 % of its limit, in words; empty if it did not."""
    limit = series.trait.high if series.trait.unit == "1" else series.trait.ceiling
    if series.metric == "system.memory.available":
        limit = facts.get("system.memory.limit")
    if limit is None or not limit > 0 or not len(series):
        return []
    down = series.trait.growth == "down"
    used = limit - series.values if down else series.values
    index = int(np.argmax(used))
    if not share * limit <= float(used[index]):
        return []
    unit, when = series.trait.unit, moment(int(series.time_ns[index]))
    value, of = quantity(float(series.values[index]), unit), quantity(limit, unit)
    return [f"{name_of(series)} {'fell to' if down else 'reached'} {value} of {of} at {when}"]


_WAIVED = {
    "small": "the shape is uncertain, but the total change in the run is below the limit",
    "wave": "a wave about as long as the run was seen only once: it ended where it had been one period before, but "
    "growth that started within the last period cannot be distinguished from it",
    "freed": "judged from the release on: earlier growth was freed",
    "released": "grows since a release that took back all earlier growth, at the same rate: a sawtooth seen once",
}


def settle_of(trend: TrendAnswer) -> str:
    """What would settle an undecided trend."""
    hours = trend.hours_needed
    more = duration(max(60.0, round(hours * 60) * 60.0)) if hours is not None and 0 < hours < 24 * 3650 else None
    if trend.why is InconclusiveReason.TOO_FEW:
        return f"needs at least {max(1, 16 - trend.blocks)} more samples without a restart"
    if trend.why is InconclusiveReason.GAP:
        return "needs samples in at least half of the window"
    if trend.why is InconclusiveReason.CYCLE:
        if trend.climbing:
            return f"needs the next fall of the sawtooth, about {more or 'a cycle'} more"
        return f"needs a run of more than two cycles, at least {more or 'twice as long'} more"
    if trend.why is InconclusiveReason.NO_REFERENCE:
        return "needs a steady load, or one that goes up and down"
    if trend.why is InconclusiveReason.RELEASE:
        return "needs a run until the old peak is exceeded or another release occurs"
    if trend.why is InconclusiveReason.RESOLUTION:
        return f"needs {more} more, or a finer resolution" if more else "needs a finer resolution"
    if more is not None:
        return f"needs {more} more at this noise level"
    if hours is not None:
        return "needs a longer run or less noise: the straight-line fit is clear, the shape is not"
    return "the rate is too close to the limit for any run length: set another tolerance"


def doubts_of(trend: TrendAnswer, span_s: float) -> tuple[str, ...]:
    """Known weaknesses that apply to this life."""
    doubts = []
    if trend.outcome is Outcome.FAIL and span_s < _DAY / 2:
        doubts.append("it may be a warm-up: one that takes longer than a third of the run looks like growth")
    if trend.outcome is Outcome.FAIL and span_s < 2 * _DAY:
        doubts.append("a cycle of a day or longer was not seen twice and may look like growth")
    if trend.mode == "sawtooth":
        doubts.append("judged without the sawtooth: what each of its falls took back was taken out of the climb before")
    if trend.outcome is Outcome.PASS and trend.waived:
        doubts.append(_WAIVED[trend.waived])
    if trend.missing > 0.1:
        doubts.append(f"{100 * trend.missing:.0f} % of the time blocks have no samples and were interpolated")
    return tuple(doubts)
