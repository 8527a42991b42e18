"""How many of the due polls of each source were answered, and when they were not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from soakwatch.core.formatting import number, share_text, source_name, span_text, utc, zoom_of
from soakwatch.core.units import show_seconds
from soakwatch.record.model import source_label
from soakwatch.record.source import PollOutcomes
from soakwatch.report.blocks import BRIEF, Block, Format, Layout, ReportCell, ReportColumn, Table, Text
from soakwatch.report.page import Page
from soakwatch.report.timeline import around
from soakwatch_model.case import Ledger
from soakwatch_model.finding import Mark
from soakwatch_model.window import Window
from soakwatch_rules.stats.hysteresis import true_runs
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
_FEW, _HALF = 0.1, 0.5
_HEIGHTS = (100, 45, 70, 100)  # of answered polls; of few, some and most polls lost


@dataclass(frozen=True, slots=True)
class LostPolls:
    """Consecutive polls without an answer: due times of the first and the last, and how many ended how."""

    begin_ns: int
    end_ns: int
    polls: int
    words: str


@dataclass(frozen=True, slots=True)
class StripPiece:
    """A piece of a strip, in percent of its width and height; ``word`` is "ok", or how most of its lost polls ended.

    The height of a lost piece has three steps: less than a tenth of its polls were lost, less than a half, or more.
    """

    left: str
    width: str
    height: int
    word: str
    title: str


def within(polls: PollOutcomes, window: Window) -> PollOutcomes:
    """The polls that were due in the window."""
    low, high = np.searchsorted(polls.due_ns, [window.begin_ns, window.end_ns])
    return PollOutcomes(polls.due_ns[low:high], polls.outcome[low:high], polls.words)


def losses_of(polls: PollOutcomes, most: int) -> tuple[tuple[LostPolls, ...], int]:
    """The ``most`` longest stretches of lost polls in order of time, and how many more there are.

    A stretch ends where a poll was answered. Memory: arrays as long as the polls; text only for the stretches that are
    returned.
    """
    begins, ends = true_runs(polls.outcome != 0).T
    longest = np.sort(np.argsort(begins - ends, kind="stable")[:most])
    found = tuple(_loss(polls, int(begins[n]), int(ends[n])) for n in longest)
    return found, int(begins.size) - len(found)


def cells_of(polls: PollOutcomes, window: Window, cells: int, interval_ns: int) -> tuple[StripPiece, ...]:
    """The polls on a strip of ``cells`` cells: first the answered pieces, then the lost ones, which are painted over
    them.

    Neighbouring cells that ended alike are one piece. A single lost poll fills its cell, and is seen among any number
    of answered ones. A poll also fills the cells up to the next poll, as far as its interval reaches; where no poll was
    due there is no piece.
    """
    length = max(window.end_ns - window.begin_ns, 1)
    bins = np.clip(((polls.due_ns - window.begin_ns) / length * cells).astype(np.int64), 0, cells - 1)
    kinds = len(polls.words)
    table = np.bincount(bins * kinds + polls.outcome, minlength=cells * kinds).reshape(cells, kinds)
    index = np.arange(cells)
    last = np.maximum.accumulate(np.where(table.any(axis=1), index, -1))
    reach = max(-(-interval_ns * cells // length), 1)
    table = np.where(((last >= 0) & (index - last < reach))[:, None], table[last], 0)
    lost = table[:, 1:].sum(axis=1)
    share = lost / np.maximum(table.sum(axis=1), 1)
    size = 1 + (share >= _FEW).astype(np.int64) + (share >= _HALF)
    kind = (table[:, 1:].argmax(axis=1) + 1) * len(_HEIGHTS) + size
    strip = []
    for layer in ((table[:, 0] > 0).astype(np.int64), np.where(lost > 0, kind, 0)):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], layer, [0]])))
        for begin, end in pairwise(edges.tolist()):
            code = int(layer[begin])
            if code:
                word, height = divmod(code, len(_HEIGHTS)) if code > 1 else (0, 0)
                strip.append(_cell(polls, bins, cells, (begin, end), word, _HEIGHTS[height]))
    return tuple(strip)


def _cell(
    polls: PollOutcomes, bins: NDArray[np.int64], cells: int, edges: tuple[int, int], word: int, height: int
) -> StripPiece:
    begin, end = edges
    low, high = np.searchsorted(bins, [begin, end])
    chosen = low + np.flatnonzero((polls.outcome[low:high] != 0) == (word != 0))
    when = span_text(int(polls.due_ns[chosen[0]]), int(polls.due_ns[chosen[-1]]))
    title = f"{_counted(polls.outcome[chosen], polls.words)}, {when} UTC"
    return StripPiece(
        f"{begin / cells * 100:.3f}", f"{(end - begin) / cells * 100:.3f}", height, polls.words[word], title
    )


def _loss(polls: PollOutcomes, begin: int, end: int) -> LostPolls:
    words = _counted(polls.outcome[begin:end], polls.words)
    return LostPolls(int(polls.due_ns[begin]), int(polls.due_ns[end - 1]), end - begin, words)


def _counted(outcome: NDArray[np.int64], words: tuple[str, ...]) -> str:
    counts = dict(zip(words, np.bincount(outcome, minlength=len(words)).tolist(), strict=True))
    answered = counts.pop(words[0])
    return ", ".join(part for part in (f"{number(answered)} answered" if answered else "", lost_polls(counts)) if part)


@dataclass(frozen=True, slots=True)
class SourceRow:
    """The account of one source in words, its strip, and the stretches in which it lost polls with their lengths."""

    name: str
    required: bool
    cells: tuple[StripPiece, ...]
    every: str
    answered: str
    coverage: str
    lost: str
    gap: str
    errors: tuple[str, ...]
    listed: tuple[tuple[LostPolls, str], ...]
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
    columns = (
        ReportColumn("source", "name"),
        ReportColumn("coverage", "number"),
        ReportColumn("the run"),
        ReportColumn("answered"),
    )
    rows: list[list[ReportCell | str]] = [
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


def _share(ledger: Ledger) -> ReportCell:
    whole = ledger.coverage is not None and ledger.coverage >= 1
    return ReportCell(share_text(ledger.coverage), "" if whole else "caution" if ledger.got else "bad")


def _strip(page: Page, source: int | None) -> ReportCell:
    if source is None:
        return ReportCell("")
    lost, _ = losses_of(within(page.source.poll_outcomes(source), page.verdict.window), _MAX_LOSSES)
    return ReportCell("", lost=tuple((loss.begin_ns, loss.end_ns) for loss in lost))


def _span(page: Page, loss: LostPolls) -> Window:
    return around(Mark(loss.begin_ns, loss.end_ns, ""), page.verdict.window)


def _row(page: Page, ledger: Ledger, source: int | None) -> SourceRow:
    gap, name, window = ledger.longest_gap, source_name(ledger), page.verdict.window
    cells: tuple[StripPiece, ...] = ()
    listed: tuple[LostPolls, ...] = ()
    more = 0
    if source is not None:
        polls = within(page.source.poll_outcomes(source), window)
        cells = cells_of(polls, window, _CELLS, round(ledger.interval_s * 1e9))
        listed, more = losses_of(polls, _MAX_LISTED)
    return SourceRow(
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
