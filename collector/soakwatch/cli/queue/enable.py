"""Enable a schedule that was disabled."""

from __future__ import annotations

from pathlib import Path

import click

from soakwatch.cli.options import server_options


@click.command(
    epilog="""\b
Examples:
  soakwatch queue enable s3"""
)
@click.argument("schedule")
@server_options
def command(schedule: str, server: str | None, token: str | None, ca: str | None, runs_folder: Path) -> None:
    """Enable SCHEDULE, such as s3."""
    from soakwatch.cli.lab_jobs import said
    from soakwatch.web.lab_client import lab_server, number_of

    lab = lab_server(server, token, ca, runs_folder)
    answer = lab.ask("POST", f"/api/lab/schedules/{number_of(schedule)}/enable")
    coming = f", next at {answer['next']}" if answer["next"] else ""
    click.echo(said(f"schedule {answer['id']} of {answer['plan']} is enabled{coming}"))
