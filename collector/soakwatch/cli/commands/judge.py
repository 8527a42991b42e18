"""Judge runs again, by their own plan, another plan or single rules, and say what changes; or judge imported series."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from soakwatch.cli.options import on_option, runs_option, set_option
from soakwatch.cli.report_options import asked_places, print_report, report_options
from soakwatch.report.formats import OF_RUNS
from soakwatch.transfer.importing.command_line import given_options, is_table, options_of, table_options
from soakwatch.transfer.sinks.addresses import HELP, is_database

if TYPE_CHECKING:
    from soakwatch.plan.rule_plan import RulePlan
    from soakwatch.record import RecordView

_STAGES = "memory_growth"


@click.command(
    epilog="""\b
Examples:
  soakwatch judge last
  soakwatch judge runs/20261121T200000Z-fw-7.2 --plan stricter.yaml
  soakwatch judge last --method stages
  soakwatch judge memory.csv --method stages
  soakwatch judge last --set rules.memory_growth.tolerance=2% --set rules.level.temperature=80
  soakwatch judge mailed-record.sqlite --rule memory_growth --json verdict.json
  soakwatch judge fw-7.2.tar.gz
  soakwatch judge last --junit out/junit.xml --ctrf out/ctrf.json
  soakwatch judge runs --plan stricter.yaml --jobs 4
  soakwatch judge archive/*/ --rule memory_growth --on dask://lab:8786 --json changed.jsonl
  soakwatch judge last --against runs/20261114T200000Z-fw-7.1 --against runs/20261107T200000Z-fw-7.1
  soakwatch judge data.csv --rule growth
  soakwatch judge host.csv.gz --map 'rss=process.memory.usage,process=nginx:KB' --unit cpu=%
  soakwatch judge pods.csv --rule growth --by pod --time ts --json -
  soakwatch judge night.csv --role gen=generator --phase soak=30m..22h --events changes.csv
  soakwatch judge 'influxdb://127.0.0.1:8086/soak?token=env:INFLUX_TOKEN&run=20261121T200000Z-fw-7.2'
  soakwatch judge 'influxdb://tig:8086/telegraf?token=env:INFLUX_TOKEN&host=fw1&from=2026-11-20T20:00Z'
\b
Several records: a line for each verdict that changes, with the finding that changes it, and the counts. A FOLDER
stands for every record below it. The records are not changed. docs/cluster.md says how a cluster is set up.
\b
--method stages judges memory by the first and the last third of the run alone: growth if mean ± sd of both do not
overlap and the last lies above the first by more than 5 % over the run (available memory: below). With several
--against, the verdict says how many runs there are, how much they vary at most, and how many more are enough.
\b
The verdict is computed from the record alone: the same record and rules give the same verdict, bit for bit. A record
of days is judged by a process a processor (on fewer: taskset -c 0 soakwatch judge RUN).
A table is judged by every rule whose metrics it contains; rules given with --rule also judge its other columns
('soakwatch import --help' explains how columns are mapped).
\b
"""
    + HELP
    + """
\b
Exit codes: 0 pass, 1 fail, 2 usage or plan error, 3 inconclusive, 4 the monitor itself failed.
Of several records: 2 if one could not be judged, else 1 if one fails, else 3 if one is inconclusive, else 0."""
)
@click.argument("runs", metavar="RUN…|FOLDER|DATA.csv|influxdb://…", nargs=-1, required=True)
@click.option(
    "--plan", type=click.Path(path_type=Path), show_default="the run's own", help="Plan with the rules to apply."
)
@set_option
@click.option("--rule", "names", multiple=True, show_default="all", help="Rule to apply. May be repeated.")
@report_options(
    helps={"json": "Write verdict.json ('-': print it); of several records a line of JSON each, as they come."}
)
@click.option(
    "--method",
    type=click.Choice(["shape", "stages"]),
    show_default="the plan's, else shape",
    help="What decides whether memory grows: its shape (rule growth), or the mean and spread of the last third of the "
    "run against those of the first, alone (memory_growth: {method: stages}).",
)
@runs_option()
@on_option
@click.option(
    "--jobs",
    type=click.IntRange(1),
    show_default="one a processor",
    help="Processes of this machine that judge several records.",
)
@click.option(
    "--against",
    multiple=True,
    metavar="RUN",
    help="Earlier run to compare with (rule run_difference). May be repeated; five runs are best.",
)
@click.option("--verbose", is_flag=True, help="Show on a terminal also what passed, was undecided, or did not apply.")
@table_options
def command(
    runs: tuple[str, ...],
    plan: Path | None,
    values: tuple[str, ...],
    names: tuple[str, ...],
    method: str | None,
    runs_folder: Path,
    on: str | None,
    jobs: int | None,
    against: tuple[str, ...],
    verbose: bool,  # noqa: FBT001 - click's signature
    asked: Mapping[str, str],
    **given: object,
) -> int:
    """Judge RUN (a folder, a record file, a bundle, or 'last'), a table (CSV, '-': standard input) or a database.

    The verdict is printed, and decides the exit code. Several RUNs, or a FOLDER of runs, are judged in
    processes of this machine (--jobs) or on a cluster (--on): what is printed are the verdicts that change.
    """
    from soakwatch.runs.judge_again import folder_of_records

    if len(runs) > 1 or on is not None or jobs is not None or folder_of_records(runs[0]):
        return _many(runs, plan, values, names, asked, method, runs_folder, on, jobs, against, given)
    return _one(runs[0], plan, values, names, asked, method, runs_folder, against, given, verbose=verbose)


def _many(
    runs: tuple[str, ...],
    plan: Path | None,
    values: tuple[str, ...],
    names: tuple[str, ...],
    asked: Mapping[str, str],
    method: str | None,
    runs_folder: Path,
    on: str | None,
    jobs: int | None,
    against: tuple[str, ...],
    given: Mapping[str, object],
) -> int:
    from soakwatch.cli.judge_many import judge_many
    from soakwatch.core.registry import rule_class
    from soakwatch.core.workers.choose import executor_for
    from soakwatch.plan import load_plan, plan_text
    from soakwatch.runs.judge_again import Rules, records_in
    from soakwatch_rules.rule import Input

    only_one = [f"--{kind}" for kind in asked if kind != "json"]
    options = [*(["--against"] if against else []), *only_one, *given_options(given)]
    if options:
        raise click.UsageError(f"{', '.join(options)}: only valid for one RUN")
    if on is not None and jobs is not None:
        raise click.UsageError("--jobs is for processes of this machine: on a cluster its workers judge")
    for name in names:
        if Input.EARLIER in rule_class(name).spec.inputs:
            raise click.UsageError(f"--rule {name} compares with earlier runs: judge one RUN, with --against")
    for run in runs:
        if is_database(run) or (is_table(run) and not Path(run).is_file()):
            raise click.UsageError(f"{run} is no run: tables and databases are judged one at a time")
    if values and plan is None:
        raise click.UsageError("--set changes the plan of one RUN, or that of --plan: name one for several records")
    given_plan = None if plan is None else load_plan(plan, device=False, values=values)
    rules = Rules(None if given_plan is None else plan_text(given_plan), str(plan or ""), names, _given(method, names))
    records = records_in(runs, runs_folder)
    with executor_for(on, jobs if jobs is None else min(jobs, len(records))) as executor:
        return judge_many(executor, records, rules, Path(asked["json"]) if "json" in asked else None)


def _one(
    run: str,
    plan: Path | None,
    values: tuple[str, ...],
    names: tuple[str, ...],
    asked: Mapping[str, str],
    method: str | None,
    runs_folder: Path,
    against: tuple[str, ...],
    given: Mapping[str, object],
    *,
    verbose: bool,
) -> int:
    from soakwatch.core.console import CommandConsole
    from soakwatch.core.registry import rule_class
    from soakwatch.judge.record_verdict import judge_record
    from soakwatch.plan import load_plan, plan_from_text
    from soakwatch.report.files import write_places
    from soakwatch.report.rendering import Rendering
    from soakwatch.report.terminal import print_verdict
    from soakwatch.runs.catalog import find_run
    from soakwatch_rules.rule import Input

    for name in names:
        if Input.EARLIER in rule_class(name).spec.inputs and not against:
            raise click.UsageError(f"--rule {name} compares with earlier runs: name them with --against RUN")
    unsealed = is_table(run) or is_database(run)
    if unsealed and "attest" in asked:
        raise click.UsageError(f"--attest: {run} has no seal to attest: make a run of it first with soakwatch import")
    places = asked_places(asked, [kind for kind in OF_RUNS if not (unsealed and kind == "attest")])
    given_plan = load_plan(plan, device=False, values=values) if plan is not None else None
    with ExitStack() as stack:
        view = stack.enter_context(_opened(run, runs_folder, names, given))
        if values and given_plan is None:
            text = view.meta("plan")
            if text is None:
                raise click.UsageError(f"--set: {run} has no plan of its own: name one with --plan")
            given_plan = plan_from_text(text, "plan of the run", values=values)
        its_own = not (plan or values or names or method or against or is_database(run) or is_table(run))
        named = str(find_run(run, runs_folder)) if its_own else ""
        earlier = [stack.enter_context(_earlier(other, view, run, runs_folder)) for other in against]
        console = CommandConsole()
        with console.status("judging") as shown:
            verdict = judge_record(
                view,
                given_plan,
                names,
                lambda text: shown.update(f"judging: {text}"),
                earlier,
                given=_given(method, names),
                in_parts=True,
            )
        before = earlier[0] if earlier else None
        failures = write_places(Rendering(view, verdict, before), places, print_report, view.path.parent)
        for failure in failures.values():
            click.echo(f"soakwatch: {failure}", err=True)
        if all(place.file is not None for place in places):
            print_verdict(view, verdict, console, before, named=named, verbose=verbose)
    return verdict.exit_code


def _earlier(other: str, view: RecordView, run: str, runs_folder: Path) -> RecordView:
    """Open a run to compare with. Raises UsageError if it has nothing to compare."""
    from soakwatch.record import RecordView
    from soakwatch.runs.catalog import find_run

    if is_table(other):
        raise click.UsageError(f"--against {other} is a table: make a run of it first with 'soakwatch import {other}'")
    earlier = RecordView.open(find_run(other, runs_folder))
    theirs = sorted(earlier.roles())
    if not set(theirs) & set(view.roles()):
        earlier.close()
        raise click.UsageError(
            f"--against {other} has nothing to compare with {run}: its targets are "
            f"{', '.join(theirs) or 'none'}, not {', '.join(sorted(view.roles())) or 'any'}"
        )
    return earlier


def _given(method: str | None, names: tuple[str, ...]) -> tuple[RulePlan, ...]:
    """The parameters that ``--method`` stands for."""
    from soakwatch.plan.rule_plan import rule_plan

    if method is None:
        return ()
    if names and _STAGES not in names:
        raise click.UsageError(f"--method is of the rule {_STAGES}, which --rule leaves out")
    return (rule_plan(_STAGES, {"method": method}),)


@contextmanager
def _opened(run: str, runs_folder: Path, names: tuple[str, ...], given: Mapping[str, object]) -> Iterator[RecordView]:
    """The record that ``run`` names, or a temporary one made from a table or a database."""
    from soakwatch.record import RecordView
    from soakwatch.transfer.export.bundle import is_bundle, opened_run

    if is_database(run):
        with _of_database(run, names, given) as view:
            yield view
        return
    if not is_table(run) or is_bundle(Path(run)):
        options = given_options(given)
        if options:
            raise click.UsageError(f"{', '.join(options)}: only valid for tables, but {run} is a run")
        with opened_run(run, runs_folder) as found, RecordView.open(found) as view:
            yield view
        return
    import tempfile

    from soakwatch.core.console import CommandConsole
    from soakwatch.core.tables import harmless
    from soakwatch.transfer.importing.files import import_files, stem_of
    from soakwatch.transfer.importing.rule_coverage import growth_of, notes_on_rules

    table_given = options_of(given, growth_of(names))
    with tempfile.TemporaryDirectory(prefix="soakwatch-judge-") as folder:
        with CommandConsole(stderr=True).status("reading") as shown:
            imported = import_files(
                [run], Path(folder) / "run", stem_of(run), table_given, ["soakwatch", "judge", run], shown.update
            )
        for note in (*imported.notes, *notes_on_rules(run, imported.series, names)):
            click.echo(f"note: {harmless(note.removeprefix(f'{run}: '))}", err=True)
        with RecordView.open(Path(folder) / "run") as view:
            yield view


@contextmanager
def _of_database(address: str, names: tuple[str, ...], given: Mapping[str, object]) -> Iterator[RecordView]:
    """A temporary record made from a database; ``soakwatch import`` keeps one."""
    import tempfile

    from soakwatch.core.console import CommandConsole
    from soakwatch.core.tables import harmless
    from soakwatch.record import RecordView
    from soakwatch.transfer.sinks.influxdb.read.command_line import import_database

    notes: list[str] = []
    with tempfile.TemporaryDirectory(prefix="soakwatch-judge-") as folder:
        with CommandConsole(stderr=True).status("reading") as shown:
            import_database(
                address,
                Path(folder) / "run",
                None,
                given,
                names,
                "judge",
                lambda text: shown.update(f"reading {harmless(text)}"),
                notes.append,
            )
        for note in notes:
            click.echo(f"note: {harmless(note)}", err=True)
        with RecordView.open(Path(folder) / "run") as view:
            yield view
