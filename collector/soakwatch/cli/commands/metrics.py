"""List the metrics of the catalogue: name, unit, kind and meaning."""

from __future__ import annotations

from fnmatch import fnmatchcase

import click

from soakwatch.core.errors import SoakwatchError
from soakwatch.core.suggest import hint
from soakwatch.core.tables import show_table
from soakwatch_agent.metric import CATALOGUE


@click.command(
    epilog="""\b
Examples:
  soakwatch metrics
  soakwatch metrics memory
  soakwatch metrics 'process.*'"""
)
@click.argument("pattern", required=False)
def command(pattern: str | None) -> None:
    """List the metrics; PATTERN is a glob, or a part of the name.

    Kinds: a gauge is a level, a counter only grows, a state is an identifier whose change matters. Growth is the
    lasting direction that is bad.
    """
    glob = "*" if pattern is None else pattern if set(pattern) & set("*?[") else f"*{pattern}*"
    matches = [metric for metric in CATALOGUE if fnmatchcase(metric.name, glob)]
    if not matches:
        raise SoakwatchError(f"no metric matches {pattern!r}{hint(pattern or '', [m.name for m in CATALOGUE])}")
    rows = [(m.name, m.unit, m.kind, m.growth or "-", ",".join(m.labels) or "-", m.about) for m in matches]
    show_table(("metric", "unit", "kind", "growth", "labels", "meaning"), rows)
