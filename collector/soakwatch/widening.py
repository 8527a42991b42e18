"""Rules for series outside of the catalogue: the same rule, judging metrics that only a record knows."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any, Protocol, cast

from soakwatch.record import SeriesKey
from soakwatch.record.reader import IMPORTED_KEY
from soakwatch.verdict import DUT, Verdict
from soakwatch_agent.metric import BY_NAME, GAUGE
from soakwatch_rules.rule import Outcome, Rule
from soakwatch_rules.series import Series

RULES_KEY = "rules"
"""The meta that holds, as JSON, the rules that were named when a table was imported."""
_SHOWN = 6


class Traited(Protocol):
    """The parts of a record that are read here."""

    def meta(self, key: str) -> str | None:
        """A text that the run left."""
        ...

    def keys(self, metrics: Sequence[str] | None = None) -> tuple[SeriesKey, ...]:
        """The series."""
        ...

    def series(self, key: SeriesKey, begin_ns: int | None = None, end_ns: int | None = None) -> Series:
        """One of them."""
        ...


def outside_gauges(record: Traited) -> tuple[str, ...]:
    """The gauges of a record that the catalogue does not know, by metric."""
    return tuple(
        dict.fromkeys(
            key.metric
            for key in record.keys(None)
            if key.metric not in BY_NAME and record.series(key, 0, 0).trait.kind == GAUGE
        )
    )


def named_rules(record: Traited) -> tuple[str, ...]:
    """The rules that were named when a table was imported."""
    return tuple(json.loads(record.meta(RULES_KEY) or "[]"))


def nothing_passes_unseen(record: Traited, verdict: Verdict) -> Verdict:
    """A table of whose columns no rule judged any cannot pass for having had all of its lines, and is told so."""
    if verdict.outcome is Outcome.FAIL or record.meta(IMPORTED_KEY) is None:
        return verdict
    metrics = {key.metric for key in record.keys(None)}
    if any(f.metric in metrics and f.outcome is not Outcome.NOT_APPLICABLE for f in verdict.findings):
        return verdict
    reason = f"nothing was judged: no rule knows {', '.join(sorted(metrics)[:_SHOWN])}; name one with --rule"
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
    made = type(rule)
    # A rule's metrics belong to its class, so what judges more of them is a class of its own.
    wide = type(made.__name__, (made,), {"metrics": (*rule.metrics, *more), "__slots__": (), "__doc__": made.__doc__})
    given = {one.name: getattr(rule, one.name) for one in fields(cast("Any", rule)) if one.init}
    return cast("Callable[..., Rule]", wide)(**given)
