"""Lists the loads (what traffic generators say of themselves), or shows one with its keys."""

from __future__ import annotations

import click

from soakwatch.core.registry import INSTALLED


@click.command(
    epilog="""\b
Examples:
  soakwatch loads
  soakwatch loads command"""
)
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """List the loads; with NAME show the keys that a plan may give it."""
    from soakwatch.cli.source_tables import show_source, show_sources

    if name is None:
        show_sources(INSTALLED.loads)
    else:
        show_source(INSTALLED.loads, name)
