# ruff: noqa: N999 - the file's name is the command's
"""Import series as a run: CSV tables, InfluxDB or Prometheus, to be judged and reported like any other."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from soakwatch.cli.options import LabelCommand, group_option, label_option, runs_option
from soakwatch.core.errors import PlanError, RecordError
from soakwatch.transfer.importing.command_line import options_of, table_options
from soakwatch.transfer.importing.prometheus_options import HELP as PROMETHEUS_HELP
from soakwatch.transfer.importing.prometheus_options import prometheus_options, refuse_without
from soakwatch.transfer.sinks.addresses import HELP, MAP_FILE, is_database

if TYPE_CHECKING:
    from soakwatch.transfer.importing.files import ImportedRun

Reads = Callable[[Path, Callable[[str], None], Callable[[str], None]], "ImportedRun | None"]
"""Makes a record in a folder; the other two take how far it is, and notes for the user."""


@click.command(
    cls=LabelCommand,
    epilog="""\b
Examples:
  soakwatch import memory.csv --rule growth --label release=7.2 testbed=rack-3
  soakwatch import host.csv.gz --map 'rss=process.memory.usage,process=nginx:KB' --unit cpu=%
  soakwatch import monday.csv tuesday.csv --target fw-7.2 --tz Europe/Berlin --name two-days
  soakwatch import pods.csv --by pod --time ts --time-format ms
  vmstat-to-csv | soakwatch import - --start 2026-11-21T20:00:00Z
  soakwatch import 'influxdb://tig:8086/telegraf?token=env:INFLUX_TOKEN&host=fw1&from=2026-11-20T20:00Z&to=2026-11-21T08:00Z'
  soakwatch import 'influxdbs://tig/soak?token=file:token&run=20261121T200000Z-fw-7.2'
  soakwatch import 'influxdb://tig:8086/apps?token=env:INFLUX_TOKEN' --map ours.yaml
  soakwatch import --prometheus http://prom:9090 --from 2026-11-20T20:00Z --to 2026-11-21T08:00Z --name last-night
  soakwatch import --prometheus http://prom:9090 --from 12h --query '{instance="fw1:9100"}' --target fw1
\b
Then: soakwatch judge last; soakwatch report last --html report.html
\b
A long table has the columns time,target,metric,object,value[,unit]; in a wide table every numeric column is a series.
A column named like a metric, or by a common name (cpu, rss, fds, threads, tps …), becomes that metric; any other column
becomes imported.NAME and is judged by the rules given with --rule. Every guess is reported.
\b
--role gen=generator sets the role of a target. --phase soak=30m..22h and --events FILE describe the run; a time is
ISO 8601, epoch seconds, or a duration from the first sample. The file is CSV with a header (or YAML with a list):
  kind,begin,end,target,object,expect,within
  upgrade,6h,6h5m,fw,,reboot=1 process.restart=3,10m
