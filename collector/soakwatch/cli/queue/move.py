"""Move a job that waits: up or down by one place, or to the top."""

from __future__ import annotations

from pathlib import Path

import click

from soakwatch.cli.options import server_options


@click.command(
    epilog="""\b
Examples:
  soakwatch queue move 17
  soakwatch queue move 17 top"""
)
@click.argument("job")
@click.argument("to", type=click.Choice(["up", "down", "top"]), default="up")
@server_options
def command(job: str, to: str, server: str | None, token: str | None, ca: str | None, runs_folder: Path) -> None:
    """Move JOB up (by default), down or to the top of the queue."""
    from soakwatch.cli.lab_jobs import said
    from soakwatch.web.lab_client import lab_server, number_of

    lab = lab_server(server, token, ca, runs_folder)
    answer = lab.ask("POST", f"/api/lab/jobs/{number_of(job)}/move", {"to": to})
    click.echo(said(f"job {answer['id']} is at place {answer['place']} of the queue"))
