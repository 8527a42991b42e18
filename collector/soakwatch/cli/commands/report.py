"""Write the report of a run as offline HTML, JSON, JUnit or Markdown, or show it on the terminal."""

from __future__ import annotations

from pathlib import Path

import click

from soakwatch.cli.options import runs_option


@click.command(
    epilog="""\b
Examples:
  soakwatch report last
  soakwatch report last --html soak.html --against runs/20261114T200000Z-fw-7.1
  soakwatch report runs/20261121T200000Z-fw-7.2 --json verdict.json --junit junit.xml --md report.md
  soakwatch report last --artifacts evidence
\b
Without options the verdict is shown on the terminal. 'soakwatch schema verdict' prints the JSON schema.
The exit code is 0 if everything was written; for the verdict as exit code use 'soakwatch judge'."""
)
@click.argument("run", metavar="RUN")
@click.option("--html", "html_file", type=click.Path(path_type=Path), help="Write the HTML report to this file.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write verdict.json to this file.")
@click.option("--junit", "junit_file", type=click.Path(path_type=Path), help="Write JUnit XML to this file.")
@click.option("--md", "md_file", type=click.Path(path_type=Path), help="Write Markdown to this file.")
@click.option("--against", metavar="RUN", help="Earlier run to compare with: what differs is listed.")
@click.option(
    "--artifacts",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write the files of the record (script output, captures) to this folder.",
)
@runs_option()
def command(
    run: str,
    html_file: Path | None,
    json_file: Path | None,
    junit_file: Path | None,
    md_file: Path | None,
    against: str | None,
    artifacts: Path | None,
    runs_folder: Path,
) -> None:
    """Write the report of RUN (a folder, a record file, or 'last')."""
    from contextlib import ExitStack

    from soakwatch.core.console import CommandConsole
    from soakwatch.judge.record_verdict import judge_record
    from soakwatch.record import RecordView
    from soakwatch.report.artifacts import write_files
    from soakwatch.report.html import render_html
    from soakwatch.report.json import render_json
    from soakwatch.report.junit import render_junit
    from soakwatch.report.markdown import render_markdown
    from soakwatch.report.terminal import print_verdict
    from soakwatch.runs.catalog import find_run
    from soakwatch.runs.setup_changes import changed

    wanted = any((html_file, json_file, junit_file, md_file))
    with ExitStack() as stack:
        view = stack.enter_context(RecordView.open(find_run(run, runs_folder)))
        earlier = None if against is None else stack.enter_context(RecordView.open(find_run(against, runs_folder)))
        if artifacts is not None:
            written = write_files(view, artifacts)
            click.echo(f"wrote {len(written)} files to {artifacts}" if written else "the record contains no files")
            if not wanted:
                return
        verdict = judge_record(view)
        if not wanted:
            print_verdict(view, verdict, CommandConsole(), earlier)
            return
        difference = changed(view, earlier)
        texts = (
            (html_file, render_html(view, verdict, earlier) if html_file else ""),
            (json_file, render_json(verdict, difference)),
            (junit_file, render_junit(verdict, difference)),
            (md_file, render_markdown(view, verdict, earlier) if md_file else ""),
        )
    for file, text in texts:
        if file is not None:
            file.write_text(text, encoding="utf-8")
            click.echo(f"wrote {file}")
