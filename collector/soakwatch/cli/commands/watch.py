"""Shows a run that goes on, from another terminal: phase, time left, sources, load, findings, events."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from soakwatch.runs.catalog import DEFAULT_RUNS

if TYPE_CHECKING:
    from soakwatch.cli.display.follow import RunReader


@click.command(
    epilog="""\b
Examples:
  soakwatch watch last
  soakwatch watch last --once
  soakwatch watch runs/20261121T200000Z-fw-7.2 --verdict && ./release.sh
  SOAKWATCH_TOKEN=... soakwatch watch http://127.0.0.1:8720
\b
It reads the record, or asks the server: the run does not notice. Ctrl-C leaves the run alone and exits with 130.
When the run ends the verdict is shown, and the exit code is 0; with --verdict it is that of the verdict: 0 pass,
1 fail, 3 inconclusive. It is 4 where the monitor broke off.
Where there is no terminal it prints a line whenever something is new."""
)
@click.argument("run", metavar="RUN|URL", default="last")
@click.option("--once", is_flag=True, help="Look once and exit.")
@click.option(
    "--verdict",
    "judged",
    is_flag=True,
    help="Exit with the code of the verdict; with --once, of that so far (3 while the run goes on).",
)
@click.option("--ca", metavar="FILE", help="CA bundle (PEM) that an HTTPS server is verified by.")
@click.option(
    "--runs",
    "runs_folder",
    type=click.Path(path_type=Path),
    default=DEFAULT_RUNS,
    show_default=True,
    help="Folder in which RUN is looked up.",
)
def command(run: str, runs_folder: Path, ca: str | None, *, once: bool, judged: bool) -> int:
    """Show RUN (a folder, a record file, 'last', or the URL of a server) until it ends."""
    import signal
    import sys

    from rich.console import Console

    from soakwatch.cli.display.follow import attend, conclude, glance

    console, way = Console(), _way(run, ca, runs_folder)
    if once:
        look = way.look()
        glance(look, console)
    else:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the terminal gets its cursor back
        try:
            look = attend(way, console)
        except KeyboardInterrupt:
            click.echo(f"left: the run goes on; soakwatch watch {run} shows it again, soakwatch stop {run} ends it")
            return 130
    if look.over:
        conclude(look, run, console)
    return look.exit_code if judged or look.status.standing == "broken off" else 0


def _way(run: str, ca: str | None, runs_folder: Path) -> RunReader:
    if run.startswith(("http://", "https://")):
        from soakwatch.web.client import remote_run
        from soakwatch.web.remote_watch import ServedRun

        return ServedRun(remote_run(run, None, ca))
    from soakwatch.cli.display.follow import RecordedRun
    from soakwatch.runs.catalog import find_run

    return RecordedRun(find_run(run, runs_folder))
