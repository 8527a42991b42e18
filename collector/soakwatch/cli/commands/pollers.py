"""Lists the pollers (sources of samples on targets), or shows one with its keys."""

from __future__ import annotations

import click

from soakwatch.core.registry import INSTALLED


@click.command(
    epilog="""\b
Examples:
  soakwatch pollers
  soakwatch pollers local"""
)
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """List the pollers; with NAME show the keys that a plan may give it."""
    from soakwatch.cli.source_tables import show_source, show_sources

    if name is None:
        show_sources(INSTALLED.pollers)
    else:
        show_source(INSTALLED.pollers, name)
