"""Stop a running soak from another terminal; it is judged and reported with the data recorded so far."""

from __future__ import annotations

from pathlib import Path

import click

from soakwatch.cli.options import runs_option


@click.command(
    epilog="""\b
Examples:
  soakwatch stop last
  soakwatch stop last --reason "the rack is needed" && soakwatch watch last
  SOAKWATCH_TOKEN=... soakwatch stop http://127.0.0.1:8720
\b
The run ends within a second or two, as after Ctrl-C: its last polls are kept, and its own process judges it and writes
the report. The report shows that it was stopped, and why."""
)
@click.argument("run", metavar="RUN|URL")
@click.option("--reason", default="", help="Reason to show in the report.")
@click.option("--ca", metavar="FILE", help="CA bundle (PEM) to verify an HTTPS server.")
@runs_option()
def command(run: str, reason: str, ca: str | None, runs_folder: Path) -> None:
    """Stop RUN (a folder, a record file, 'last', or the URL of a server) and judge it."""
    import json
    import time

    from soakwatch.runs.catalog import find_run
    from soakwatch.runs.run_state import StateReader
    from soakwatch.runs.stop_run import stop_run

    why = " ".join(reason.split())
    if run.startswith(("http://", "https://")):
        from soakwatch.web.client import remote_run

        remote_run(run, None, ca).ask("POST", "stop", json.dumps({"reason": why}).encode())
    else:
        folder = find_run(run, runs_folder)
        stop_run(folder, StateReader(folder).read(time.time_ns()), why, "command line")
    click.echo(f"stopping; judging now. Follow it with: soakwatch watch {run}")
