"""Ends a run that goes on, from another terminal: it is judged and reported with what is there."""

from __future__ import annotations

from pathlib import Path

import click

from soakwatch.runs.catalog import DEFAULT_RUNS


@click.command(
    epilog="""\b
Examples:
  soakwatch stop last
  soakwatch stop last --reason "the rack is needed" && soakwatch watch last
  SOAKWATCH_TOKEN=... soakwatch stop http://127.0.0.1:8720
\b
The run hears it within a second or two and ends as after Ctrl-C: its last looks are kept, it is judged, and the report
is written by the process that runs it. The report says that it was stopped, and why."""
)
@click.argument("run", metavar="RUN|URL")
@click.option("--reason", default="", help="Why, for the report.")
@click.option("--ca", metavar="FILE", help="CA bundle (PEM) that an HTTPS server is verified by.")
@click.option(
    "--runs",
    "runs_folder",
    type=click.Path(path_type=Path),
    default=DEFAULT_RUNS,
    show_default=True,
    help="Folder in which RUN is looked up.",
)
def command(run: str, reason: str, ca: str | None, runs_folder: Path) -> None:
    """End RUN (a folder, a record file, 'last', or the URL of a server) properly, now."""
    import json
    import time

    from soakwatch.runs.catalog import find_run
    from soakwatch.runs.state import StateReader
    from soakwatch.runs.stop import stop_run

    why = " ".join(reason.split())
    if run.startswith(("http://", "https://")):
        from soakwatch.web.client import remote_run

        remote_run(run, None, ca).ask("POST", "stop", json.dumps({"reason": why}).encode())
    else:
        folder = find_run(run, runs_folder)
        stop_run(folder, StateReader(folder).read(time.time_ns()), why, "command line")
    click.echo(f"stopping: the run is judged and reported now; follow it with: soakwatch watch {run}")
