# ruff: noqa: N999 - the file's name is the command's
"""Makes a run of anybody's table (CSV, long or wide, plain or gzip), to be judged and reported like any other."""

from __future__ import annotations

import time
from pathlib import Path

import click

from soakwatch.importing.command_line import options_of, table_options
from soakwatch.runs import DEFAULT_RUNS


@click.command(
    epilog="""\b
Examples:
  soakwatch import memory.csv --rule growth
  soakwatch import host.csv.gz --map 'rss=process.memory.usage,process=nginx:KB' --unit cpu=%
  soakwatch import monday.csv tuesday.csv --target fw-7.2 --tz Europe/Berlin --name two-days
  soakwatch import pods.csv --by pod --time ts --time-format ms
  vmstat-to-csv | soakwatch import - --start 2026-11-21T20:00:00Z
\b
Then: soakwatch judge last; soakwatch report last --html report.html
\b
A long table has the columns time,target,metric,object,value[,unit]; in a wide one every column of numbers is a series.
Columns called like a metric, or by a common name (cpu, rss, fds, threads, tps …), become that metric; every other one
becomes imported.NAME and is judged by the rules that are named with --rule. What was guessed is told."""
)
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--runs", "runs_folder", type=click.Path(path_type=Path), default=DEFAULT_RUNS, show_default=True,
              help="Folder in which the run is made.")  # fmt: skip
@click.option("--name", "name", metavar="NAME", help="Name of the run.  [name of the first file]")
@click.option(
    "--rule", "names", multiple=True, help="Rule by which the run is judged. May be repeated.  [all that know it]"
)
@table_options
def command(
    files: tuple[str, ...], runs_folder: Path, name: str | None, names: tuple[str, ...], **given: object
) -> None:
    """Make a run of the tables in FILE… ('-': standard input)."""
    from rich.console import Console

    from soakwatch.importing.files import import_files, stem_of
    from soakwatch.registry import rule_class
    from soakwatch.runs import new_folder
    from soakwatch.table import harmless, show_table
    from soakwatch.units import show_seconds

    for rule in names:
        rule_class(rule)
    told = options_of(given, "up")
    run = name or stem_of(files[0])
    folder = new_folder(runs_folder, run, time.time_ns())
    with Console(stderr=True).status("importing") as shown:
        made = import_files(files, folder, run, told, ["soakwatch", "import", *files], shown.update, names)
    for note in made.notes:
        click.echo(f"note: {harmless(note)}", err=True)
    rows = [
        (
            one.column,
            one.target,
            f"{one.metric} {one.object}".strip(),
            one.unit,
            f"{one.time_ns.size}",
            show_seconds((int(one.time_ns[-1]) - int(one.time_ns[0])) * 1e-9),
        )
        for one in made.series
    ]
    show_table(("column", "target", "series", "unit", "readings", "length"), rows)
    click.echo(f"record  {folder / 'record.sqlite'}")
