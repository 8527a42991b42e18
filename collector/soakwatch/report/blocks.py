"""The content of a section, without how it is drawn: sentences, tables, curves and folded lists.

A section gives the same blocks to every format; the renderers of HTML, Markdown, the terminal and plain text draw them.
Text may come from anywhere (a device, a plan): the renderers make it harmless, sections need not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
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

Tone = Literal["", "strong", "soft", "absent", "good", "caution", "bad"]
"""How text stands out. No reader may depend on it: a report may be printed without colour."""


@dataclass(frozen=True, slots=True)
class ReportCell:
    """A cell of a table.

    ``outcome`` puts its sign and colour before the text. On the page, ``link`` is the element that a click leads to,
    ``zoom`` the window that the plots then show (see ``formatting.zoom_of``), and ``meter`` a share from 0 to 1 that is
    drawn as a bar. ``links`` replace the text there: words, each with its address ("" for none). ``anchor`` is the id
    of the row. ``lost`` are windows (begin and end in ns) in which polls were lost: a strip of the run shows them in
    place of the text.

    In a column of figures ``mark`` is a word (best) in the colour of the tone; ``beside`` (an interval) and ``note``
    stand below the text where there is room. ``shade`` is the number as a share of the largest of its figure.
    """

    text: str
    tone: Tone = ""
    outcome: Outcome | None = None
    link: str = ""
    zoom: str = ""
    meter: float | None = None
    lost: tuple[tuple[int, int], ...] | None = None
    links: tuple[tuple[str, str], ...] = ()
    anchor: str = ""
    mark: str = ""
    beside: str = ""
    note: str = ""
    shade: float | None = None


@dataclass(frozen=True, slots=True)
class ReportColumn:
    """A column by its heading. Numbers are right-aligned; numbers and times never wrap. On the page names (of targets,
    metrics, files) look different from words, and reasons get most of the width. Heads name their row. Figures are
    numbers over the axes of a table: a terminal that is too narrow shows them in portions, each with the heads."""

    title: str
    kind: Literal["text", "number", "time", "name", "reason", "count", "head", "figure"] = "text"
    formats: frozenset[Format] = EVERYWHERE


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells, one cell a column; a plain text is a cell without anything else.

    The terminal and Markdown show the first ``brief`` rows (None: all); the page folds the rows after
    ``folded_after``, and says ``folded`` of them. ``left_out`` counts rows that the table does not have, and ``more``
    says what they are ("series in the record"). ``tone`` marks the whole table, ``note`` is an explanation on the page.
    A ``narrow`` table is no wider on the page than its text. ``across`` names the axis of the columns of figures. Below
    the table ``footnotes`` say why cells are empty, and ``legend`` what its signs mean.
    """

    caption: str
    columns: tuple[ReportColumn, ...]
    rows: Sequence[Sequence[ReportCell | str]]
    formats: frozenset[Format] = EVERYWHERE
    brief: int | None = 12
    folded_after: int = 1000
    folded: str = "more"
    left_out: int = 0
    more: str = "rows in the record"
    tone: Tone = ""
    note: str = ""
    narrow: bool = False
    across: str = ""
    footnotes: tuple[str, ...] = ()
    legend: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Banner:
    """The verdict on top of a report about a ``kind`` of thing (a campaign): its outcome and word, the thing's name,
    why in one sentence, and how much was judged."""

    outcome: Outcome
    word: str
    kind: str
    name: str
    reason: str
    extent: str
    formats: frozenset[Format] = EVERYWHERE


@dataclass(frozen=True, slots=True)
class Text:
    """A sentence. A bold ``label`` comes first, and before it the sign of an ``outcome`` with ``word`` (or the
    outcome's own).

    ``detail`` is a second line that a reader may skip.
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
    """Lines that keep their spaces, such as a diff of two plans. The page folds them below ``summary``; without a
    summary they are open."""

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
    """Pairs of a name and a text. The page shows them side by side, a glossary (``words``) one below another."""

    pairs: Sequence[tuple[str, str]]
    words: bool = False
    formats: frozenset[Format] = HTML


@dataclass(frozen=True, slots=True)
class Layout:
    """What only the page shows, by the template ``layouts/NAME.html.jinja``.

    ``facts`` returns the variables of the template, or None to leave the block out. It is called only when a page is
    drawn. All facts are made before any template is filled, so that a block may link to a later one.
    """

    name: str
    facts: Callable[[], Mapping[str, object] | None]
    formats: frozenset[Format] = HTML


NO_TIME = Window(0, 0)
"""The time of a report that draws nothing over time."""
Block = Banner | Text | Table | Curves | Folded | Preformatted | Heading | Facts | Layout


@dataclass(frozen=True, slots=True)
class Chapter:
    """Blocks under a heading, as one format shows them; the page shows them unfolded where it is ``opened``."""

    name: str
    title: str
    blocks: Sequence[Block]
    opened: bool = True


def shown_in(blocks: Sequence[Block], form: Format) -> tuple[Block, ...]:
    """The blocks that a format shows."""
    return tuple(block for block in blocks if form in block.formats)


def stands_alone(blocks: Sequence[Block]) -> bool:
    """Whether the blocks are one plain sentence, which needs no heading where there is little room."""
    return len(blocks) == 1 and isinstance(blocks[0], Text) and not blocks[0].label and blocks[0].outcome is None


def columns_in(table: Table, form: Format) -> tuple[tuple[ReportColumn, ...], tuple[tuple[ReportCell, ...], ...]]:
    """The columns that a format shows, and all rows cut down to them. Except on the page, which has a line for it, the
    last head also says what the columns of figures are values of.

    >>> table = Table("", (ReportColumn("a"), ReportColumn("b", formats=HTML)), [["1", "2"]])
    >>> [column.title for column in columns_in(table, "text")[0]], columns_in(table, "text")[1][0][0].text
    (['a'], '1')
    """
    kept = [index for index, column in enumerate(table.columns) if form in column.formats]
    rows = tuple(
        tuple(cell if isinstance(cell, ReportCell) else ReportCell(cell) for cell in (row[index] for index in kept))
        for row in table.rows
    )
    columns = [table.columns[index] for index in kept]
    if table.across and form != "html":
        last = max(index for index, column in enumerate(columns) if column.kind == "head")
        columns[last] = replace(columns[last], title=f"{columns[last].title} \\ {table.across}".strip())
    return tuple(columns), rows
