"""``soakwatch drill RUN``: estimate, progress, and tables."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import click

from soakwatch.cli.display.counting import counting
from soakwatch.core.tables import harmless, show_table
from soakwatch.core.units import show_seconds
from soakwatch.judge.drill import tables
from soakwatch.judge.drill.trials import Drill
from soakwatch.record import RecordView

_LINE_EVERY_S = 20.0


@dataclass(frozen=True, slots=True)
class Output:
    """Files to write besides the table, or None; "-" is standard output instead of the table."""

    json: Path | None
    markdown: Path | None

    @property
    def printed(self) -> bool:
        """Whether one of them goes to standard output."""
        return "-" in {str(self.json), str(self.markdown)}

    def write(self, file: Path | None, text: str) -> None:
        """Write one of them, if it was asked for."""
        if file is None:
            return
        if str(file) == "-":
            click.echo(text, nl=False)
        else:
            file.write_text(text, encoding="utf-8")


def drill_record(path: Path, kinds: tuple[str, ...], places: int, seed: int, output: Output) -> None:
    """Try the faults on a record, and show which were found."""
    with RecordView.open(path) as view:
        name = view.meta("run") or path.name
        click.echo(harmless(f"reading {name}"), err=True)
        drill = Drill(view, seed, places, kinds)
        estimate = drill.prepare()
        takes = show_seconds(max(1.0, round(estimate.seconds)))
        click.echo(f"at most {estimate.copies} copies are judged, {takes} of a processor", err=True)
        with counting(max(1, estimate.copies), _LINE_EVERY_S) as progress:
            results = list(drill.run(progress.one_more))
    stretch = show_seconds(drill.ground.stretch.seconds)
    title = f"{name}: what it would have seen, {places} places in {stretch}, seed {seed}"
    document = tables.document(name, seed, places, results)
    output.write(output.json, json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    output.write(output.markdown, tables.markdown(title, results))
    if output.printed:
        return
    click.echo(harmless(title))
    click.echo()
    show_table(tables.HEAD, tables.rows(results))
    click.echo()
    show_table(tables.TRIED_HEAD, tables.tried_rows(results))
    for note in tables.notes(results):
        click.echo(harmless(f"note: {note}"))
