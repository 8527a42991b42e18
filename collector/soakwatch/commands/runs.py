"""Lists the runs of a folder: state, verdict, length, size."""

from __future__ import annotations

from pathlib import Path

import click

from soakwatch.runs import DEFAULT_RUNS


@click.command(
    epilog="""\b
Examples:
  soakwatch runs
  soakwatch runs /srv/runs
\b
A run that is 'broken off' goes on with: soakwatch resume RUN"""
)
@click.argument("folder", type=click.Path(path_type=Path), default=DEFAULT_RUNS)
def command(folder: Path) -> None:
    """List the runs in FOLDER (default: runs), oldest first."""
    from soakwatch.runs import list_runs
    from soakwatch.setting_out import utc_text
    from soakwatch.table import show_table
    from soakwatch.units import show_bytes, show_seconds

    lines = list_runs(folder)
    if not lines:
        click.echo(f"no runs in {folder}/: start one with 'soakwatch run' or 'soakwatch demo'")
        return
    rows = [
        (
            line.folder.name,
            "?" if line.begin_ns is None else utc_text(line.begin_ns),
            "?" if line.seconds is None else show_seconds(line.seconds),
            line.state,
            line.verdict or ("not judged" if line.trouble is None else line.trouble),
            show_bytes(line.bytes),
        )
        for line in lines
    ]
    show_table(("run", "began", "length", "state", "verdict", "record"), rows)
