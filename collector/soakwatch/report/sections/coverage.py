"""How many of the due polls of each source were answered, and when they were not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from soakwatch.core.formatting import number, share_text, source_name, utc, zoom_of
from soakwatch.core.units import show_seconds
from soakwatch.record.model import source_label
from soakwatch.report import losses
from soakwatch.report.blocks import BRIEF, Block, Cell, Column, Format, Layout, Table, Text
from soakwatch.report.losses import Loss, cells_of, losses_of, within
from soakwatch.report.page import Page
from soakwatch.report.timeline import around
from soakwatch_model.case import Ledger
from soakwatch_model.finding import Mark
from soakwatch_model.window import Window
from soakwatch_rules.wording.polls import lost_polls

ORDER = 30
TITLE = "Coverage"
_CELLS, _MAX_LISTED, _MAX_LOSSES, _BRIEF, _MARKDOWN_LINES = 600, 8, 2000, 40, 4
_WORDS = {
    "ok": "answered",
    "failed": "the source answered with an error, or not at all",
    "requests lost": "answered in part: requests were lost on the way",
    "timeout": "no answer in time",
    "overrun": "previous poll still running",
    "missed": "the monitor was late",
    "held back": "not polled: a failing source is polled less often",
    "gap": "the monitor was not running",
}


@dataclass(frozen=True, slots=True)
class Row:
    """The account of one source in words, its strip, and the stretches in which it lost polls with their lengths."""

    name: str
    required: bool
    cells: tuple[losses.Cell, ...]
    every: str
    answered: str
    coverage: str
    lost: str
    gap: str
    errors: tuple[str, ...]
    listed: tuple[tuple[Loss, str], ...]
    unlisted: int


def _facts(page: Page) -> Mapping[str, object]:
    """A strip and the account of each source; the stretches in which polls were lost; faults of single metrics."""
    sources = page.source.sources()
    ids = {source_label(source, sources): source.id for source in sources}
    rows = [_row(page, ledger, ids.get(ledger.source)) for ledger in page.verdict.ledgers]
    seen = {cell.word for row in rows for cell in row.cells}
    names = {source.id: f"{source.target} {source.label}" for source in sources}
    faults = sorted(page.source.faults(), key=lambda f: (f.target, f.source, f.metric, f.object, f.first_ns, f.text))
    zooms = {loss: zoom_of(_span(page, loss)) for row in rows for loss, _ in row.listed}
    return {
        "zooms": zooms,
        "window": page.verdict.window,
        "rows": rows,
        "words": [(word, meaning) for word, meaning in _WORDS.items() if word in seen],
        "losses": sum(len(row.listed) for row in rows),
        "spans": page.source.spans(),
        "faults": [(names.get(fault.source, fault.target), fault) for fault in faults],
    }


def blocks(page: Page) -> Sequence[Block]:
    """A row for each source, with a strip of when its polls were lost; the least covered first on a terminal."""
    ledgers, layout = page.verdict.ledgers, Layout("coverage", partial(_facts, page))
    ranked = sorted(ledgers, key=lambda ledger: ledger.coverage if ledger.coverage is not None else 0.0)
    sources = page.source.sources()
    ids = {source_label(source, sources): source.id for source in sources}
    columns = (Column("source", "name"), Column("coverage", "number"), Column("the run"), Column("answered"))
    rows: list[list[Cell | str]] = [
        [source_name(row), _share(row), _strip(page, ids.get(row.source)), account(row)] for row in ranked[:_BRIEF]
    ]
    drawn: list[Block] = [layout, Table("Coverage", columns, rows, _TERMINAL, _BRIEF, left_out=len(ranked) - len(rows))]
    lines = [f"{source_name(ledger)}: {account(ledger, share_text(ledger.coverage))}" for ledger in ledgers]
    drawn += [Text(f"coverage {line}", formats=_TEXT) for line in lines]
    drawn += [Text(line, formats=_MARKDOWN) for line in lines[:_MARKDOWN_LINES]]
    if len(ledgers) > _MARKDOWN_LINES:
        drawn.append(Text(f"… and {len(ledgers) - _MARKDOWN_LINES} more sources in the report.", formats=_MARKDOWN))
    if not ledgers:
        return [layout, Text("Nothing was polled.", formats=BRIEF)]
    return drawn


_TERMINAL: frozenset[Format] = frozenset({"terminal"})
_TEXT: frozenset[Format] = frozenset({"text"})
_MARKDOWN: frozenset[Format] = frozenset({"markdown"})


def account(ledger: Ledger, share: str = "") -> str:
    """How many polls were answered (with their ``share``), the longest gap, and how the others ended."""
    lost = lost_polls(ledger.lost)
    gap = ledger.longest_gap
    gap_text = "never answered" if gap is None else f"longest gap {show_seconds(gap.seconds)}"
    late = f"; {number(ledger.recovered)} of them delivered late" if ledger.recovered else ""
    answered = f"{number(ledger.got)} of {number(ledger.due)} polls" + (f" ({share})" if share else "")
    return f"{answered}, {gap_text}{late}" + (f"; {lost}" if lost else "")


def _share(ledger: Ledger) -> Cell:
    whole = ledger.coverage is not None and ledger.coverage >= 1
    return Cell(share_text(ledger.coverage), "" if whole else "caution" if ledger.got else "bad")


def _strip(page: Page, source: int | None) -> Cell:
    if source is None:
        return Cell("")
    lost, _ = losses_of(within(page.source.poll_outcomes(source), page.verdict.window), _MAX_LOSSES)
    return Cell("", lost=tuple((loss.begin_ns, loss.end_ns) for loss in lost))


def _span(page: Page, loss: Loss) -> Window:
    return around(Mark(loss.begin_ns, loss.end_ns, ""), page.verdict.window)


def _row(page: Page, ledger: Ledger, source: int | None) -> Row:
    gap, name, window = ledger.longest_gap, source_name(ledger), page.verdict.window
    cells: tuple[losses.Cell, ...] = ()
    listed: tuple[Loss, ...] = ()
    more = 0
    if source is not None:
        polls = within(page.source.poll_outcomes(source), window)
        cells = cells_of(polls, window, _CELLS, round(ledger.interval_s * 1e9))
        listed, more = losses_of(polls, _MAX_LISTED)
    return Row(
        name=name,
        required=ledger.required,
        cells=cells,
        every=show_seconds(ledger.interval_s),
        answered=f"{number(ledger.got)} of {number(ledger.due)}"
        + (f", {number(ledger.recovered)} delivered late" if ledger.recovered else ""),
        coverage=share_text(ledger.coverage),
        lost=lost_polls(ledger.lost) or "none",
        gap="never answered" if gap is None else f"{show_seconds(gap.seconds)} from {utc(gap.begin_ns)}",
        errors=ledger.errors,
        listed=tuple((loss, show_seconds((loss.end_ns - loss.begin_ns) * 1e-9 + ledger.interval_s)) for loss in listed),
        unlisted=more,
    )
