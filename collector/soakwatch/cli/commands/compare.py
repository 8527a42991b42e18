"""Compare runs with one of them: outcomes, figures with their changes, set-up."""

from __future__ import annotations

import json
from pathlib import Path

import click

from soakwatch.cli.options import runs_option


@click.command(
    epilog="""\b
Examples:
  soakwatch compare runs/20261114T200000Z-fw-7.1 last
  soakwatch compare last --against runs/20261114T200000Z-fw-7.1
  soakwatch compare night-1 night-2 night-3 --against night-1 --json > compared.json
  soakwatch compare old new --match new:fw-b=fw-a
\b
Figures are of the phases under load, else of the whole run. Changes are told by phase time: the phases under load that
both runs have are cut into about 24 parts, and their means compared, with neighbours known to be alike (AR(1), Holm).
That proves that these two runs differ; whether two releases do takes several runs of each:
'soakwatch campaign', or 'soakwatch judge RUN --against RUN --against RUN', which says how many runs are enough."""
)
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.option("--against", metavar="RUN", help="Reference run.  [default: the first RUN]")
@click.option(
    "--match",
    "matches",
    metavar="RUN:ITS_TARGET=TARGET",
    multiple=True,
    help="Target of RUN that stands for one of another name in the reference. May be repeated.  [default: by role]",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@runs_option()
def command(
    runs: tuple[str, ...], against: str | None, matches: tuple[str, ...], *, as_json: bool, runs_folder: Path
) -> None:
    """Compare RUNs (folders, record files, or 'last') with a reference run: which rules say something else, which
    figures changed by how much, and what of the set-up is not the same.
    """
    from contextlib import ExitStack

    from soakwatch.cli.display.compare import show_comparison
    from soakwatch.record import RecordView
    from soakwatch.runs.catalog import find_run
    from soakwatch.runs.compare.compared_runs import MAX_RUNS, compared, compared_data
    from soakwatch.runs.compare.targets import CompareOptions, match_of

    targets: dict[str, dict[str, str]] = {}
    for text in matches:
        pair = match_of(text)
        if pair is not None:
            run, own, theirs = pair
            targets.setdefault(run, {})[own] = theirs
    named = [] if against is None else [find_run(against, runs_folder)]
    folders = list(dict.fromkeys([*named, *(find_run(run, runs_folder) for run in runs)]))
    if not 1 < len(folders) <= MAX_RUNS:
        raise click.UsageError(f"name 2 to {MAX_RUNS} runs ({len(folders)} given)")
    with ExitStack() as stack:
        views = [stack.enter_context(RecordView.open(folder)) for folder in folders]
        data = compared(folders, views, CompareOptions(targets=targets))
    if as_json:
        click.echo(json.dumps(compared_data(data), indent=2, ensure_ascii=False))
    else:
        show_comparison(data)
