"""List the metrics of the catalogue, or the kinds of events: name, unit, kind and meaning."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

import click

from soakwatch.core.errors import SoakwatchError
from soakwatch.core.registry import INSTALLED, rule_class
from soakwatch.core.suggest import hint
from soakwatch.core.tables import show_table
from soakwatch_model.event_catalogue import CATALOGUE as EVENTS
from soakwatch_model.metric import BY_NAME, CATALOGUE, Metric
from soakwatch_model.metric_queries import why_unjudged
from soakwatch_rules.traits import traits_of


@click.command(
    epilog="""\b
Examples:
  soakwatch metrics
  soakwatch metrics memory
  soakwatch metrics load.rx.packets
  soakwatch metrics 'process.*'
  soakwatch metrics --rules network
  soakwatch metrics --events kernel"""
)
@click.argument("pattern", required=False)
@click.option("--events", is_flag=True, help="List the kinds of events instead.")
@click.option("--rules", is_flag=True, help="List which rules judge each metric, or why none does.")
def command(pattern: str | None, *, events: bool, rules: bool) -> None:
    """List the metrics, or the kinds of events; PATTERN is a glob, or a part of the name. Of the whole name of a
    metric all is shown that is known of it.

    Kinds of metrics: a gauge is a level, a counter only grows, a state is an identifier whose change matters. Growth is
    the lasting direction that is bad.

    Kinds of events: a planned event can expect the expectable ones, of an intervention the cost is judged. Users can
    record events of any other kind: those count as interventions.
    """
    if events:
        kinds = {kind.name: kind for kind in EVENTS}
        rows = [
            (kind.name, kind.origin.value, kind.source, kind.notes, kind.about)
            for kind in (kinds[name] for name in _matching("kind of event", pattern, list(kinds)))
        ]
        show_table(("event", "about the", "from", "notes", "meaning"), rows)
        return
    if pattern in BY_NAME and not rules:
        show_table(("metric", pattern), _facts(BY_NAME[pattern]))
        return
    metrics = {metric.name: metric for metric in CATALOGUE}
    matching = [metrics[name] for name in _matching("metric", pattern, list(metrics))]
    if rules:
        show_table(("metric", "judged by"), [(m.name, _judged_by(m)) for m in matching])
        return
    show_table(
        ("metric", "unit", "kind", "growth", "labels", "meaning"),
        [(m.name, m.unit, m.kind, m.growth or "-", ",".join(m.labels) or "-", m.about) for m in matching],
    )


def _matching(what: str, pattern: str | None, names: Sequence[str]) -> list[str]:
    """The names that match a glob, or contain the pattern. Raises SoakwatchError if none does."""
    glob = "*" if pattern is None else pattern if set(pattern) & set("*?[") else f"*{pattern}*"
    matches = [name for name in names if fnmatchcase(name, glob)]
    if not matches:
        raise SoakwatchError(f"no {what} matches {pattern!r}{hint(pattern or '', names)}")
    return matches


def _facts(metric: Metric) -> list[tuple[str, str]]:
    """Everything the catalogue knows about a metric, as (name, text) rows."""
    flow, shown = metric.flow, metric.shown
    ends = [f"{end:g}" if end is not None else "" for end in (metric.low, metric.high)]
    figures = () if metric.figures is None else metric.figures.expressions or (metric.name,)
    facts = (
        ("meaning", metric.about),
        ("called", metric.words),
        ("unit", metric.unit),
        ("kind", metric.kind),
        ("labels", ", ".join(metric.labels)),
        ("range", " to ".join(ends) if all(ends) else f"from {ends[0]}" if ends[0] else ""),
        ("bad growth", metric.growth),
        ("worse", metric.worse),
        ("limit", metric.ceiling),
        ("judged by", _judged_by(metric)),
        ("only warns", metric.mild),
        ("traffic", f"{flow.what}, {flow.side} ({flow.scope})" if flow is not None else ""),
        ("topic", shown.topic if shown is not None else ""),
        ("figures", ", ".join(figures)),
        ("probe", metric.probe),
        ("aligned", "runs are laid over one another by it" if metric.aligned else ""),
    )
    return [(name, text) for name, text in facts if text]


def _judged_by(metric: Metric) -> str:
    """The rules that judge a metric, and whether a generic one only warns; or why none does."""
    found = [
        f"{name} (warns)" if metric.name in traits_of(name).only_warns else name
        for name in INSTALLED.rules.names()
        if metric.name in rule_class(name).metrics
    ]
    return ", ".join(found) or f"none: {why_unjudged(metric.name)}"
