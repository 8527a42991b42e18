"""Remove a token: the next request with it is refused, and so are the browsers that logged in with it."""

from __future__ import annotations

from pathlib import Path

import click

from soakwatch.cli.options import runs_option


@click.command(
    epilog="""\b
Examples:
  soakwatch token remove anna
  soakwatch token remove anna bert --runs /srv/runs
\b
If one of the names has no token, none is removed."""
)
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@runs_option("Folder of runs that the server serves.")
def command(names: tuple[str, ...], runs_folder: Path) -> None:
    """Remove the token of each NAME."""
    from soakwatch.web.named_tokens import NamedTokens

    NamedTokens(runs_folder).remove(*names)
    for name in dict.fromkeys(names):
        click.echo(f"the token of {name} is removed")
