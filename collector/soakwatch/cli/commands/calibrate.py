"""Records the generators of a plan looped back without the device, and keeps what they can send."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from soakwatch.core.errors import EXIT_INCONCLUSIVE, EXIT_PASS
from soakwatch.runs.catalog import DEFAULT_RUNS

if TYPE_CHECKING:
    from soakwatch.plan import Plan


@click.command(
    epilog="""\b
Examples:
  soakwatch calibrate plan.yaml
  soakwatch calibrate plan.yaml --for 2m --levels 25%,50%,75%,100%
  soakwatch calibrate plan.yaml -o lab/generators.reference.yaml
\b
Levels go above 100% so that a run at full load can show a reserve. A generator that refuses one keeps the level before.
Runs of the plan then state their headroom (RFC 8219 asks for a reserve; rule generator_health, 10 % by default), and
are inconclusive where the generator had none. The record is one like others: soakwatch report last
Exit codes: 0 every generator has a ceiling, 2 usage or plan error, 3 one sent nothing, or lost too much of it, 4 the
monitor itself broke."""
)
@click.argument("plan", type=click.Path(path_type=Path))
@click.option("--for", "length", default="60s", show_default=True, help="How long each level is held, 15s at least.")
@click.option(
    "--levels",
    default="50%,100%,125%",
    show_default=True,
    help="What generators with drive: true are told to send, of their full rate.",
)
@click.option(
    "--runs",
    "runs_folder",
    type=click.Path(path_type=Path),
    default=DEFAULT_RUNS,
    show_default=True,
    help="Folder of all runs.",
)
@click.option(
    "-o",
    "output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File of the reference (default: the plan's name with .reference.yaml, beside it).",
)
def command(plan: Path, length: str, levels: str, runs_folder: Path, output: Path | None) -> int:
    """Run only the generators of PLAN, looped back without the device, and write down the most that they send."""
    from soakwatch.engine.calibrate import calibration_of, length_of, levels_of
    from soakwatch.judge.calibration import beside
    from soakwatch.plan import load_plan

    try:
        length_s = length_of(length)
    except ValueError as error:
        raise click.UsageError(f"--for: {error}") from None
    try:
        wanted = levels_of(levels)
    except ValueError as error:
        raise click.UsageError(f"--levels: {error}") from None
    loaded = load_plan(plan, device=False)
    return _calibrate(loaded, calibration_of(loaded, length_s, wanted), runs_folder, output or beside(plan))


def _calibrate(plan: Plan, calibration: Plan, runs: Path, file: Path) -> int:
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
    how = "driven through its levels" if driven_of(calibration) else "recorded as it sends by itself"
    click.echo(
        f"calibrating {names}, {how}, for {show_seconds(calibration.duration_s)}: the ports must be looped back to "
        "each other, without the device between them"
    )
    clock = SteadyClock()
    folder = new_folder(runs, calibration.name, clock.now_ns())
    course, record = begin(calibration, folder, clock, ["soakwatch", *sys.argv[1:]], stop_on_fail=False)
    try:
        run_to_the_end(course, record, clock, verdict_shown=False)
    except PlanRefusedError:
        discard(folder)
        raise
    with RecordView.open(folder) as view:
        found = calibrated(calibration, view)
    for one in found:
        for sentence in sentences(one):
            click.echo(sentence)
        highest = max((phase.load or 0.0) for phase in calibration.phases)
        if highest and followed(one, highest):
            click.echo(
                f"{one.target.name}: that is at the highest level, {highest:.0%}: it may send more; a run at full load "
                "needs a ceiling above it to state a reserve"
            )
    sources = {target.name: fingerprint(target) for target in generators_of(plan)}
    kept = {one.target.name: (sources[one.target.name], one.ceilings) for one in found if one.ceilings}
    if kept:
        write_reference(file, datetime.now(UTC), folder.name, version("soakwatch"), kept)
        click.echo(f"reference {file}")
    missing = [one.target.name for one in found if not one.ceilings]
    if missing:
        told = "nothing is written" if not kept else "the others are written"
        click.echo(f"soakwatch: inconclusive: {', '.join(missing)} has no ceiling; {told}", err=True)
    return EXIT_INCONCLUSIVE if missing else EXIT_PASS
