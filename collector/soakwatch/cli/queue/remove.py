"""Remove a schedule: jobs that it has queued stay."""

from __future__ import annotations

from pathlib import Path

import click

from soakwatch.cli.options import server_options


@click.command(
    epilog="""\b
Examples:
  soakwatch queue remove s3"""
)
@click.argument("schedule")
@server_options
def command(schedule: str, server: str | None, token: str | None, ca: str | None, runs_folder: Path) -> None:
    """Remove SCHEDULE, such as s3."""
    from soakwatch.cli.lab_jobs import said
    from soakwatch.web.lab_client import lab_server, number_of

    lab = lab_server(server, token, ca, runs_folder)
    answer = lab.ask("DELETE", f"/api/lab/schedules/{number_of(schedule)}")
    click.echo(said(f"schedule {answer['id']} of {answer['plan']} is removed"))
