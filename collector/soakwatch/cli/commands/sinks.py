"""Lists the sinks (databases that a run also writes to while it goes on), or shows one with its keys."""

from __future__ import annotations

import click

from soakwatch.core.registry import INSTALLED


@click.command(
    epilog="""\b
Examples:
  soakwatch sinks
  soakwatch sinks influxdb"""
)
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """List the sinks; with NAME show the keys that a plan may give it."""
    from soakwatch.cli.source_tables import show_keys, show_sources
    from soakwatch.plan.sink import sink_config

    if name is None:
        show_sources(INSTALLED.sinks)
    else:
        config = sink_config(name, INSTALLED)
        show_keys(INSTALLED.sinks.docstring(name), config)
