"""Remove a token: the next request with it is refused, and so are the browsers that logged in with it."""

from __future__ import annotations

from pathlib import Path

import click

from soakwatch.cli.options import runs_option


@click.command(
    epilog="""\b
Examples:
  soakwatch token remove anna"""
)
@click.argument("name")
@runs_option("Folder of runs that the server serves.")
def command(name: str, runs_folder: Path) -> None:
    """Remove the token of NAME."""
    from soakwatch.web.named_tokens import NamedTokens

    NamedTokens(runs_folder).remove(name)
    click.echo(f"the token of {name} is removed")
