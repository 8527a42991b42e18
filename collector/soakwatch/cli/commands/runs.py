"""List the runs of a folder: state, verdict, worst finding, coverage, release, length, size."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click

from soakwatch.runs.catalog import DEFAULT_RUNS

_ROOM = {"worst finding": 110, "coverage": 125, "release": 150}


@click.command(
    epilog="""\b
Examples:
  soakwatch runs
  soakwatch runs /srv/runs
\b
Resume a run that was 'broken off' with: soakwatch resume RUN"""
)
@click.argument("folder", type=click.Path(path_type=Path), default=DEFAULT_RUNS)
def command(folder: Path) -> None:
    """List the runs in FOLDER (default: runs), oldest first."""
    from soakwatch.core.formatting import SYMBOLS, share_text
    from soakwatch.core.tables import harmless, show_table
    from soakwatch.core.units import show_bytes, show_seconds
    from soakwatch.engine.start import utc_text
    from soakwatch.runs.catalog import folders_of
    from soakwatch.runs.summary import RunSummary, summary_of

    def row(run: RunSummary) -> dict[str, str]:
        line, worst = run.line, run.worst
        return {
            "run": line.folder.name,
            "started": "?" if line.begin_ns is None else utc_text(line.begin_ns),
            "length": "?" if line.seconds is None else show_seconds(line.seconds),
            "state": line.state,
            "verdict": line.verdict or "not judged",
            "worst finding": "" if worst is None else f"{SYMBOLS[worst.outcome]} {worst.rule} on {worst.target}",
            "coverage": "" if run.coverage is None else share_text(run.coverage),
            "release": run.release,
            "record": show_bytes(line.bytes),
        }

    runs = [summary_of(run_folder, drawn=False) for run_folder in folders_of(folder)]
    if not runs:
        click.echo(f"no runs in {folder}/: start one with 'soakwatch run' or 'soakwatch demo'")
        return
    rows = [row(run) for run in runs]
    # The least informative columns go first where a terminal is too narrow; a program that reads this gets all.
    wide = shutil.get_terminal_size().columns if sys.stdout.isatty() else 1000
    head = [name for name in rows[0] if wide >= _ROOM.get(name, 0)]
    show_table(head, [[cells[name] for name in head] for cells in rows])
    for run in runs:
        if run.line.trouble is not None:
            click.echo(harmless(f"{run.line.folder.name} cannot be read: {run.line.trouble}"))
