"""The fire drill: which faults a finished run would have seen, or what its rules see of faults that are made now."""

from __future__ import annotations

from pathlib import Path

import click

from soakwatch.cli.options import runs_option
from soakwatch.core.suggest import hint

_PLACES = 10


@click.command(
    epilog="""\b
Examples:
  soakwatch drill last
  soakwatch drill runs/20261121T200000Z-fw-7.2 --kinds leak,loss --places 20
  soakwatch drill last --seed 7 --json drill.json --markdown drill.md
\b
Kinds of a finished run: leak, cpu, loss, stall, restart, latency, silence. Each is added in several sizes to the run's
own readings at places drawn from the seed, and the copy is judged by the rules of the run's plan; the record is not
changed. A size counts as found if it, and all larger ones, are found in nine of ten places. docs/drill.md says what
each kind changes."""
)
@click.argument("run", metavar="RUN")
@click.option("--kinds", metavar="KIND,…", help="Kinds of faults to try.  [all]")
@click.option(
    "--places", type=click.IntRange(1, 1000), default=_PLACES, show_default=True, help="Places of each kind and size."
)
@click.option(
    "--seed", type=click.IntRange(0), default=1, show_default=True, help="Number that the places are drawn from."
)
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write the result as JSON ('-': print it).")
@click.option(
    "--markdown", "markdown_file", type=click.Path(path_type=Path), help="Write the tables ('-': print them)."
)
@runs_option()
def command(
    run: str,
    kinds: str | None,
    places: int,
    seed: int,
    json_file: Path | None,
    markdown_file: Path | None,
    runs_folder: Path,
) -> None:
    """Show which faults RUN (a folder, a record file, or 'last') would have seen: how large a leak, a CPU spike, a loss,
    a stall, a restart, a rise of the latency or a silence has to be to be found in the noise of this very run."""
    from soakwatch.cli.recorded_drill import Output, drill_record
    from soakwatch.runs.catalog import find_run

    if str(json_file) == str(markdown_file) == "-":
        raise click.UsageError("--json and --markdown cannot both be printed: name a file for one")
    drill_record(find_run(run, runs_folder), _kinds(kinds), places, seed, Output(json_file, markdown_file))


def _kinds(given: str | None) -> tuple[str, ...]:
    """The kinds that are asked for; none for all. Raises BadParameter for an unknown one."""
    from soakwatch.judge.drill.kinds import KIND_NAMES

    names = tuple(name.strip() for name in (given or "").split(",") if name.strip())
    for name in names:
        if name not in KIND_NAMES:
            known = ", ".join(KIND_NAMES)
            raise click.BadParameter(
                f"unknown kind {name!r}{hint(name, KIND_NAMES)}; known: {known}", param_hint="--kinds"
            )
    return names
