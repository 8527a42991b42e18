"""Make a token for a person or a script; it is printed once, and only its hash is kept."""

from __future__ import annotations

from pathlib import Path

import click

from soakwatch.cli.options import runs_option


@click.command(
    epilog="""\b
Examples:
  soakwatch token add anna --role operator
  soakwatch token add ci-nightly --role operator --runs /srv/runs >ci.token
\b
Use it with SOAKWATCH_TOKEN=... soakwatch submit, with curl -H "Authorization: Bearer ...", or in the login page."""
)
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(["viewer", "operator", "admin"]),
    default="viewer",
    show_default=True,
    help="What it may do.",
)
@runs_option("Folder of runs that the server serves.")
def command(name: str, role: str, runs_folder: Path) -> None:
    """Make a token for NAME."""
    from soakwatch.web.named_tokens import NamedTokens

    token = NamedTokens(runs_folder).add(name, role)
    click.echo(f"the token of {name} ({role}) for {runs_folder}, shown this once:", err=True)
    click.echo(token)
