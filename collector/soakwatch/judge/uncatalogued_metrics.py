"""Rules on series outside of the catalogue: the same rule also judges metrics that only this record has."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Protocol, cast

from soakwatch.judge.verdict import Verdict
from soakwatch.record import SeriesKey
from soakwatch.record.meta import IMPORTED_KEY, RULES_KEY
from soakwatch_model.finding import Outcome
from soakwatch_model.metric import BY_NAME, GAUGE
from soakwatch_model.roles import DUT
from soakwatch_model.series import Series, Trait
from soakwatch_rules.rule import Rule

SHARE, COUNTED = "1", "{"
_SHOWN = 6


class Traited(Protocol):
    """What this module reads of a record."""

    def meta(self, key: str) -> str | None:
        """A text that the run left."""
        ...

    def keys(self, metrics: Sequence[str] | None = None) -> tuple[SeriesKey, ...]:
        """The keys of its series."""
        ...

    def series(self, key: SeriesKey, begin_ns: int | None = None, end_ns: int | None = None) -> Series:
        """One series."""
        ...


def traits(record: Traited) -> dict[str, Trait]:
    """The kind and unit of each metric in a record."""
    return {key.metric: record.series(key, 0, 0).trait for key in record.keys(None)}


def additional_metrics(rule: type[Rule] | Rule, held: Mapping[str, Trait]) -> tuple[str, ...]:
    """The metrics of an imported table that a named rule judges besides its own: gauges that the catalogue does not
    have; all gauges if there are none of these and none of its own."""
    fitting = [metric for metric, trait in held.items() if trait.kind == GAUGE and readable(rule, trait.unit)]
    outside = tuple(metric for metric in fitting if metric not in BY_NAME)
    return outside if outside or held.keys() & set(rule.metrics) else tuple(fitting)


def readable(rule: type[Rule] | Rule, unit: str) -> bool:
    """Whether a named rule can judge a gauge of this unit besides its own metrics.

    It must judge each series by itself and have a gauge among its own metrics. A rule about shares (of the CPU) cannot
    judge what is not known to be one, nor one about counted objects (in a queue) bytes or seconds.

    >>> from soakwatch_rules.detectors.cpu_spike import CpuSpike
    >>> from soakwatch_rules.detectors.growth import Growth
    >>> [readable(rule, unit) for rule in (CpuSpike, Growth) for unit in ("1", "{unit}")]
    [True, False, True, True]
    """
    own = {entry.unit for metric in rule.metrics if (entry := BY_NAME.get(metric)) and entry.kind == GAUGE}
    if rule.scope != "metric" or not own:
        return False
    if own == {SHARE}:
        return unit == SHARE
    return unit.startswith(COUNTED) or not all(name.startswith(COUNTED) for name in own)


def named_rules(record: Traited) -> tuple[str, ...]:
    """The rules named at the import of a table."""
    return tuple(json.loads(record.meta(RULES_KEY) or "[]"))


def inconclusive_if_unjudged(record: Traited, verdict: Verdict) -> Verdict:
    """A table of which no column was judged is inconclusive, with a reason that says so, rather than a pass."""
    if verdict.outcome is Outcome.FAIL or record.meta(IMPORTED_KEY) is None:
        return verdict
    metrics = {key.metric for key in record.keys(None)}
    seen = [f for f in verdict.findings if f.metric in metrics]
    if any(f.outcome is not Outcome.NOT_APPLICABLE for f in seen):
        return verdict
    reason = f"nothing was judged: no rule knows {', '.join(sorted(metrics)[:_SHOWN])}; name one with --rule"
    if seen:
        reason = f"nothing was judged: {seen[0].rule} does not apply to {seen[0].metric}: {seen[0].sentence}"
    targets = tuple(
        replace(target, outcome=Outcome.INCONCLUSIVE, reason=reason) if target.role == DUT else target
        for target in verdict.targets
    )
    return replace(verdict, outcome=Outcome.INCONCLUSIVE, reason=reason, targets=targets)


def widened(rule: Rule, metrics: Sequence[str]) -> Rule:
    """The rule with more metrics, where it judges each series by itself; any other rule as it is.

    >>> from soakwatch_rules.detectors.memory_growth import MemoryGrowth
    >>> wide = widened(MemoryGrowth(tolerance=0.1), ["imported.heap"])
    >>> wide.metrics[-1], wide.name, wide.definition() == MemoryGrowth(tolerance=0.1).definition()
    ('imported.heap', 'memory_growth', True)
    """
    more = tuple(metric for metric in metrics if metric not in rule.metrics)
    if rule.scope != "metric" or not more:
        return rule
    rule_type = type(rule)
    # metrics belong to the class of a rule, so more metrics need another class
    wide = type(
        rule_type.__name__,
        (rule_type,),
        {"metrics": (*rule.metrics, *more), "__slots__": (), "__doc__": rule_type.__doc__},
    )
    given = {parameter.name: getattr(rule, parameter.name) for parameter in fields(cast("Any", rule)) if parameter.init}
    return cast("Callable[..., Rule]", wide)(**given)
