"""Print what a job has printed: its last 64 KiB."""

from __future__ import annotations

from pathlib import Path

import click

from soakwatch.cli.options import server_options


@click.command(
    epilog="""\b
Examples:
  soakwatch queue log 17
  soakwatch queue log 17 | tail -20"""
)
@click.argument("job")
@server_options
def command(job: str, server: str | None, token: str | None, ca: str | None, runs_folder: Path) -> None:
    """Print what JOB has printed."""
    from soakwatch.core.formatting import printable
    from soakwatch.web.lab_client import lab_server, number_of

    text = lab_server(server, token, ca, runs_folder).text(f"/api/lab/jobs/{number_of(job)}/log")
    click.echo(printable(text, lines=True), nl=False)
