"""Looks at processes on a terminal, or as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click

from soakwatch.core.formatting import utc
from soakwatch.core.tables import harmless, show_table
from soakwatch.core.units import show_bytes
from soakwatch.diagnose.document import looks_document
from soakwatch.diagnose.kept import process_name
from soakwatch.diagnose.look import Look, look_json
from soakwatch.diagnose.reading import Reading
from soakwatch.diagnose.wording import (
    STACK_COLUMNS,
    absent_words,
    change_words,
    looks_words,
    reading_words,
    signed,
    stacks_words,
)

_SITES, _CHANGES = 10, 6


def show_looks(read: Sequence[tuple[Sequence[Look], Reading]], *, as_json: bool, of_cpu: Sequence[Look] = ()) -> None:
    """Shows the looks at each process with what they show, and the stacks of those ``of_cpu``."""
    if as_json:
        documents = [looks_document(looks, reading) for looks, reading in read]
        click.echo(
            json.dumps(
                {"processes": documents, "cpu": [json.loads(look_json(look)) for look in of_cpu]},
                indent=2,
                ensure_ascii=False,
            )
        )
        return
    for number, (looks, reading) in enumerate(read):
        if number:
            click.echo()
        _show(looks, reading)
    for number, look in enumerate(of_cpu, len(read)):
        if number:
            click.echo()
        stacks = stacks_words(look, _SITES)
        named = f"{look.target} {process_name(look.process)}: {stacks.words}"
        click.echo(harmless(f"{named} ({stacks.detail})" if stacks.detail else named))
        if stacks.rows:
            show_table(STACK_COLUMNS, stacks.rows)


def _show(looks: Sequence[Look], reading: Reading) -> None:
    last = looks[-1]
    name = f"{last.target} {process_name(last.process)}"
    click.echo(harmless(f"{name} (pid {last.pid}, {last.runtime.value}): {reading_words(reading, last.runtime)}"))
    click.echo()
    show_table(
        ("look", "time (UTC)", "resident", "in use", "held", "files", "threads", "stood", "took"),
        [_row(look) for look in looks],
    )
    if reading.sites:
        click.echo("\nWhat grew, the first suspect first")
        rows = [(s.name, signed(s.bytes), f"{s.count:+,}", f"{s.share:.0%}", s.program) for s in reading.sites[:_SITES]]
        show_table(("what", "by", "objects", "share", "by the account of"), rows)
    if reading.difference is not None:
        apart = reading.difference
        changes = [("memory", row.name, change_words(row, in_bytes=True)) for row in apart.mapped[:_CHANGES]]
        changes += [("open files", row.name, change_words(row, in_bytes=False)) for row in apart.files[:_CHANGES]]
        changes += [("threads", row.name, change_words(row, in_bytes=False)) for row in apart.threads[:_CHANGES]]
        if changes:
            click.echo("\nWhat changed from the first look to the last")
            show_table(("of", "kind", "change"), changes)
    click.echo(f"\n{looks_words(looks)}")
    if missing := absent_words(last.absent):
        click.echo(harmless(f"missing: {missing}"))


def _row(look: Look) -> tuple[str, ...]:
    heap = look.heap
    return (
        str(look.number),
        utc(look.time_ns),
        "–" if look.resident is None else show_bytes(look.resident),
        "–" if heap is None else show_bytes(heap.in_use),
        "–" if heap is None else show_bytes(heap.held),
        f"{sum(row.count for row in look.files):,}",
        f"{sum(row.count for row in look.threads):,}",
        "–" if look.cost.stopped_s is None else f"{look.cost.stopped_s * 1e3:.0f} ms",
        f"{look.cost.seconds:.1f} s",
    )
