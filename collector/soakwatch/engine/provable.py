"""What a run of its length can prove, in one sentence, computed from what each rule says it needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from soakwatch.core.formatting import quantity
from soakwatch.core.registry import INSTALLED, Registry
from soakwatch.core.units import show_seconds
from soakwatch.engine.plan_check import SourceCheck
from soakwatch.engine.sensitivity import NeedsDuration, judged_s, renewed_s, smallest_leak
from soakwatch.plan import Plan
from soakwatch.plan.rule_plan import planned_rules
from soakwatch.record import RecordView
from soakwatch_model.roles import GENERATOR
from soakwatch_model.sample import Sample
from soakwatch_rules.rule import Input, Rule
from soakwatch_rules.traits import GrowthMethod, Judges, Limit, traits_of
from soakwatch_rules.wording.quantities import first_few

_MAX_NAMED = 10
_BATCHES = 20


def provable(plan: Plan, checks: Sequence[SourceCheck], registry: Registry = INSTALLED) -> str:
    """Which rules can decide within the plan's length, the slowest leak that is seen, and how long the other rules
    need; "" if nothing was read. Rules come in order of rank; those that judge the measurement are left out.

    A rule counts as decided if it needs no longer than its phases last; what else it may lack (a cadence, a baseline, a
    limit) is said by ``sensitivity`` and its finding. A noisy series needs a faster leak.
    """
    decided: list[str] = []
    longer: dict[float, list[str]] = {}
    for rule in sorted(
        (r for r in planned_rules(plan.rules, registry) if _at_work(r, plan)),
        key=lambda rule: traits_of(rule.name).rank,
    ):
        needed = _needed_s(rule, checks)
        if needed is None or traits_of(rule.name).growth is GrowthMethod.STAGES:  # the slowest leak speaks for it
            continue
        name = _title(rule.name, registry)
        if needed <= judged_s(plan, rule.phases):
            decided.append(name)
        else:
            longer.setdefault(needed, []).append(name)
    if not decided and not longer:
        return ""
    parts = [first_few(decided, _MAX_NAMED) if decided else "nothing"]
    if (leak := smallest_leak(plan, checks, registry)) is not None:
        parts.append(f"leaks from {quantity(leak.per_hour, 'By/h')} of {leak.of}")
    parts += [f"{show_seconds(needed)} for {first_few(names, _MAX_NAMED)}" for needed, names in sorted(longer.items())]
    return f"{show_seconds(plan.duration_s)} can show: {'; '.join(parts)}"


def provable_so_far(plan: Plan, folder: Path) -> str:
    """The same from the first polls of a run. Raises RecordError."""
    read: dict[tuple[str, str], list[Sample]] = {}
    with RecordView.open(folder) as view:
        sources = {source.id: source for source in view.sources()}
        cursor = ""
        for _ in range(_BATCHES):
            polls, cursor = view.polls_after(cursor, 1000)
            for poll in polls:
                source = sources[poll.source]
                read.setdefault((source.target, source.name), []).extend(poll.answer.samples)
            if not polls:
                break
    checks = [
        SourceCheck(target, source, None, samples=_newest(read.get((target.name, source.poller), ())))
        for target in plan.targets
        for source in target.sources
    ]
    return provable(plan, checks)


def _at_work(rule: Rule, plan: Plan) -> bool:
    """True if a rule judges the device, and the plan has its inputs: load, events, tenants, a limit."""
    traits, inputs = traits_of(rule.name), rule.spec.inputs
    has = {
        Input.EVENTS: bool(plan.events),
        Input.TENANTS: bool(plan.tenants),
        Input.GENERATOR_PORTS: any(target.role == GENERATOR for target in plan.targets),
        Input.EARLIER: False,  # earlier runs are named to judge, not to run
    }
    limited = traits.limit is not Limit.PLAN or any(own.name == rule.name for own in plan.rules)
    return traits.judges is Judges.DEVICE and limited and all(has.get(given, True) for given in inputs)


def _needed_s(rule: Rule, checks: Iterable[SourceCheck]) -> float | None:
    """Seconds that a rule needs for the metrics read; None if it judges none of them."""
    needed: float | None = None
    for check in checks:
        own = {sample.metric for sample in check.samples} & set(rule.metrics)
        if own:
            asked = rule.needed_s(renewed_s(check, own)) if isinstance(rule, NeedsDuration) else 0.0
            least = max(rule.spec.shortest_s, asked)
            needed = least if needed is None else min(needed, least)
    return needed


def _title(name: str, registry: Registry) -> str:
    """A rule's short name: its summary up to the colon."""
    words = registry.rules.summary(name).partition(":")[0]
    return words if words[1:2].isupper() else f"{words[:1].lower()}{words[1:]}"


def _newest(samples: Iterable[Sample]) -> tuple[Sample, ...]:
    return tuple({(sample.metric, sample.object): sample for sample in samples}.values())
