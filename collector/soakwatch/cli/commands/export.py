"""Export runs as tables: CSV, Parquet or line protocol; or write the plan and scripts of a run out again."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from soakwatch.cli.options import runs_option

STDOUT = "-"
_OTHER_SUFFIXES = frozenset(
    {".xlsx", ".xls", ".ods", ".json", ".jsonl", ".tsv", ".txt", ".gz", ".zip", ".db", ".sqlite"}
)


@click.command(
    epilog="""\b
Examples:
  soakwatch export last --output night
  soakwatch export last --output night.csv --metric 'process.memory.*' --phase soak
  soakwatch export runs/* --format parquet --output data
  soakwatch export last --output wide.parquet --wide --target fw
  soakwatch export last --format line-protocol --output - | gzip > night.lp.gz
  soakwatch export last --plan --output again
\b
A folder gets samples/RUN.csv (or .parquet), and beside it polls, events, phases, findings, faults, sources, lives,
artifacts and facts, a file for each run; a FILE (.csv, .parquet, .lp) or - (standard output) gets the samples alone.
--metric, --target and --phase choose samples; the other tables are always whole. Times are UTC. Parquet needs
pyarrow (docs/install.md). With duckdb: SELECT * FROM 'data/samples/*.parquet'.
\b
Line protocol is what the sink influxdb would write: influx write --bucket soak --file night.lp.
--plan writes plan.yaml and the scripts that it runs, as they were when the run began: soakwatch run plan.yaml there. Of
a run of a campaign it also writes campaign-before.sh and campaign-after.sh, and the small files that they name.
\b
Exit codes: 0 everything is written; 2 nothing is, and the reason is printed."""
)
@click.argument("names", metavar="RUN...", nargs=-1, required=True)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["csv", "parquet", "line-protocol"]),
    help="What is written.  [by the name of the file, else csv]",
)
@click.option(
    "--output",
    metavar="DIR|FILE",
    default="export",
    show_default=True,
    help="Folder, file (.csv, .parquet, .lp), or - for standard output.",
)
@click.option("--metric", "metrics", multiple=True, metavar="GLOB", help="Metrics, by name or glob. May be repeated.")
@click.option("--target", "targets", multiple=True, metavar="GLOB", help="Targets, by name or glob. May be repeated.")
@click.option("--phase", "phases", multiple=True, metavar="NAME", help="Samples of this phase. May be repeated.")
@click.option("--wide", is_flag=True, help="A row for each time and a column for each series.")
@click.option("--plan", "plan", is_flag=True, help="Write the plan and its scripts instead, to repeat the run.")
@click.option("--force", is_flag=True, help="Replace files that exist.")
@runs_option()
def command(
    names: tuple[str, ...],
    format_: str | None,
    output: str,
    metrics: tuple[str, ...],
    targets: tuple[str, ...],
    phases: tuple[str, ...],
    wide: bool,  # noqa: FBT001
    plan: bool,  # noqa: FBT001
    force: bool,  # noqa: FBT001
    runs_folder: Path,
) -> None:
    """Export RUN… (folders, record files, or 'last') to files for other programs."""
    from soakwatch.core.tables import harmless, show_table
    from soakwatch.record.frames import Selection
    from soakwatch.runs.catalog import find_run
    from soakwatch.transfer.export.dataset import (
        SUFFIXES,
        ExportOptions,
        export_file,
        export_folder,
        export_stream,
        runs_of,
    )

    found = [find_run(name, runs_folder) for name in names]
    if plan:
        if len(found) > 1:
            raise click.UsageError("--plan writes the plan of one run: name one")
        if format_ or metrics or targets or phases or wide or output == STDOUT:
            raise click.UsageError("--plan writes plan and scripts to a folder: it takes --output DIR and --force only")
        _plan(found[0], Path(output), force=force)
        return
    of_file = SUFFIXES.get(Path(output).suffix.lower())
    suffix = Path(output).suffix.lower()
    if suffix in _OTHER_SUFFIXES and not Path(output).is_dir():
        raise click.UsageError(f"--output {output}: {suffix} cannot be written; use {', '.join(SUFFIXES)} or a folder")
    chosen = next((known for known in SUFFIXES.values() if known == format_), of_file or "csv")
    if of_file is not None and of_file != chosen:
        raise click.UsageError(f"--output {output} is a file of {of_file}, and --format says {chosen}: correct one")
    runs = runs_of(found)
    options = ExportOptions(chosen, Selection(metrics, targets, phases), wide)
    if output == STDOUT:
        export_stream(runs, options, sys.stdout.buffer)
        return
    single = of_file is not None
    written = (export_file if single else export_folder)(runs, options, Path(output), force=force)
    rows = [(each.what, each.run, f"{each.rows}", f"{each.path}") for each in written]
    show_table(("table", "run", "rows", "file"), [tuple(map(harmless, row)) for row in rows])
    if single and chosen != "line-protocol":
        click.echo("note: samples only; a folder gets polls, events, phases and findings as well", err=True)


def _plan(record: Path, folder: Path, *, force: bool) -> None:
    from soakwatch.core.tables import harmless
    from soakwatch.transfer.export.plan_files import write_plan

    result = write_plan(record, folder, force=force)
    for path in result.files:
        click.echo(f"wrote {path}")
    for note in result.notes:
        click.echo(f"note: {harmless(note)}", err=True)