kind and begin are required; additional columns are stored with the event.
\b
"""
    + HELP
    + "\n\b\n"
    + MAP_FILE
    + "\n\b\n"
    + PROMETHEUS_HELP,
)
@click.argument("files", metavar="FILE...", nargs=-1)
@runs_option("Folder for the new run.")
@click.option(
    "--name",
    "name",
    metavar="NAME",
    show_default="name of the first file, run, bucket or server",
    help="Name of the run.",
)
@click.option(
    "--rule",
    "names",
    multiple=True,
    show_default="all that apply",
    help="Rule that judges the run. May be repeated.",
)
@label_option("Label of the run, such as release=7.2.")
@group_option("the new run")
@prometheus_options
@table_options
def command(
    files: tuple[str, ...],
    runs_folder: Path,
    name: str | None,
    names: tuple[str, ...],
    labels: dict[str, str],
    group: str,
    **given: object,
) -> None:
    """Import the tables in FILE… ('-': standard input), series of an InfluxDB (influxdb://HOST/BUCKET?…), or those of a
    Prometheus (--prometheus URL)."""
    from rich.console import Console

    from soakwatch.core.registry import rule_class
    from soakwatch.core.tables import harmless
    from soakwatch.runs.catalog import kept_if_filled, new_folder
    from soakwatch.transfer.importing.files import import_files, stem_of

    for rule in names:
        rule_class(rule)
    if given.get("prometheus"):
        if files:
            raise click.UsageError("--prometheus must be imported alone: name no file with it")
        _import_prometheus(runs_folder, name, names, labels, given, group)
        return
    refuse_without(given)
    if not files:
        raise click.UsageError("name a table, a database (influxdb://HOST/BUCKET?…) or --prometheus URL")
    database = next((file for file in files if is_database(file)), None)
    if database is not None and len(files) > 1:
        raise click.UsageError("a database must be imported alone: name no other file with it")
    if database is not None:
        _import_database(database, runs_folder, name, names, labels, given, group)
        return
    run = name or stem_of(files[0])
    options = options_of(given, "up")
    folder = new_folder(runs_folder, run, time.time_ns())
    with kept_if_filled(folder), Console(stderr=True).status("importing") as shown:
        imported = import_files(files, folder, run, options, ["soakwatch", "import", *files], shown.update, names)
        verdict = _finish(folder, labels, group, shown.update)
    for note in imported.notes:
        click.echo(f"note: {harmless(note)}", err=True)
    _show(imported)
    click.echo(harmless(verdict))
    click.echo(f"record  {folder / 'record.sqlite'}")


def _import_database(
    address: str,
    runs_folder: Path,
    name: str | None,
    names: tuple[str, ...],
    labels: Mapping[str, str],
    given: Mapping[str, object],
    group: str,
) -> None:
    """Import a run or series from a database."""
    from soakwatch.transfer.sinks.influxdb.read.address import database_of
    from soakwatch.transfer.sinks.influxdb.read.command_line import import_database, name_of

    def read(folder: Path, progress: Callable[[str], None], say: Callable[[str], None]) -> ImportedRun | None:
        return import_database(address, folder, name, given, names, "import", progress, say)

    _import_whole(runs_folder, name or name_of(database_of(address)), read, labels, group)


def _import_prometheus(
    runs_folder: Path,
    name: str | None,
    names: tuple[str, ...],
    labels: Mapping[str, str],
    given: Mapping[str, object],
    group: str,
) -> None:
    """Import series of a Prometheus."""
    from soakwatch.transfer.importing.prometheus_options import import_prometheus, name_of

    run = name or name_of(given)

    def read(folder: Path, progress: Callable[[str], None], say: Callable[[str], None]) -> ImportedRun:
        imported = import_prometheus(folder, run, given, names, progress)
        for note in imported.notes:
            say(note)
        return imported

    _import_whole(runs_folder, run, read, labels, group)


def _import_whole(runs_folder: Path, run: str, read: Reads, labels: Mapping[str, str], group: str) -> None:
    """Import a run that appears among the runs only once it is complete."""
    from rich.console import Console

    from soakwatch.core.tables import harmless
    from soakwatch.runs.catalog import kept_if_filled, new_folder

    folder = new_folder(runs_folder, run, time.time_ns())
    notes: list[str] = []
    runs_folder.mkdir(parents=True, exist_ok=True)
    with kept_if_filled(folder), tempfile.TemporaryDirectory(prefix=".importing-", dir=runs_folder) as draft:
        record = Path(draft) / "run" / "record"
        with Console(stderr=True).status("importing") as shown:
            imported = read(record, lambda text: shown.update(f"importing: {harmless(text)}"), notes.append)
            verdict = _finish(record, labels, group, shown.update)
        record.rename(folder)
    for note in notes:
        click.echo(f"note: {harmless(note)}", err=True)
    if imported is not None:
        _show(imported)
    click.echo(harmless(verdict))
    click.echo(f"record  {folder / 'record.sqlite'}")


def _finish(folder: Path, labels: Mapping[str, str], group: str, say: Callable[[str], None]) -> str:
    """Label the record, judge it and write its reports; returns the verdict in one line, or why there is none."""
    from soakwatch.core.labels import LABELS_KEY, labels_in, labels_json
    from soakwatch.core.private_files import share
    from soakwatch.judge.record_verdict import judge_record, keep
    from soakwatch.record import Record, RecordView
    from soakwatch.report.files import write_reports
    from soakwatch.report.rendering import Rendering

    with RecordView.open(folder) as view:
        own = labels_in(view.meta(LABELS_KEY))
    with Record.open(folder) as record:
        if labels:
            record.set_meta(LABELS_KEY, labels_json({**own, **labels}))
        say("judging")
        verdict = None
        try:
            with RecordView.open(folder) as view:
                verdict = judge_record(view, ended=True)
            keep(record, verdict, verdict.window.end_ns)
            shown = f"verdict {verdict.outcome.value}: {verdict.reason}"
        except (PlanError, RecordError) as error:
            shown = f"not judged: {error}"
        record.finish()
    if verdict is not None:
        say("writing the report")
        with RecordView.open(folder) as view:
            failures = write_reports(Rendering(view, verdict), folder)
        shown = "; ".join((shown, *failures))
    if group:
        share(folder, group)
    return shown


def _show(imported: ImportedRun) -> None:
    """Print the imported series, one row each."""
    from soakwatch.core.tables import show_table
    from soakwatch.core.units import show_seconds

    rows = [
        (
            series.column,
            series.target,
            f"{series.metric} {series.object}".strip(),
            series.unit,
            f"{series.time_ns.size}",
            show_seconds((int(series.time_ns[-1]) - int(series.time_ns[0])) * 1e-9),
        )
        for series in imported.series
    ]
    show_table(("column", "target", "series", "unit", "samples", "length"), rows)
