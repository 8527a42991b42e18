"""Measure the highest load that the generators of a plan can send, looped back without the device."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from soakwatch.cli.options import LabelCommand, group_option, label_option, runs_option, set_option
from soakwatch.cli.outlet import Terminal, outlives_terminal
from soakwatch.core.errors import EXIT_INCONCLUSIVE, EXIT_PASS

if TYPE_CHECKING:
    from soakwatch.plan import Plan


@click.command(
    cls=LabelCommand,
    epilog="""\b
Examples:
  soakwatch calibrate plan.yaml
  soakwatch calibrate plan.yaml --for 2m --levels 25%,50%,75%,100%
  soakwatch calibrate plan.yaml -o lab/generators.reference.yaml
\b
Levels go above 100% so that a run at full load can show a reserve. A generator that refuses a level keeps the previous
one. Runs of the plan then report the headroom of their generators (RFC 8219 asks for a reserve; rule generator_health,
10 % by default), and are inconclusive if a generator had none. The calibration is a run itself: soakwatch report last
Exit codes: 0 every generator has a ceiling, 2 usage or plan error, 3 a generator sent nothing or lost too much of it,
4 the monitor itself failed.""",
)
@click.argument("plan", type=click.Path(path_type=Path))
@click.option("--for", "length", default="60s", show_default=True, help="Duration of each level, at least 15s.")
@click.option(
    "--levels",
    default="50%,100%,125%",
    show_default=True,
    help="Levels for generators with drive: true, as shares of their full rate.",
)
@label_option("Label of the calibration, such as testbed=rack-3; replaces the plan's of the same name.")
@runs_option("Folder of all runs.")
@group_option("this run")
@click.option(
    "-o",
    "output",
    type=click.Path(path_type=Path, dir_okay=False),
    show_default="PLAN with the suffix .reference.yaml",
    help="Reference file to write.",
)
@set_option
@outlives_terminal
def command(
    terminal: Terminal,
    plan: Path,
    values: tuple[str, ...],
    length: str,
    levels: str,
    labels: dict[str, str],
    runs_folder: Path,
    group: str,
    output: Path | None,
) -> int:
    """Run only the generators of PLAN, looped back without the device, and record the highest load they can send."""
    from soakwatch.engine.calibrate import calibration_of, length_of, levels_of
    from soakwatch.judge.calibration import reference_path
    from soakwatch.plan import load_plan

    try:
        length_s = length_of(length)
    except ValueError as error:
        raise click.UsageError(f"--for: {error}") from None
    try:
        wanted = levels_of(levels)
    except ValueError as error:
        raise click.UsageError(f"--levels: {error}") from None
    loaded = load_plan(plan, device=False, values=values).labelled(labels)
    return _calibrate(
        terminal,
        loaded,
        calibration_of(loaded, length_s, wanted),
        runs_folder,
        group,
        output or reference_path(plan),
    )


def _calibrate(terminal: Terminal, plan: Plan, calibration: Plan, runs: Path, group: str, file: Path) -> int:
    from datetime import UTC, datetime
    from importlib.metadata import version

    from soakwatch.cli.foreground import run_to_the_end
    from soakwatch.core.clock import SteadyClock
    from soakwatch.core.units import show_seconds
    from soakwatch.engine.calibrate import calibrated, driven_of, followed, generators_of, sentences
    from soakwatch.engine.first_polls import PlanRefusedError
    from soakwatch.engine.start import begin, discard
    from soakwatch.judge.calibration import fingerprint, write_reference
    from soakwatch.record import RecordView
    from soakwatch.runs.catalog import new_folder

    names = ", ".join(target.name for target in generators_of(plan))
    how = "driven through the levels" if driven_of(calibration) else "observed without being driven"
    click.echo(
        f"calibrating {names}, {how}, for {show_seconds(calibration.duration_s)}: the ports must be connected to "
        "each other, without the device between them"
    )
    clock = SteadyClock()
    folder = new_folder(runs, calibration.name, clock.now_ns())
    course, record = begin(calibration, folder, clock, ["soakwatch", *sys.argv[1:]], stop_on_fail=False, group=group)
    try:
        run_to_the_end(terminal, course, record, clock, verdict_shown=False)
    except PlanRefusedError:
        discard(folder)
        raise
    with RecordView.open(folder) as view:
        results = calibrated(calibration, view)
    for result in results:
        for sentence in sentences(result):
            click.echo(sentence)
        highest = max(phase.load if isinstance(phase.load, float) else 0.0 for phase in calibration.phases)
        if highest and followed(result, highest):
            click.echo(
                f"{result.target.name}: reached at the highest level, {highest:.0%}, so it may be able to send more; "
                "to show a reserve at full load, calibrate with higher --levels"
            )
    sources = {target.name: fingerprint(target) for target in generators_of(plan)}
    measured = {
        result.target.name: (sources[result.target.name], result.ceilings) for result in results if result.ceilings
    }
    if measured:
        write_reference(file, datetime.now(UTC), folder.name, version("soakwatch"), measured)
        click.echo(f"reference {file}")
    missing = [result.target.name for result in results if not result.ceilings]
    if missing:
        outcome = "the ceilings of the others are written" if measured else "nothing is written"
        click.echo(f"soakwatch: inconclusive: no ceiling measured for {', '.join(missing)}; {outcome}", err=True)
    return EXIT_INCONCLUSIVE if missing else EXIT_PASS
