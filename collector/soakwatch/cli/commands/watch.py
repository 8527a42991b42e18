"""Watch a running soak from another terminal: phase, time left, sources, load, findings, events."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from soakwatch.cli.options import runs_option

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
It reads the record or asks the server, without affecting the run. Ctrl-C ends only the display, with exit code 130.
When the run ends, the verdict is shown and the exit code is 0; with --verdict it is that of the verdict: 0 pass,
1 fail, 3 inconclusive. It is 4 if the monitor broke off, and 141 if the terminal or the reader of the output is gone.
Without a terminal a line is printed whenever something changes."""
)
@click.argument("run", metavar="RUN|URL", default="last")
@click.option("--once", is_flag=True, help="Show the current state and exit.")
@click.option(
    "--verdict",
    "judged",
    is_flag=True,
    help="Exit with the code of the verdict (3 if the run is still going on with --once).",
)
@click.option("--ca", metavar="FILE", help="CA bundle (PEM) to verify an HTTPS server.")
@runs_option()
def command(run: str, runs_folder: Path, ca: str | None, *, once: bool, judged: bool) -> int:
    """Watch RUN (a folder, a record file, 'last', or the URL of a server) until it ends."""
    import signal
    import sys

    from soakwatch.cli.display.follow import follow, show_outcome, show_snapshot
    from soakwatch.core.console import CommandConsole

    reader = _reader(run, ca, runs_folder)
    console = CommandConsole()
    if once:
        snapshot = reader.read()
        show_snapshot(snapshot, console)
    else:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # restore the terminal's cursor
        try:
            snapshot = follow(reader, console)
        except KeyboardInterrupt:
            click.echo(f"the run continues; soakwatch watch {run} shows it again, soakwatch stop {run} ends it")
            return 130
        except OSError as error:  # the terminal is gone, which says nothing about the run
            raise BrokenPipeError(*error.args) from None
    if snapshot.over:
        show_outcome(snapshot, run, console)
    return snapshot.exit_code if judged or snapshot.status.standing == "broken off" else 0


def _reader(run: str, ca: str | None, runs_folder: Path) -> RunReader:
    if run.startswith(("http://", "https://")):
        from soakwatch.web.client import remote_run
        from soakwatch.web.remote_watch import ServedRun

        return ServedRun(remote_run(run, None, ca))
    from soakwatch.cli.display.follow import RecordedRun
    from soakwatch.runs.catalog import find_run

    return RecordedRun(find_run(run, runs_folder))
