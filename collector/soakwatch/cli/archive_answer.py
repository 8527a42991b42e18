"""What ``soakwatch query`` prints: a table with units, CSV or JSON with bare numbers."""

from __future__ import annotations

import csv
import itertools
import json
import sys
from collections.abc import Sequence

import click

from soakwatch.core.formatting import no_formula, number, quantity, share_text
from soakwatch.core.tables import harmless, show_table
from soakwatch.transfer.archive.questions import UNIT, Found
from soakwatch.transfer.archive.tables import Value

_SHARES = frozenset({"coverage", "lowest coverage"})
_MOST_TOLD = 10


def show_answer(found: Found, format_: str, limit: int) -> None:
    """Prints the rows of an answer, at most ``limit`` of a table, and tells what is not known."""
    if format_ == "json":
        _json(found)
    elif format_ == "csv":
        _csv(found)
    else:
        _table(found, limit)
    for text in found.unknown[:_MOST_TOLD]:
        click.echo(harmless(f"not known: {text}"), err=True)
    if len(found.unknown) > _MOST_TOLD:
        click.echo(f"not known: {len(found.unknown) - _MOST_TOLD} more", err=True)


def _json(found: Found) -> None:
    click.echo("[", nl=False)
    for place, row in enumerate(found.rows):
        line = json.dumps(dict(zip(found.columns, row, strict=True)), ensure_ascii=False, default=str)
        click.echo(f"{',' if place else ''}\n {line}", nl=False)
    click.echo("\n]")


def _csv(found: Found) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([no_formula(harmless(name)) for name in found.columns])
    for row in found.rows:
        writer.writerow([no_formula(harmless(each)) if isinstance(each, str) else each for each in row])


def _table(found: Found, limit: int) -> None:
    rows = list(itertools.islice(found.rows, limit))
    more = sum(1 for _ in found.rows)
    if not rows:
        click.echo("no row: nothing in the archive answers this")
        return
    unit = found.columns.index(UNIT) if UNIT in found.columns and found.in_unit else None
    kept = [place for place in range(len(found.columns)) if place != unit]
    cells = [[_cell(found, row, place, None if unit is None else row[unit]) for place in kept] for row in rows]
    show_table([found.columns[place] for place in kept], cells)
    if more:
        click.echo(f"and {more} more rows: --limit {limit + more} shows all, --format csv writes them")


def _cell(found: Found, row: Sequence[Value], place: int, unit: Value) -> str:
    value, name = row[place], found.columns[place]
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        if name in found.in_unit and isinstance(unit, str):
            return quantity(float(value), unit)
        return share_text(float(value)) if name in _SHARES else number(float(value))
    return str(value)
