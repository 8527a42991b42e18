"""What the growth rule says of a life, in sentences."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from soakwatch_rules.rule import InconclusiveReason, Outcome
from soakwatch_rules.series import Series, Trait
from soakwatch_rules.stats.floors import FEW
from soakwatch_rules.stats.following import Following
from soakwatch_rules.stats.trend_answer import Trend
from soakwatch_rules.wording.words import counted, lasting, moment, quantity

_HOUR = 3600.0
_LARGEST = 1.7e308
_DAY = 86400.0
_NOTHING = 1e-4  # of what is allowed: told as 0
_SHAPES = {
    "constant": "no change",
    "leak": "a leak: steady growth",
    "late leak": "a leak that begins late",
    "two slopes": "two slopes, one after the other",
    "step": "a step that lasts",
    "stairs": "a few steps that last",
    "leak in steps": "a leak in steps",
    "half wave": "half of a wave",
    "step and leak": "a step and a leak",
    "warm-up": "a warm-up that saturates",
    "two warm-ups": "a warm-up in two stages",
    "warm-up and leak": "a warm-up and a leak",
    "two warm-ups and leak": "a warm-up in two stages and a leak",
    "plateau": "growth that has come to a plateau",
    "ramp between plateaus": "a ramp between two plateaus",
    "bump": "a bump that is over",
    "bump and leak": "a bump and a leak",
    "cycle": "a cycle",
    "cycle and leak": "a cycle and a leak",
    "accelerating leak": "a leak that speeds up",
    "sawtooth": "a sawtooth, judged by its floors",
}


def per_hour(per_second: float) -> float:
    """Per hour; what does not fit into a float is told as the largest one."""
    return max(-_LARGEST, min(_LARGEST, per_second * _HOUR))


def hourly(per_second: float, trait: Trait) -> str:
    """A rate for people, per hour, in the direction of the metric."""
    sign = -1 if trait.growth == "down" else 1
    return quantity(sign * per_second * _HOUR, f"{trait.unit}/h")


def shape_of(trend: Trend) -> str:
    """The shape with its weight and, where it bends, when."""
    text = _SHAPES.get(trend.shape, trend.shape)
    if not trend.rate_low > trend.allowed:  # a slope that may be nothing is no leak
        text = text.replace("a leak: steady growth", "a straight line").replace("a leak", "a straight line")
    return f"{text} ({100 * trend.weight:.0f} % likely)" if trend.shape != "sawtooth" else text


def rate_of(trend: Trend, trait: Trait) -> str:
    """The rate at the end with its interval."""
    ends = sorted((trend.rate_low, trend.rate_high), reverse=trait.growth == "down")
    rate, low, high = (x if abs(x) > _NOTHING * trend.allowed else 0.0 for x in (trend.rate, *ends))
    return f"{hourly(rate, trait)} ({hourly(low, trait)} to {hourly(high, trait)})"


def sentence(metric: str, trend: Trend, trait: Trait, span_s: float, follows: Following | None) -> str:
    """The reason of a finding."""
    allowed = hourly(trend.allowed, trait)
    what = f"{metric}{' beside its load' if follows is not None else ''}"
    change = "falls" if trait.growth == "down" else "grows"
    if trend.mode == "constant":
        return f"{what} stays at {quantity(abs(trend.level), trait.unit)} for {lasting(span_s)}"
    if trend.mode == "none" or trend.why in {InconclusiveReason.TOO_FEW, InconclusiveReason.GAP}:
        if trend.why is InconclusiveReason.GAP:
            return f"{what}: {100 * trend.missing:.0f} % of {trend.blocks} blocks of time hold no reading"
        return f"{what}: {trend.blocks} readings are too few to tell a leak from a step"
    odds = f"{100 * min(trend.probability, 0.999):.1f} %"
    rate, shape = rate_of(trend, trait), shape_of(trend)
    if trend.outcome is Outcome.FAIL:
        sure = f"with {odds} probability{', and by the straight line' if trend.guard else ''}"
        return f"{what} {change} at the end by {rate}, more than the {allowed} allowed, {sure}; shape: {shape}"
    if trend.outcome is Outcome.PASS:
        return f"{what} moves at the end by {rate}, {allowed} are allowed; {odds} probability of more; shape: {shape}"
    if trend.why is InconclusiveReason.NO_REFERENCE:
        return f"{what} {change} at the end by {rate}, more than the {allowed} allowed; shape: {shape}"
    if trend.why is InconclusiveReason.CYCLE and _few_cycles(trend):
        return (
            f"{what} is a sawtooth of {counted(trend.blocks, 'whole cycle')} in {lasting(span_s)}, too few to see its "
            "floor move"
        )
    if trend.why is InconclusiveReason.CYCLE:
        moves = ", a sawtooth, has floors that move" if trend.mode == "floor" else " moves"
        return (
            f"{what}{moves} as a cycle about as long as the run would, which cannot be told from growth; shape: {shape}"
        )
    if trend.why is InconclusiveReason.RELEASE:
        return (
            f"{what} {change} by {rate} since an abrupt release whose peak it has not regained: maybe a long sawtooth"
        )
    if trend.why is InconclusiveReason.RESOLUTION:
        return f"{what} is read in steps too coarse to tell whether it {change} by the {allowed} allowed"
    return f"{what} moves at the end by {rate}, {allowed} are allowed: {odds} probability of more; shape: {shape}"


def _few_cycles(trend: Trend) -> bool:
    return trend.mode == "floor" and trend.blocks < FEW


def released_words(series: Series, height: float, at_ns: int) -> str:
    """That much had grown and was freed inside the run."""
    verb = "had fallen" if series.trait.growth == "down" else "had grown"
    return f"{series.metric} {verb} by {quantity(height, series.trait.unit)}, which was released at {moment(at_ns)}"


def near_limit(series: Series, facts: Mapping[str, float], share: float = 0.95) -> list[str]:
    """That memory at its highest (available memory at its lowest) came near its limit; nothing where it did not."""
    limit = series.trait.high if series.trait.unit == "1" else series.trait.ceiling
    if series.metric == "system.memory.available":
        limit = facts.get("system.memory.limit")
    if limit is None or not limit > 0 or not len(series):
        return []
    down = series.trait.growth == "down"
    used = limit - series.values if down else series.values
    place = int(np.argmax(used))
    if not share * limit <= float(used[place]):
        return []
    unit, when = series.trait.unit, moment(int(series.time_ns[place]))
    value, of = quantity(float(series.values[place]), unit), quantity(limit, unit)
    return [f"{series.metric} {'fell to' if down else 'reached'} {value} of {of} at {when}"]


_WAIVED = {
    "small": "the shape is not certain, but all of its movement in the run is smaller than what is worth a verdict",
    "wave": "a wave about as long as the run was seen once only: it ended where it had been one period before, but "
    "growth that began within the last period cannot be told from it",
    "cycles": "judged by two or three floors of a long sawtooth: growth below a tenth of its height cannot be seen",
    "freed": "judged from the release on: what had grown before was freed",
    "released": "grows since a release that took back all that had come before at the same pace: a sawtooth seen once",
}


def settle_of(trend: Trend) -> str:
    """What would settle an inconclusive answer."""
    hours = trend.hours_needed
    more = lasting(max(60.0, round(hours * 60) * 60.0)) if hours is not None and 0 < hours < 24 * 3650 else None
    if trend.why is InconclusiveReason.TOO_FEW:
        return f"needs at least {max(1, 16 - trend.blocks)} more readings in one life"
    if trend.why is InconclusiveReason.GAP:
        return "needs readings in at least half of the window's blocks"
    if trend.why is InconclusiveReason.CYCLE:
        if _few_cycles(trend):
            return f"needs 4 whole cycles, about {more or 'four times the run'} more"
        return f"needs a run over more than two of its cycles, at least {more or 'twice as long'} more"
    if trend.why is InconclusiveReason.NO_REFERENCE:
        return "needs a load that is steady, or that goes up and down"
    if trend.why is InconclusiveReason.RELEASE:
        return "needs a run that goes on until the old peak is exceeded or another release is seen"
    if trend.why is InconclusiveReason.RESOLUTION:
        return f"needs {more} more, or finer readings" if more else "needs finer readings"
    if more is not None:
        return f"needs {more} more at this noise"
    if hours is not None:
        return "needs a longer run or steadier readings: the straight line is clear, the shapes are not"
    return "no length of run would tell a rate so near to what is allowed: set another tolerance"


def doubts_of(trend: Trend, span_s: float) -> tuple[str, ...]:
    """Known weaknesses that matter for this life."""
    doubts = []
    if trend.outcome is Outcome.FAIL and span_s < _DAY / 2:
        doubts.append("it may be a warm-up: one that takes longer than a third of the run looks like a leak")
    if trend.outcome is Outcome.FAIL and span_s < 2 * _DAY:
        doubts.append("a cycle of a day or longer was not seen twice, and may look like growth")
    if trend.mode == "floor":
        doubts.append("judged by the lowest readings of each cycle of a sawtooth, not by its peaks")
    if trend.outcome is Outcome.PASS and trend.waived:
        doubts.append(_WAIVED[trend.waived])
    if trend.missing > 0.1:
        doubts.append(f"{100 * trend.missing:.0f} % of the blocks of time hold no reading and were bridged")
    return tuple(doubts)
