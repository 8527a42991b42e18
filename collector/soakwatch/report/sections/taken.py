"""What was taken of processes under suspicion: the looks, what they show, what grew between them, what they cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from soakwatch.core.formatting import utc
from soakwatch.core.units import show_bytes
from soakwatch.diagnose.compare import Change, Grown
from soakwatch.diagnose.kept import process_name
from soakwatch.diagnose.look import Look
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
from soakwatch.report.blocks import HTML, Block, ReportCell, ReportColumn, Table, Text
from soakwatch.report.looks import read_looks
from soakwatch.report.page import Page

ORDER = 21
TITLE = "What was taken"
ALWAYS = True
OPEN = True
_SITES, _BRIEF = 10, 3


def blocks(page: Page) -> Sequence[Block] | None:
    """For each process what its looks show and what grew; None if none was taken."""
    shown: list[Block] = []
    for each in read_looks(page.source, page.load):
        looks, read = each.looks, each.reading
        words, name = reading_words(read, looks[-1].runtime), f"{each.target} {process_name(each.process)}"
        missing = absent_words([each for look in looks[-1:] for each in look.absent])
        detail = f"{looks_words(looks)}{f'; missing: {missing}' if missing else ''}"
        shown.append(Text(words, label=name, detail=detail))
        shown.append(_looks(name, looks))
        if (grown := _grown(read, looks)) is not None:
            shown.append(grown)
        if (changes := _changes(name, read)) is not None:
            shown.append(changes)
    for look in page.looks:
        if look.of_cpu:
            shown += _stacks(look)
    return shown or None


def _stacks(look: Look) -> list[Block]:
    """Where CPU time went at a spike."""
    name = f"{look.target} {process_name(look.process)}"
    stacks = stacks_words(look, _SITES)
    shown: list[Block] = [Text(stacks.words, label=name, detail=stacks.detail)]
    if stacks.rows:
        columns = tuple(ReportColumn(each, "number" if number else "name") for number, each in enumerate(STACK_COLUMNS))
        shown.append(Table(f"CPU time of {name}", columns, [list(row) for row in stacks.rows], brief=_BRIEF))
    return shown


def _looks(name: str, looks: Sequence[Look]) -> Table:
    columns = (
        ReportColumn("look", "number"),
        ReportColumn("time (UTC)", "time"),
        ReportColumn("resident", "number"),
        ReportColumn("in use", "number"),
        ReportColumn("held by the allocator", "number"),
        ReportColumn("files", "number"),
        ReportColumn("threads", "number"),
        ReportColumn("process stood", "number"),
        ReportColumn("took", "number"),
    )
    rows = [
        [
            str(look.number),
            utc(look.time_ns),
            _bytes(look.resident),
            _bytes(None if look.heap is None else look.heap.in_use),
            _bytes(None if look.heap is None else look.heap.held),
            f"{sum(row.count for row in look.files):,}",
            f"{sum(row.count for row in look.threads):,}",
            "–" if look.cost.stopped_s is None else f"{look.cost.stopped_s * 1e3:.0f} ms",
            f"{look.cost.seconds:.1f} s",
        ]
        for look in looks
    ]
    return Table(f"Looks at {name}", columns, rows, HTML)


def _grown(read: Reading, looks: Sequence[Look]) -> Table | None:
    """The suspects of a leak; of anything else nobody is named."""
    if not read.sites:
        return None
    columns = (
        ReportColumn("what grew", "name"),
        ReportColumn("by", "number"),
        ReportColumn("objects", "number"),
        ReportColumn("share", "number"),
        ReportColumn("by the account of"),
    )
    rows = [_row(site) for site in read.sites[:_SITES]]
    name = process_name(looks[-1].process)
    return Table(f"What grew in {name}, the first suspect first", columns, rows, brief=_BRIEF)


def _row(site: Grown) -> Sequence[ReportCell | str]:
    return site.name, signed(site.bytes), f"{site.count:+,}", f"{site.share:.0%}", site.program


def _changes(name: str, read: Reading) -> Table | None:
    apart = read.difference
    if apart is None:
        return None
    rows = [
        *_change_rows("memory", apart.mapped, in_bytes=True),
        *_change_rows("open files", apart.files, in_bytes=False),
        *_change_rows("threads", apart.threads, in_bytes=False),
    ]
    columns = (ReportColumn("of"), ReportColumn("kind", "name"), ReportColumn("from the first look to the last"))
    return Table(f"What changed in {name}", columns, rows, HTML) if rows else None


def _change_rows(what: str, changes: Iterable[Change], *, in_bytes: bool) -> list[list[str]]:
    return [[what, change.name, change_words(change, in_bytes=in_bytes)] for change in changes]


def _bytes(value: int | None) -> str:
    return "–" if value is None else show_bytes(value)
