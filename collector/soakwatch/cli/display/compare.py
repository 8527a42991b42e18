"""The comparison of runs on the terminal: outcomes that differ, figures with their changes, the set-up."""

from __future__ import annotations

import click

from soakwatch.core.formatting import SYMBOLS, utc
from soakwatch.core.tables import harmless, show_table
from soakwatch.core.units import show_seconds
from soakwatch.runs.compare.compared_runs import Compared, OutcomeCell
from soakwatch.runs.compare.figure_rows import FigureChange
from soakwatch_rules.wording.quantities import counted

_MAX_SETUP, _MAX_CELL = 20, 48


def show_comparison(data: Compared) -> None:
    """Print results first, then differences of the set-up."""
    numbers = [str(number + 1) for number in range(len(data.runs))]
    show_table(
        ("", "run", "verdict", "release", "start (UTC)", "length"),
        [
            (
                f"{number} reference" if number == "1" else number,
                run.line.folder.name,
                run.line.verdict or "not judged",
                run.release or "–",
                utc(run.line.begin_ns),
                show_seconds(run.line.seconds or 0.0),
            )
            for number, run in zip(numbers, data.runs, strict=True)
        ],
    )
    _show_targets(data)
    _show_outcomes(data, numbers)
    _show_figures(data, numbers)
    _show_setup(data, numbers)


def _show_targets(data: Compared) -> None:
    for number, targets in enumerate(data.targets):
        for own, theirs in targets.paired:
            click.echo(harmless(f"{own} of run {number + 1} stands for {theirs}"))
        if targets.alone:
            click.echo(harmless(f"nothing in the reference stands for {', '.join(targets.alone)} of run {number + 1}"))


def _show_outcomes(data: Compared, numbers: list[str]) -> None:
    differing = [row for row in data.matrix if row.differs]
    click.echo()
    if not differing:
        click.echo(f"Every rule has the same outcome in all runs ({counted(len(data.matrix), 'line')}).")
        return
    click.echo(f"Outcomes that differ ({len(differing)} of {len(data.matrix)})")
    show_table(
        ("rule", "target", *numbers),
        [(row.rule, row.target, *map(_outcome, row.cells)) for row in differing],
    )


def _outcome(cell: OutcomeCell) -> str:
    return "–" if cell.outcome is None else f"{SYMBOLS[cell.outcome]} {cell.outcome.value}"


def _show_figures(data: Compared, numbers: list[str]) -> None:
    if not data.figures:
        click.echo("\nNo figure is in two of these runs.")
        return
    phases = "; ".join(dict.fromkeys(data.phases[1:]))
    click.echo("\nFigures of the phases under load; changes are over parts of the same phase time")
    click.echo(f"({phases}), with their 95 % interval")
    heads: list[str] = ["figure", numbers[0]]
    for number in numbers[1:]:
        heads += [number, "change", "result"]
    rows = []
    for row in data.figures:
        cells = [f"{row.head} {row.of}".rstrip(), row.cells[0]]
        for cell, change in zip(row.cells[1:], row.changes[1:], strict=True):
            cells += [cell, *_change(change)]
        rows.append(tuple(cells))
    show_table(tuple(heads), rows)
    click.echo("A result is proven for these runs, beyond 3 %; how much runs of one release differ, only several show.")


def _change(change: FigureChange | None) -> tuple[str, str]:
    return ("–", "") if change is None else (change.words, change.result)


def _show_setup(data: Compared, numbers: list[str]) -> None:
    lines = [*data.setup, *data.partly]
    click.echo()
    if not lines:
        click.echo("The set-ups are the same, as far as they were recorded.")
        return
    click.echo(f"Set-up that differs ({counted(len(lines) + data.unlisted, 'line')})")
    show_table(
        ("setting", *numbers),
        [(f"{line.of} {line.head}", *(cell[:_MAX_CELL] for cell in line.cells)) for line in lines[:_MAX_SETUP]],
    )
    left = len(lines) + data.unlisted - _MAX_SETUP
    if left > 0:
        click.echo(f"{counted(left, 'more line')}: see --json, or the page Compare of 'soakwatch serve'")
