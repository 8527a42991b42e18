"""Cancel a job: it leaves the queue, or ends properly if it runs, and is judged by what it has."""

from __future__ import annotations

from pathlib import Path

import click

from soakwatch.cli.options import server_options


@click.command(
    epilog="""\b
Examples:
  soakwatch queue cancel 17
  soakwatch queue cancel 17 --reason "the rack is needed"
\b
A run that goes on is stopped as by soakwatch stop; a campaign as by Ctrl-C. If it still runs a minute later, asking
again kills it: what was recorded is kept, and soakwatch queue resume goes on with it."""
)
@click.argument("job")
@click.option("--reason", default="", help="Reason to show in the queue and in the report.")
@server_options
def command(job: str, reason: str, server: str | None, token: str | None, ca: str | None, runs_folder: Path) -> None:
    """Cancel JOB, a number of soakwatch queue list."""
    from soakwatch.cli.lab_jobs import said
    from soakwatch.web.lab_client import lab_server, number_of

    lab = lab_server(server, token, ca, runs_folder)
    answer = lab.ask("POST", f"/api/lab/jobs/{number_of(job)}/cancel", {"reason": reason})
    words = "is stopping, and is judged then" if answer["stopping"] else "is cancelled"
    click.echo(said(f"job {answer['id']} {words}"))
