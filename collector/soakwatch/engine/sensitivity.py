"""What a plan's poll interval and length can and cannot show, said before the run."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from soakwatch.core.registry import INSTALLED, Registry
from soakwatch.core.units import plan_seconds, show_seconds
from soakwatch.engine.plan_check import SourceCheck
from soakwatch.plan import Plan
from soakwatch.plan.rule_plan import planned_rules
from soakwatch_rules.traits import GrowthMethod, traits_of
from soakwatch_rules.wording.quantities import three_digits

if TYPE_CHECKING:
    from soakwatch_rules.rule import Rule

CPU_RULE = "cpu_spike"
SATURATION_RULE = "cpu_saturation"
_NONE = "cpu_spike, memory_growth and growth find no metrics here: they do not apply"
_UNKNOWN = "not known: nothing was read"
_POWER = 2.49  # one-sided 5 %, power 80 %: 1.645 + 0.842
_NOISE = 0.01  # of the level: the scatter that the sentence assumes and states
_SLOW_S = 600.0
PROCESS_MEMORY, DEVICE_MEMORY = "process.memory.usage", "system.memory.usage"


@runtime_checkable
class NeedsDuration(Protocol):
    """A rule that knows how long it needs at a poll interval."""

    def needed_s(self, apart_s: float) -> float:
        """Seconds needed with a reading every ``apart_s``."""
        ...


@dataclass(frozen=True, slots=True)
class Leak:
    """The slowest growth that ``memory_growth`` detects, in bytes per hour, and of what."""

    per_hour: float
    of: str


def sensitivity(
    plan: Plan, checks: tuple[SourceCheck, ...], registry: Registry = INSTALLED
) -> tuple[tuple[str, str], ...]:
    """Pairs of source and sentence: for each source, what cpu_spike, memory_growth and growth can show there, or that
    nothing was read; one sentence without source if none of them applies."""
    on = {rule.name: rule for rule in planned_rules(plan.rules, registry)}
    by_stages, by_shape = (_growth_rule(on.values(), method) for method in (GrowthMethod.STAGES, GrowthMethod.SHAPE))
    sentences: list[tuple[str, str]] = []
    unknown: list[tuple[str, str]] = []
    for check in checks:
        who = f"{check.target.name} {check.source.poller}"
        if not check.samples:
            unknown.append((who, _UNKNOWN))
            continue
        metrics = {sample.metric for sample in check.samples}
        # Each rule speaks for the fastest of its own metrics here.
        if CPU_RULE in on and metrics & set(on[CPU_RULE].metrics):
            rule = on[CPU_RULE]
            sentence = spike_sentence(
                renewed_s(check, metrics & set(rule.metrics)),
                plan.duration_s,
                _number(rule, "seconds", 10.0),
                _number(rule, "coarsest", math.inf),
            )
            sentences.append((who, sentence))
        if by_stages is not None and metrics & set(by_stages.metrics):
            sentence = growth_sentence(
                renewed_s(check, metrics & set(by_stages.metrics)),
                judged_s(plan, by_stages.phases),
                _number(by_stages, "needed", 8),
                _number(by_stages, "tolerance", 0.05),
            )
            sentences.append((who, sentence))
        if by_shape is not None and metrics & set(by_shape.metrics):
            sentence = trend_sentence(
                renewed_s(check, metrics & set(by_shape.metrics)),
                judged_s(plan, by_shape.phases),
                by_shape.spec.shortest_s,
                _number(by_shape, "tolerance", 0.05),
            )
            sentences.append((who, sentence))
        # All other rules share one sentence, on those that cannot decide at this interval.
        if sentence := unseen_sentence(check, plan.duration_s, [rule for name, rule in on.items() if name != CPU_RULE]):
            sentences.append((who, sentence))
    if not sentences and len(unknown) < len(checks):
        sentences.append(("", _NONE))
    return (*sentences, *unknown)


def smallest_leak(plan: Plan, checks: Iterable[SourceCheck], registry: Registry = INSTALLED) -> Leak | None:
    """The slowest growth of the watched processes' memory that is certainly detected, else of the devices' memory.

    It is the growth that takes the largest of them above the tolerance of ``memory_growth`` between the first and the
    last third, whose middles are 2/3 of the window apart. None if it is not judged or the run is too short. A series
    noisier than the tolerance needs a faster leak.
    """
    rule = _growth_rule(planned_rules(plan.rules, registry), GrowthMethod.STAGES)
    if rule is None:
        return None
    window_s = judged_s(plan, rule.phases)
    for metric, of in ((PROCESS_MEMORY, "watched processes"), (DEVICE_MEMORY, "a device's memory")):
        if metric not in rule.metrics:
            continue
        judged = [
            sample.value
            for check in checks
            if window_s / renewed_s(check, {metric}) >= 3 * _number(rule, "needed", 8)
            for sample in check.samples
            if sample.metric == metric
        ]
        if judged and max(judged) > 0:
            return Leak(_number(rule, "tolerance", 0.05) * max(judged) / (window_s * 2 / 3) * 3600, of)
    return None


def _growth_rule(rules: Iterable[Rule], method: GrowthMethod) -> Rule | None:
    return next((rule for rule in rules if traits_of(rule.name).growth is method), None)


def unseen_sentence(check: SourceCheck, duration_s: float, rules: Iterable[Rule]) -> str:
    """Which other rules cannot decide at this interval, and what each needs; "" if all can."""
    metrics = {sample.metric for sample in check.samples}
    needs = []
    for rule in rules:
        own = metrics & set(rule.metrics)
        every_s = renewed_s(check, own)
        coarsest_s = _number(rule, "seconds" if rule.name == SATURATION_RULE else "coarsest", math.inf)
        if own and every_s > coarsest_s:
            needs.append(f"{rule.name} (needs a poll every {show_seconds(coarsest_s)})")
        elif own and isinstance(rule, NeedsDuration) and rule.needed_s(every_s) > max(duration_s, rule.spec.shortest_s):
            needs.append(f"{rule.name} (needs {show_seconds(rule.needed_s(every_s))})")
    if not needs:
        return ""
    every = show_seconds(check.interval_s)
    return f"not observable with polls every {every}, not required for a pass: {', '.join(needs)}"


def renewed_s(check: SourceCheck, metrics: Collection[str]) -> float:
    """Seconds between values of the fastest of the metrics: the interval, or longer if the device renews them
    slower."""
    slow = (check.facts.cadences, check.facts.renewals) if check.facts is not None else ()
    each = (max([check.interval_s, *(seconds.get(metric, 0.0) for seconds in slow)]) for metric in metrics)
    return min(each, default=check.interval_s)


def _number(rule: Rule, name: str, otherwise: float) -> float:
    value: object = getattr(rule, name, otherwise)
    return float(value) if isinstance(value, int | float) else otherwise


def sure_spike_s(interval_s: float, held_s: float) -> float:
    """The shortest spike, in seconds, that is certainly seen: its time above the limit in whole intervals plus one,
    because the reading across its begin averages only a part of it.

    >>> sure_spike_s(1, 10), sure_spike_s(5, 10), sure_spike_s(60, 10)
    (11, 15, 120)
    """
    return interval_s * (math.ceil(held_s / interval_s) + 1)


def spike_sentence(interval_s: float, duration_s: float, held_s: float, coarsest_s: float) -> str:
    """The sentence on what cpu_spike can see at this interval."""
    every = f"polls every {show_seconds(interval_s)}"
    sure = sure_spike_s(interval_s, held_s)
    if interval_s > coarsest_s:
        return (
            f"cpu_spike is undecided: {every} are further apart than {show_seconds(coarsest_s)}, so that a spike of a "
            f"minute between two of them is not seen, only what lasts {show_seconds(2 * interval_s)}; poll more often"
        )
    if sure > duration_s:
        return f"cpu_spike is undecided: with {every} a spike must last {show_seconds(sure)}, longer than the run"
    return f"cpu_spike, {every}: spikes of {show_seconds(sure)} and longer are always seen, shorter ones perhaps not"


def judged_s(plan: Plan, phases: tuple[str, ...]) -> float:
    """Seconds from the begin of the first to the end of the last of ``phases``; without any, of the whole run."""
    chosen = [index for index, phase in enumerate(plan.phases) if phase.name in phases]
    if not chosen:
        return plan.duration_s
    return sum(phase.seconds for phase in plan.phases[chosen[0] : chosen[-1] + 1])


def growth_sentence(interval_s: float, window_s: float, least: float, tolerance: float) -> str:
    """The sentence on what memory_growth can see in this window."""
    readings, needed = int(window_s / interval_s), math.ceil(3 * least)
    head = f"memory_growth, {readings:,} samples in {show_seconds(window_s)}"
    if readings < needed:
        return f"{head}: undecided, {needed} needed; run {plan_seconds(needed * interval_s)}, or poll more often"
    return (
        f"{head}: growth of more than {tolerance * 100:g} % from the first to the last third shows, if it exceeds the"
        " spread; a slower leak passes"
    )


def smallest_slope(noise: float, correlation_s: float, window_s: float) -> float:
    """The smallest slope per second that a window shows with 80 % power: 2.49·sqrt(12·LRV/T³), LRV = 2·sd²·tau.

    ``noise`` is the sd in the readings' unit, ``correlation_s`` (tau) the correlation time: half the interval for
    independent readings. Ordinary least squares over the whole window; a leak that begins late must be steeper.

    >>> round(100 * 86400 * smallest_slope(0.01, 600, 86400), 2)
    1.02
    """
    return _POWER * math.sqrt(12 * 2 * noise**2 * correlation_s / window_s**3)


def trend_sentence(interval_s: float, window_s: float, shortest_s: float, tolerance: float) -> str:
    """The sentence on what growth can see in this window."""
    if window_s < shortest_s:
        return f"growth needs a soak of {show_seconds(shortest_s)} or more; this one lasts {show_seconds(window_s)}"
    fast, slow = (
        100 * 86400 * smallest_slope(_NOISE, tau_s, window_s) for tau_s in (interval_s / 2, max(_SLOW_S, interval_s))
    )
    return (
        f"growth, {show_seconds(window_s)}: with samples that scatter by 1 % of the level, leaks of "
        f"{three_digits(fast)} % to {three_digits(slow)} % of the level a day show above the tolerance of "
        f"{tolerance * 100:g} % a day (the more, the longer "
        "the scatter lasts)"
    )
