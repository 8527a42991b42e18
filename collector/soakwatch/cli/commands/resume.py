"""Goes on with a run whose monitor was killed; the gap is an event and every poll lost in it is counted."""

from __future__ import annotations

from pathlib import Path

import click

from soakwatch.cli.options import StoppingCommand, chosen, stop_option
from soakwatch.runs.catalog import DEFAULT_RUNS


@click.command(
    cls=StoppingCommand,
    epilog="""\b
Examples:
  soakwatch resume last
  soakwatch resume runs/20261121T200000Z-fw-7.2
\b
The planned end stays where it was: what the gap took is not added. A run whose planned end has passed
is closed and judged with what it has.
From another terminal: soakwatch watch RUN shows it, soakwatch stop RUN ends it.""",
)
@click.argument("run", metavar="RUN")
@click.option(
    "--runs",
    "runs_folder",
    type=click.Path(path_type=Path),
    default=DEFAULT_RUNS,
    show_default=True,
    help="Folder in which RUN is looked up.",
)
@click.option("--no-web", is_flag=True, help="Serve no page and no API while the run goes on.")
@stop_option
def command(run: str, runs_folder: Path, no_web: bool, stop_on_fail: tuple[str, ...]) -> int:  # noqa: FBT001 - click's signature
    """Go on with RUN (a folder, a record file, or 'last') until its planned end; then judge it."""
    from soakwatch.cli.foreground import run_to_the_end
    from soakwatch.core.errors import RecordError
    from soakwatch.engine.start import resume
    from soakwatch.runs.catalog import find_run

    any_rule, stop_rules = chosen(stop_on_fail)
    folder = find_run(run, runs_folder)
    if folder.is_file():
        folder = folder.parent
    if not (folder / "record.sqlite").is_file():
        raise RecordError(f"{folder} holds no record.sqlite: only a run in its own folder can go on")
    course, record, clock = resume(folder, stop_on_fail=any_rule, stop_rules=stop_rules)
    return run_to_the_end(course, record, clock, web=None if no_web else course.plan.web)
