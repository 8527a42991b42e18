"""Which rules can judge what was imported."""

from __future__ import annotations

from collections.abc import Sequence

from soakwatch.core.registry import rule_class, rules
from soakwatch.importing.settle import ImportedSeries
from soakwatch.judge.uncatalogued_metrics import beside
from soakwatch.record.reader import trait_of
from soakwatch.sources.tables.columns import IMPORTED
from soakwatch.sources.tables.errors import DataError
from soakwatch_rules.traits import traits_of

_SHOWN = 6


def growth_of(names: Sequence[str]) -> str | None:
    """The bad direction of columns outside of the catalogue: up, where a rule about growth is named.

    >>> growth_of(["memory_growth"]), growth_of(["step_change"])
    ('up', None)
    """
    return "up" if any(traits_of(name).growth is not None for name in names) else None


def told_of_rules(file: str, series: Sequence[ImportedSeries], names: Sequence[str]) -> tuple[str, ...]:
    """What is to be told where columns, or rules that were named, stay out of it. Raises DataError where nothing at all
    would be judged."""
    metrics = {one.metric for one in series}
    outside = [one for one in series if one.metric.startswith(IMPORTED)]
    held = {one.metric: trait_of(one.metric, one.unit, one.kind) for one in series}
    columns = ", ".join(dict.fromkeys(one.column for one in series))
    idle = []
    for name in names:
        rule = rule_class(name)
        if not rule.metrics or metrics & set(rule.metrics) or beside(rule, held):
            continue
        more = " …" if len(rule.metrics) > _SHOWN else ""
        wanted = ", ".join(rule.metrics[:_SHOWN]) + more
        idle.append(
            f"{file}: {name} judges {wanted}, and nothing of it is here: say which column is one of them "
            f"with --map 'COLUMN=METRIC' (columns: {columns})"
        )
    if names and len(idle) == len(set(names)):
        raise DataError(idle[0])
    if names or not outside:
        return tuple(idle)
    unknown = list(dict.fromkeys(one.column for one in outside))
    columns = ", ".join(unknown[:_SHOWN]) + (" …" if len(unknown) > _SHOWN else "")
    example = min(rules(), key=lambda name: (traits_of(name).growth is None, traits_of(name).rank))
    sentence = f"{file}: no rule knows {columns}: name one, such as --rule {example}, or map them with --map"
    known = {metric for name in rules() for metric in rule_class(name).metrics}
    if not metrics & known:
        raise DataError(sentence)  # nothing but the account of the lines would be judged, and that must not pass
    return (sentence,)
