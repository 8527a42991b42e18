"""Which rules can judge imported series."""

from __future__ import annotations

from collections.abc import Sequence

from soakwatch.core.registry import rule_class, rules
from soakwatch.judge.uncatalogued_metrics import additional_metrics
from soakwatch.sources.tables.columns import IMPORTED
from soakwatch.sources.tables.errors import DataError
from soakwatch.transfer.importing.build_series import ImportedSeries
from soakwatch_model.series import trait_of
from soakwatch_rules.load.tenant_load import METRICS as OF_TENANTS
from soakwatch_rules.rule import Input
from soakwatch_rules.traits import traits_of

_SHOWN = 6


def growth_of(names: Sequence[str]) -> str | None:
    """The bad direction of columns outside the catalogue: up if a rule about growth is named.

    >>> growth_of(["memory_growth"]), growth_of(["step_change"])
    ('up', None)
    """
    return "up" if any(traits_of(name).growth is not None for name in names) else None


def notes_on_rules(file: str, series: Sequence[ImportedSeries], names: Sequence[str]) -> tuple[str, ...]:
    """Notes on columns and named rules that are not used. Raises DataError if nothing at all would be judged."""
    metrics = {imported.metric for imported in series}
    outside = [imported for imported in series if imported.metric.startswith(IMPORTED)]
    traits = {imported.metric: trait_of(imported.metric, imported.unit, imported.kind) for imported in series}
    columns = ", ".join(dict.fromkeys(imported.column for imported in series))
    idle = []
    for name in names:
        rule = rule_class(name)
        # their metrics come with the tenants
        read = OF_TENANTS if Input.TENANTS in rule.spec.inputs else rule.metrics
        if not read or metrics & set(read) or additional_metrics(rule, traits):
            continue
        more = " …" if len(read) > _SHOWN else ""
        wanted = ", ".join(read[:_SHOWN]) + more
        idle.append(
            f"{file}: {name} judges {wanted}, and the file has none of these: map a column to one of them "
            f"with --map 'COLUMN=METRIC' (columns: {columns})"
        )
    if names and len(idle) == len(set(names)):
        raise DataError(idle[0])
    if names or not outside:
        return tuple(idle)
    unknown = list(dict.fromkeys(imported.column for imported in outside))
    columns = ", ".join(unknown[:_SHOWN]) + (" …" if len(unknown) > _SHOWN else "")
    example = min(rules(), key=lambda name: (traits_of(name).growth is None, traits_of(name).rank))
    sentence = f"{file}: no rule judges {columns}: name one, such as --rule {example}, or map them with --map"
    known = {metric for name in rules() for metric in rule_class(name).metrics}
    if not metrics & known:
        raise DataError(sentence)  # only coverage would be judged, and that alone must not pass
    return (sentence,)
