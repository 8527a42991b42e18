"""Show the report of a run, or write it: HTML, JSON, JUnit, Markdown, CTRF, an attestation, a badge."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from soakwatch.cli.options import runs_option
from soakwatch.cli.report_options import print_report, report_options


@click.command(
    epilog="""\b
Examples:
  soakwatch report last
  soakwatch report last --html
  soakwatch report last --html soak.html --against runs/20261114T200000Z-fw-7.1
  soakwatch report runs/20261121T200000Z-fw-7.2 --json verdict.json --junit junit.xml --md report.md
  soakwatch report last --ctrf ctrf.json --attest test-result.intoto.json --badge soak.svg
  soakwatch report last --reports out
  soakwatch report last --artifacts evidence
\b
An option without FILE writes the file into the folder of the run; FILE '-' is standard output, and a folder gets the
file by its usual name. An attestation needs a sealed record (docs/ci.md).
Without options the verdict is shown on the terminal. 'soakwatch schema verdict' prints the JSON schema.
The exit code is 0 if everything was written; for the verdict as exit code use 'soakwatch judge'."""
)
@click.argument("run", metavar="RUN")
@report_options(in_run=True)
@click.option("--against", metavar="RUN", help="Earlier run to compare with: what differs is listed.")
@click.option(
    "--artifacts",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write the files of the record (script output, captures) to this folder.",
)
@click.option("--verbose", is_flag=True, help="Show on a terminal also what passed, was undecided, or did not apply.")
@runs_option()
def command(
    run: str,
    against: str | None,
    artifacts: Path | None,
    runs_folder: Path,
    *,
    asked: Mapping[str, str],
    verbose: bool,
) -> None:
    """Write the report of RUN (a folder, a record file, or 'last')."""
    from contextlib import ExitStack

    from soakwatch.core.console import CommandConsole
    from soakwatch.core.errors import SoakwatchError
    from soakwatch.judge.record_verdict import judge_record
    from soakwatch.record import RecordView
    from soakwatch.report.files import places_of, write_files, write_places
    from soakwatch.report.rendering import Rendering
    from soakwatch.report.terminal import print_verdict
    from soakwatch.runs.catalog import find_run

    with ExitStack() as stack:
        found = find_run(run, runs_folder)
        view = stack.enter_context(RecordView.open(found))
        earlier = None if against is None else stack.enter_context(RecordView.open(find_run(against, runs_folder)))
        folder = view.path.parent
        places = places_of(asked, folder)
        if artifacts is not None:
            written = write_files(view, artifacts)
            click.echo(f"wrote {len(written)} files to {artifacts}" if written else "the record contains no files")
            if not places:
                return
        verdict = judge_record(view, in_parts=True)
        if not places:
            print_verdict(view, verdict, CommandConsole(), earlier, named=str(found), verbose=verbose)
            return
        failures = write_places(Rendering(view, verdict, earlier), places, print_report, folder)
    for place in places:
        if place.file is not None and place not in failures:
            click.echo(f"wrote {place.file}", err=any(other.file is None for other in places))
    wanted = [failure for place, failure in failures.items() if place.kind != "attest" or "attest" in asked]
    if wanted:
        raise SoakwatchError("; ".join(wanted))
    for failure in failures.values():  # all reports were asked for, and this record has no attestation
        click.echo(f"note: {failure}", err=True)
