"""Go on with a job that was broken off, such as by a reboot: a new job does so in the same folder."""

from __future__ import annotations

from pathlib import Path

import click

from soakwatch.cli.options import server_options


@click.command(
    epilog="""\b
Examples:
  soakwatch queue resume 17
\b
The gap is recorded as an event, as by soakwatch resume; of a campaign no run is made twice."""
)
@click.argument("job")
@server_options
def command(job: str, server: str | None, token: str | None, ca: str | None, runs_folder: Path) -> None:
    """Go on with JOB, which was broken off."""
    from soakwatch.cli.lab_jobs import said
    from soakwatch.web.lab_client import lab_server, number_of

    lab = lab_server(server, token, ca, runs_folder)
    answer = lab.ask("POST", f"/api/lab/jobs/{number_of(job)}/resume")
    click.echo(said(f"job {answer['id']} goes on with {answer['resumes']}"))
