"""Show which faults a finished run would have seen, or what rules see of faults that are made now: the fire drill."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from soakwatch.cli.options import runs_option
from soakwatch.core.suggest import hint

_PLACES, _SEED, _LASTS, _REST = 10, 1, "60s", "30s"


@click.command(
    epilog="""\b
Examples:
  soakwatch drill last
  soakwatch drill runs/20261121T200000Z-fw-7.2 --kinds leak,loss --places 20
  soakwatch drill last --seed 7 --json drill.json --markdown drill.md
  soakwatch drill plan.yaml
  soakwatch drill plan.yaml --kinds cpu,kill --lasts 20s --rest 20s --yes
\b
Of a finished RUN: leak, cpu, loss, stall, restart, latency and silence are added in several sizes to the run's own
readings, at places drawn from the seed, and the copy is judged by the rules of the run's plan. The record is not
changed. A size counts as found if it, and all larger ones, are found in nine of ten places.
\b
Of a PLAN (a file .yaml or .yml): runs its sources and rules, and makes the faults that the key 'drill' of a target
allows, one after the other: cpu, leak, kill, link, loss, filesystem, log. It lists them first and asks. Each ends by
itself on the device, also if this command is killed. docs/drill.md says what each does."""
)
@click.argument("subject", metavar="PLAN|RUN")
@click.option("--kinds", metavar="KIND,…", help="Kinds of faults to make.  [all]")
@click.option("--places", type=click.IntRange(1, 1000), help=f"Of a RUN: places of each size.  [default: {_PLACES}]")
@click.option("--seed", type=click.IntRange(0), help=f"Of a RUN: what the places are drawn from.  [default: {_SEED}]")
@click.option("--lasts", metavar="DURATION", help=f"Of a PLAN: how long each fault lasts.  [default: {_LASTS}]")
@click.option("--rest", metavar="DURATION", help=f"Of a PLAN: time before and after each fault.  [default: {_REST}]")
@click.option("--yes", is_flag=True, help="Of a PLAN: do not ask.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write the result as JSON ('-': print it).")
@click.option(
    "--markdown", "markdown_file", type=click.Path(path_type=Path), help="Write the tables ('-': print them)."
)
@runs_option("Folder of runs.")
def command(
    subject: str,
    kinds: str | None,
    places: int | None,
    seed: int | None,
    lasts: str | None,
    rest: str | None,
    json_file: Path | None,
    markdown_file: Path | None,
    runs_folder: Path,
    *,
    yes: bool,
) -> int:
    """Show which faults RUN (a folder, a record file, or 'last') would have seen in its own noise, or break what PLAN
    allows to be broken, and show which rules see it and how soon."""
    from soakwatch.cli.recorded_drill import Output, drill_record
    from soakwatch.runs.catalog import find_run

    if str(json_file) == str(markdown_file) == "-":
        raise click.UsageError("--json and --markdown cannot both be printed: name a file for one")
    output = Output(json_file, markdown_file)
    if Path(subject).suffix in {".yaml", ".yml"}:
        _refuse({"--places": places, "--seed": seed}, f"{subject} is a plan")
        from soakwatch.cli.live_drill import drill_plan
        from soakwatch.engine.drill.faults import LIVE_KINDS

        names = _kinds(kinds, LIVE_KINDS)
        lasts_s, rest_s = _seconds("--lasts", lasts or _LASTS), _seconds("--rest", rest or _REST)
        return drill_plan(Path(subject), names, lasts_s, rest_s, runs_folder, output, sure=yes)
    _refuse({"--lasts": lasts, "--rest": rest, "--yes": yes or None}, f"{subject} is a run")
    from soakwatch.judge.drill.kinds import KIND_NAMES

    chosen = _PLACES if places is None else places
    drill_record(
        find_run(subject, runs_folder), _kinds(kinds, KIND_NAMES), chosen, _SEED if seed is None else seed, output
    )
    return 0


def _refuse(given: dict[str, object], why: str) -> None:
    for option, value in given.items():
        if value is not None:
            raise click.UsageError(f"{option} does not apply: {why}")


def _seconds(option: str, text: str) -> float:
    from soakwatch.core.units import seconds

    try:
        value = seconds(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=option) from None
    if not 1 <= value <= 3600:
        raise click.BadParameter(f"{text}: write a time from 1s to 1h", param_hint=option)
    return value


def _kinds(given: str | None, known: Sequence[str]) -> tuple[str, ...]:
    """The kinds asked for; empty for all. Raises BadParameter for an unknown one."""
    names = tuple(name.strip() for name in (given or "").split(",") if name.strip())
    for name in names:
        if name not in known:
            text = f"unknown kind {name!r}{hint(name, known)}; known: {', '.join(known)}"
            raise click.BadParameter(text, param_hint="--kinds")
    return names
