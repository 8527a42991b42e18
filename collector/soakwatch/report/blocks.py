"""What a section of the report says, apart from how it is drawn: sentences, tables, curves and folded lists.

A section gives the same blocks to every format; the renderers of HTML, Markdown, the terminal and plain text draw them.
All text may come from anywhere (a device, a plan): the renderers make it harmless, sections need not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from soakwatch_model.finding import Mark, Outcome
from soakwatch_model.series import Series
from soakwatch_model.window import Window

Format = Literal["html", "markdown", "terminal", "text"]
"""``text`` is what a terminal report becomes in a pipe or file: no colour, nothing wrapped, one fact a line."""
EVERYWHERE: frozenset[Format] = frozenset({"html", "markdown", "terminal", "text"})
CONSOLE: frozenset[Format] = frozenset({"terminal", "text"})
BRIEF: frozenset[Format] = frozenset({"markdown", "terminal", "text"})
"""Every format but the page, which often has room for a table where these have a sentence."""
HTML: frozenset[Format] = frozenset({"html"})

Tone = Literal["", "strong", "soft", "caution", "bad"]
"""How text stands out; nothing depends on it, for a report may be printed without colour."""


@dataclass(frozen=True, slots=True)
class ReportCell:
    """A cell of a table.

    ``outcome`` puts its sign and colour before the text. On the page ``link`` is the element it leads to and ``zoom``
    the stretch of time (see ``formatting.zoom_of``) that the plots show then; ``meter`` is a share from 0 to 1 that is
    drawn as a bar. ``lost`` are stretches (begin and end in ns) of the run that are drawn as a strip instead of text.
    """

    text: str
    tone: Tone = ""
    outcome: Outcome | None = None
    link: str = ""
    zoom: str = ""
    meter: float | None = None
    lost: tuple[tuple[int, int], ...] | None = None


@dataclass(frozen=True, slots=True)
class ReportColumn:
    """A column by its heading. Numbers are flushed right and never wrapped, times are never wrapped, names (of
    targets, metrics, files) are set apart from words on the page, and reasons get most of its width there."""

    title: str
    kind: Literal["text", "number", "time", "name", "reason", "count"] = "text"
    formats: frozenset[Format] = EVERYWHERE


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells, one cell a column; plain text stands for a cell without anything else.

    ``brief`` is how many rows the terminal and Markdown show, ``folded_after`` how many the page shows before the
    others are folded away. ``left_out`` counts rows that are not here at all, ``more`` says what is left out ("series
    in the record"). ``tone`` marks the whole table, ``note`` is what a reader of the page should know of it. A
    ``narrow`` table is as wide on the page as what it says.
    """

    caption: str
    columns: tuple[ReportColumn, ...]
    rows: Sequence[Sequence[ReportCell | str]]
    formats: frozenset[Format] = EVERYWHERE
    brief: int = 12
    folded_after: int = 1000
    left_out: int = 0
    more: str = "rows in the record"
    tone: Tone = ""
    note: str = ""
    narrow: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """A sentence. ``label`` comes first and is bold; with ``outcome`` its sign and ``word`` (or the outcome's) do.

    ``detail`` is a second line that may be skipped by the reader.
    """

    text: str
    label: str = ""
    outcome: Outcome | None = None
    word: str = ""
    tone: Tone = ""
    detail: str = ""
    formats: frozenset[Format] = EVERYWHERE


@dataclass(frozen=True, slots=True)
class Preformatted:
    """Lines that keep their blanks, such as a difference of two plans, under a summary that unfolds them (on the page;
    without a summary they are open there)."""

    summary: str
    lines: tuple[str, ...]
    formats: frozenset[Format] = EVERYWHERE


@dataclass(frozen=True, slots=True)
class Folded:
    """Sentences behind a summary: folded on the page and in Markdown, open on a terminal. At most ``brief`` of them
    are shown in Markdown and on a terminal."""

    summary: str
    texts: tuple[Text, ...]
    formats: frozenset[Format] = EVERYWHERE
    brief: int = 40
    more: str = "more in the report"


@dataclass(frozen=True, slots=True)
class Curves:
    """Series of one unit: a plot on the page, spark lines elsewhere. ``names`` stand beside the lines, one a series.

    ``marks`` are moments that are pointed out; ``window`` is the time that is drawn, by default the run's.
    """

    title: str
    series: tuple[Series, ...]
    names: tuple[str, ...] = ()
    marks: tuple[Mark, ...] = ()
    window: Window | None = None
    formats: frozenset[Format] = EVERYWHERE


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading within a section."""

    text: str
    formats: frozenset[Format] = HTML


@dataclass(frozen=True, slots=True)
class Facts:
    """Names with what is said of each: side by side on the page, or one below another where they are ``words`` with
    their meanings."""

    pairs: Sequence[tuple[str, str]]
    words: bool = False
    formats: frozenset[Format] = HTML


@dataclass(frozen=True, slots=True)
class Layout:
    """What the page alone shows, arranged by the template ``layouts/NAME.html.jinja``.

    ``facts`` makes the names in the template, when the page is drawn and for no other format; None leaves the block
    out. All facts are made before any template is filled, so what stands above may link to what stands below.
    """

    name: str
    facts: Callable[[], Mapping[str, object] | None]
    formats: frozenset[Format] = HTML


Block = Text | Table | Curves | Folded | Preformatted | Heading | Facts | Layout


def shown_in(blocks: Sequence[Block], form: Format) -> tuple[Block, ...]:
    """The blocks that a format shows."""
    return tuple(block for block in blocks if form in block.formats)


def stands_alone(blocks: Sequence[Block]) -> bool:
    """Whether the blocks are one plain sentence, which needs no heading where there is little room."""
    return len(blocks) == 1 and isinstance(blocks[0], Text) and not blocks[0].label and blocks[0].outcome is None


def columns_in(table: Table, form: Format) -> tuple[tuple[ReportColumn, ...], tuple[tuple[ReportCell, ...], ...]]:
    """The columns that a format shows, and all rows cut down to them.

    >>> table = Table("", (ReportColumn("a"), ReportColumn("b", formats=HTML)), [["1", "2"]])
    >>> [column.title for column in columns_in(table, "text")[0]], columns_in(table, "text")[1][0][0].text
    (['a'], '1')
    """
    kept = [index for index, column in enumerate(table.columns) if form in column.formats]
    rows = tuple(
        tuple(cell if isinstance(cell, ReportCell) else ReportCell(cell) for cell in (row[index] for index in kept))
        for row in table.rows
    )
    return tuple(table.columns[index] for index in kept), rows
