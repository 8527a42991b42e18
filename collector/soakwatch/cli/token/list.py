"""Show who has a token, in which role, and since when."""

from __future__ import annotations

from pathlib import Path

import click

from soakwatch.cli.options import runs_option


@click.command(
    epilog="""\b
Examples:
  soakwatch token list
  soakwatch token list --runs /srv/runs"""
)
@runs_option("Folder of runs that the server serves.")
def command(runs_folder: Path) -> None:
    """List the tokens of a folder of runs; the token of the server itself is not among them."""
    from soakwatch.core.formatting import utc
    from soakwatch.core.tables import show_table
    from soakwatch.web.named_tokens import NamedTokens

    kept = NamedTokens(runs_folder).all()
    if not kept:
        click.echo(f"nobody has a token for {runs_folder}: soakwatch token add NAME --role operator makes one")
        return
    show_table(("name", "role", "made"), [(one.name, one.role, utc(one.made_ns)) for one in kept])
