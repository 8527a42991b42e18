"""Resume a run whose monitor was killed; the gap is recorded as an event, and its missed polls are counted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from soakwatch.cli.options import StoppingCommand, parse_stop_on_fail, runs_option, sign_option, stop_option
from soakwatch.cli.outlet import Terminal, outlives_terminal
from soakwatch.cli.report_options import asked_places, report_options
from soakwatch.cli.take_over import take_over_option, words_of_process


@click.command(
    cls=StoppingCommand,
    epilog="""\b
Examples:
  soakwatch resume last
  soakwatch resume runs/20261121T200000Z-fw-7.2
  soakwatch resume last --junit out/junit.xml --md out/summary.md
  soakwatch resume last --check && echo "something is left to be done"
\b
The planned end does not change: the run is not extended by the gap. A run whose planned end has passed
is closed and judged by what was recorded. If the monitor was killed while it judged, or before it had written the
reports and told hooks, recipients and sinks, that is made up for: each is told once. What it had just begun to run or
to send may have happened, and is not done again: resume says so. Reports that the run was told to write elsewhere
(--junit FILE) are written if resume is told so too.
From another terminal: soakwatch watch RUN shows it, soakwatch stop RUN ends it.""",
)
@click.argument("run", metavar="RUN")
@runs_option()
@click.option("--no-web", is_flag=True, help="Do not serve the live page and its API.")
@sign_option
@click.option("--check", is_flag=True, help="Only say whether RUN can be resumed: exit code 0, or 2 and why not.")
@stop_option
@report_options()
@take_over_option
@outlives_terminal
def command(
    terminal: Terminal,
    run: str,
    runs_folder: Path,
    no_web: bool,  # noqa: FBT001 - click's signature
    sign_with: Path | None,
    timestamp: str,
    check: bool,  # noqa: FBT001
    stop_on_fail: tuple[str, ...],
    asked: Mapping[str, str],
    taken_over: Path | None,
) -> int:
    """Resume RUN (a folder, a record file, or 'last') until its planned end, then judge it."""
    from soakwatch.cli.foreground import resume_to_the_end
    from soakwatch.core.errors import RecordError
    from soakwatch.engine.start import check_resumable
    from soakwatch.runs.catalog import find_run
    from soakwatch.runs.sealing import Sealing

    any_rule, stop_rules = parse_stop_on_fail(stop_on_fail)
    sealing = Sealing(sign_with, timestamp)
    sealing.try_out()
    places = asked_places(asked)
    folder = taken_over or find_run(run, runs_folder)
    if folder.is_file():
        folder = folder.parent
    if not (folder / "record.sqlite").is_file():
        raise RecordError(f"{folder} contains no record.sqlite: only a run in its own folder can be resumed")
    if check:
        click.echo(check_resumable(folder))
        return 0
    return resume_to_the_end(
        terminal,
        folder,
        no_web=no_web,
        stop_on_fail=any_rule,
        stop_rules=stop_rules,
        sealing=sealing,
        words=words_of_process(),
        places=places,
    )
