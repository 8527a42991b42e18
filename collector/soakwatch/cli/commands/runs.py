"""List the runs of a folder: state, verdict, worst finding, coverage, release, labels, seal, note, length, size."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click

from soakwatch.cli.options import LabelCommand, label_option
from soakwatch.runs.catalog import DEFAULT_RUNS
from soakwatch_rules.wording.quantities import cut_to

_ROOM = {"started": 100, "worst finding": 110, "coverage": 125, "release": 150, "labels": 170, "seal": 135, "note": 140}
_LONGEST_NOTE = 40


@click.command(
    cls=LabelCommand,
    epilog="""\b
Examples:
  soakwatch runs
  soakwatch runs /srv/runs
  soakwatch runs --label release=7.2 testbed='rack*'
  soakwatch runs --json | jq -r '.[] | [.run, .release, .verdict] | @tsv'
\b
Resume a run that was 'broken off' with: soakwatch resume RUN""",
)
@click.argument("folder", type=click.Path(path_type=Path), default=DEFAULT_RUNS)
@label_option("Only runs with this label; * at its end is any rest, and release is also what the devices reported.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list with one object per run.")
def command(folder: Path, labels: dict[str, str], as_json: bool) -> None:  # noqa: FBT001 - click's signature
    """List the runs in FOLDER (default: runs), oldest first."""
    import json

    from soakwatch.core.formatting import SYMBOLS, share_text
    from soakwatch.core.labels import labels_words
    from soakwatch.core.tables import harmless, show_table
    from soakwatch.core.units import show_bytes, show_seconds
    from soakwatch.engine.start import utc_text
    from soakwatch.judge.problems import heading
    from soakwatch.runs.catalog import folders_of
    from soakwatch.runs.summary import RunSummary, labelled, no_run_has, run_document, summary_of

    def row(run: RunSummary) -> dict[str, str]:
        line, worst = run.line, run.worst
        return {
            "run": line.folder.name,
            "started": "?" if line.begin_ns is None else utc_text(line.begin_ns),
            "length": "?" if line.seconds is None else show_seconds(line.seconds),
            "state": line.state,
            "verdict": line.verdict or "not judged",
            "worst finding": "" if worst is None else f"{SYMBOLS[worst.outcome]} {heading(worst)}",
            "coverage": "" if run.coverage is None else share_text(run.coverage),
            "release": run.release,
            "labels": labels_words(line.labels),
            "seal": run.sealed,
            "note": cut_to(run.note, _LONGEST_NOTE),
            "record": show_bytes(line.bytes),
        }

    every = [summary_of(run_folder, drawn=False) for run_folder in folders_of(folder)]
    runs = labelled(every, labels)
    if as_json:
        click.echo(json.dumps([run_document(run) for run in runs], indent=2, ensure_ascii=True, allow_nan=False))
        return
    if not every:
        click.echo(f"no runs in {folder}/: start one with 'soakwatch run' or 'soakwatch demo'")
        return
    if not runs:
        click.echo(no_run_has(every, labels, f"{folder}/"))
        return
    rows = [row(run) for run in runs]
    # The least informative columns go first where a terminal is too narrow; a program that reads this gets all.
    wide = shutil.get_terminal_size().columns if sys.stdout.isatty() else 1000
    there = [name for name in rows[0] if name not in {"labels", "note"} or any(cells[name] for cells in rows)]
    head = [name for name in there if name != "labels" or any(run.line.labels for run in runs)]
    head = [name for name in head if wide >= _ROOM.get(name, 0)]
    show_table(head, [[cells[name] for name in head] for cells in rows])
    for run in runs:
        if run.line.trouble is not None:
            click.echo(harmless(f"{run.line.folder.name} cannot be read: {run.line.trouble}"))
