"""A section's blocks on a console: tables and spark lines within the width of a terminal, plain lines in a pipe."""

from __future__ import annotations

from soakwatch.core.formatting import SYMBOLS
from soakwatch.report.blocks import (
    NO_TIME,
    Banner,
    Block,
    Chapter,
    Curves,
    Facts,
    Folded,
    Heading,
    Preformatted,
    ReportCell,
    Table,
    Text,
    Tone,
    columns_in,
    stands_alone,
)
from soakwatch.report.console import ConsoleWriter, Part, words_of
from soakwatch.report.sparks import pointers, spark_words, sparkline, strip
from soakwatch_model.finding import Outcome
from soakwatch_model.window import Window

STYLES = {
    Outcome.FAIL: "bold red",
    Outcome.INCONCLUSIVE: "bold magenta",
    Outcome.WARN: "yellow",
    Outcome.PASS: "green",
    Outcome.NOT_APPLICABLE: "dim",
}
_TONES: dict[Tone, str] = {
    "": "",
    "strong": "bold",
    "soft": "dim",
    "absent": "dim",
    "good": "bold green",
    "caution": "yellow",
    "bad": "bold red",
}
_WIDE, _MAX_NARROW_COLUMNS = 100, 4  # a narrower terminal shows a table of more columns as lines
_STRIP, _NARROW_STRIP = 30, 12


def head(outcome: Outcome, words: str) -> Part:
    """Sign and word of an outcome, in its colour."""
    return f"{SYMBOLS[outcome]} {words}", STYLES[outcome]


def print_chapter(writer: ConsoleWriter, chapter: Chapter, window: Window = NO_TIME) -> None:
    """Prints a chapter with its heading. A single sentence has no heading; a chapter without a block prints nothing.

    ``window`` is the run's, over which spark lines and strips are drawn.
    """
    if not chapter.blocks:
        return
    if chapter.title and not stands_alone(chapter.blocks):
        writer.title(chapter.title)
    else:
        writer.gap()
    for block in chapter.blocks:
        _block(writer, block, window)


def _block(writer: ConsoleWriter, block: Block, window: Window) -> None:
    if isinstance(block, Banner):
        writer.say(head(block.outcome, block.word.upper()), (f"  {block.kind} {block.name}", "bold"), hang=2)
        writer.say(block.reason)
        writer.say(block.extent)
    elif isinstance(block, Text):
        _text(writer, block)
    elif isinstance(block, Table):
        _table(writer, block, window)
    elif isinstance(block, Curves):
        _curves(writer, block, window)
    elif isinstance(block, Folded):
        for text in block.texts[: block.brief]:
            _text(writer, text)
        _left_out(writer, len(block.texts) - block.brief, block.more)
    elif isinstance(block, Heading):
        writer.say((block.text, "bold"))
    elif isinstance(block, Facts):
        for name, said in block.pairs:
            writer.say((name, "dim"), "  ", said, hang=4)
    elif isinstance(block, Preformatted):
        if block.summary:
            writer.say(block.summary)
        for line in block.lines:
            writer.say(line, indent=4)


def _text(writer: ConsoleWriter, text: Text) -> None:
    parts: list[Part] = []
    if text.outcome is not None:
        parts += [head(text.outcome, text.word or text.outcome.value), "  "]
    if text.label:
        parts += [(text.label, "bold"), "  "]
    writer.say(*parts, (text.text, _TONES[text.tone]), hang=4)
    if text.detail:
        writer.say((text.detail, "dim"), indent=4)


def _table(writer: ConsoleWriter, table: Table, window: Window) -> None:
    columns, rows = columns_in(table, "terminal" if writer.terminal else "text")
    shown = rows[: table.brief]
    width = _STRIP if writer.width >= _WIDE else _NARROW_STRIP
    cells = [[_part(writer, cell, window, width) for cell in row] for row in shown]
    heads = sum(column.kind == "head" for column in columns)
    if writer.terminal and any(column.kind == "figure" for column in columns):
        writer.figures([column.title for column in columns], [[_lines(cell) for cell in row] for row in shown], heads)
    elif shown and writer.terminal and writer.width < _WIDE and len(columns) > _MAX_NARROW_COLUMNS:
        for row in cells:
            filled = [part for part in row if words_of(part)]
            writer.say(*(part for cell in filled for part in (cell, "  ")), hang=4)
    elif shown:
        numeric = [index for index, column in enumerate(columns) if column.kind in {"number", "figure"}]
        writer.table([column.title for column in columns], cells, right=numeric)
    _left_out(writer, len(rows) - len(shown) + table.left_out, "more in the report")
    if any(cell.lost is not None for row in shown for cell in row):
        writer.say(("█ answered  ░ polls lost" if writer.blocks else "# answered  . polls lost", "dim"))
    for line in (*table.footnotes, *table.legend):
        writer.say((line, "dim"), indent=2, hang=4)


def _lines(cell: ReportCell) -> list[Part]:
    """A cell of a table of figures in the lines that it takes on a terminal."""
    if cell.outcome is not None:
        return [head(cell.outcome, cell.text)]
    first: Part = (f"{cell.mark} {cell.text}".strip(), _TONES[cell.tone])
    return [first, *((part, "dim") for part in (cell.beside, cell.note) if part)]


def _part(writer: ConsoleWriter, cell: ReportCell, window: Window, width: int) -> Part:
    if cell.lost is not None:
        return strip(cell.lost, window, width, "█░" if writer.blocks else "#.")
    if cell.outcome is not None:
        return head(cell.outcome, cell.text)
    note = f"({cell.note})" if cell.note else ""
    return " ".join(filter(None, (cell.text, cell.beside, cell.mark, note))), _TONES[cell.tone]


def _curves(writer: ConsoleWriter, block: Curves, run: Window) -> None:
    window = block.window or run
    if block.title:
        writer.say((block.title, "bold"))
    names = block.names or tuple(series.object or series.metric for series in block.series)
    width = writer.spark_width
    for series, name in zip(block.series, names, strict=True):
        line = sparkline(series, width, writer.steps, window)
        if line:
            writer.say((line, "cyan"), f"  {spark_words(series, window)}  {name}", indent=4)
    below = pointers(block.marks, window, width, "▲" if writer.blocks else "^")
    if below:
        writer.say(below, indent=4)


def _left_out(writer: ConsoleWriter, count: int, words: str) -> None:
    if count > 0:
        writer.say((f"… and {count} {words}", "dim"))
