"""List the metrics of the catalogue, or the kinds of events: name, unit, kind and meaning."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

import click

from soakwatch.core.errors import SoakwatchError
from soakwatch.core.suggest import hint
from soakwatch.core.tables import show_table
from soakwatch_model.event_catalogue import CATALOGUE as EVENTS
from soakwatch_model.metric import CATALOGUE


@click.command(
    epilog="""\b
Examples:
  soakwatch metrics
  soakwatch metrics memory
  soakwatch metrics 'process.*'
  soakwatch metrics --events kernel"""
)
@click.argument("pattern", required=False)
@click.option("--events", is_flag=True, help="List the kinds of events instead.")
def command(pattern: str | None, *, events: bool) -> None:
    """List the metrics, or the kinds of events; PATTERN is a glob, or a part of the name.

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
    metrics = {metric.name: metric for metric in CATALOGUE}
    matching = [metrics[name] for name in _matching("metric", pattern, list(metrics))]
    show_table(
        ("metric", "unit", "kind", "growth", "labels", "meaning"),
        [(m.name, m.unit, m.kind, m.growth or "-", ",".join(m.labels) or "-", m.about) for m in matching],
    )


def _matching(what: str, pattern: str | None, names: Sequence[str]) -> list[str]:
    """The names that a glob, or a part of a name, matches. Raises SoakwatchError where it matches none."""
    glob = "*" if pattern is None else pattern if set(pattern) & set("*?[") else f"*{pattern}*"
    matches = [name for name in names if fnmatchcase(name, glob)]
    if not matches:
        raise SoakwatchError(f"no {what} matches {pattern!r}{hint(pattern or '', names)}")
    return matches
