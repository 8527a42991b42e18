"""Show the report of a run, or write it: offline HTML, JSON, JUnit or Markdown."""

from __future__ import annotations

from pathlib import Path

import click

from soakwatch.cli.options import runs_option

_IN_RUN = "in the folder of the run"  # of an option without a file
_TO = "[FILE]"


@click.command(
    epilog="""\b
Examples:
  soakwatch report last
  soakwatch report last --html
  soakwatch report last --html soak.html --against runs/20261114T200000Z-fw-7.1
  soakwatch report runs/20261121T200000Z-fw-7.2 --json verdict.json --junit junit.xml --md report.md
  soakwatch report last --artifacts evidence
\b
An option without FILE writes the file into the folder of the run; FILE '-' is standard output.
Without options the verdict is shown on the terminal. 'soakwatch schema verdict' prints the JSON schema.
The exit code is 0 if everything was written; for the verdict as exit code use 'soakwatch judge'."""
)
@click.argument("run", metavar="RUN")
@click.option("--html", is_flag=False, flag_value=_IN_RUN, metavar=_TO, help="Write the HTML report.")
@click.option("--json", is_flag=False, flag_value=_IN_RUN, metavar=_TO, help="Write verdict.json.")
@click.option("--junit", is_flag=False, flag_value=_IN_RUN, metavar=_TO, help="Write JUnit XML.")
@click.option("--md", is_flag=False, flag_value=_IN_RUN, metavar=_TO, help="Write Markdown.")
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
    html: str | None,
    json: str | None,
    junit: str | None,
    md: str | None,
    against: str | None,
    artifacts: Path | None,
    runs_folder: Path,
    *,
    verbose: bool,
) -> None:
    """Write the report of RUN (a folder, a record file, or 'last')."""
    from contextlib import ExitStack

    from soakwatch.core.console import CommandConsole
    from soakwatch.judge.record_verdict import judge_record
    from soakwatch.record import RecordView
    from soakwatch.report.answer import answer_of
    from soakwatch.report.files import REPORT_FILES, write_files
    from soakwatch.report.html import render_html
    from soakwatch.report.json import render_json
    from soakwatch.report.junit import render_junit
    from soakwatch.report.markdown import render_markdown
    from soakwatch.report.page import open_page
    from soakwatch.report.terminal import print_verdict
    from soakwatch.runs.catalog import find_run
    from soakwatch.runs.setup_changes import changed

    asked = {"html": html, "json": json, "junit": junit, "md": md}
    wanted = {kind: place for kind, place in asked.items() if place is not None}
    with ExitStack() as stack:
        found = find_run(run, runs_folder)
        view = stack.enter_context(RecordView.open(found))
        earlier = None if against is None else stack.enter_context(RecordView.open(find_run(against, runs_folder)))
        if artifacts is not None:
            written = write_files(view, artifacts)
            click.echo(f"wrote {len(written)} files to {artifacts}" if written else "the record contains no files")
            if not wanted:
                return
        verdict = judge_record(view)
        if not wanted:
            print_verdict(view, verdict, CommandConsole(), earlier, named=str(found), verbose=verbose)
            return
        difference = changed(view, earlier)
        render = {
            "html": lambda: render_html(view, verdict, earlier),
            "json": lambda: render_json(verdict, difference, answer_of(open_page(view, verdict, earlier))),
            "junit": lambda: render_junit(verdict, difference),
            "md": lambda: render_markdown(view, verdict, earlier),
        }
        texts = {kind: render[kind]() for kind in wanted}
        folder = view.path.parent
    for kind, place in wanted.items():
        if place == "-":
            click.echo(texts[kind])
            continue
        file = folder / REPORT_FILES[kind] if place == _IN_RUN else Path(place)
        file.write_text(texts[kind], encoding="utf-8")
        click.echo(f"wrote {file}", err="-" in wanted.values())
