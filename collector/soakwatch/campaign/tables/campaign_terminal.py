"""Tables of a campaign on a terminal, within its width, and plain in a pipe."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from soakwatch.campaign.tables.result import DEFINITION, CampaignResult, extent_words, verdict_words
from soakwatch.campaign.tables.sheet import CellText, Sheet
from soakwatch.core.formatting import SYMBOLS
from soakwatch.report.console import ConsoleWriter, Part
from soakwatch.report.console_blocks import STYLES

_GAP, _WIDEST, _HEAD = 2, 24, 28
_MARKS = {"best": "bold green", "worst": "bold yellow"}


def print_sheet(writer: ConsoleWriter, sheet: Sheet) -> None:
    """The table; what is wider than the terminal goes on below, with the heads of the rows again. In a pipe a row is a
    line, whatever its width."""
    writer.title(sheet.title)
    heads = list(sheet.head)
    if sheet.across:
        heads[-1] = f"{heads[-1]} \\ {sheet.across}" if heads[-1] else f"\\ {sheet.across}"
    left = [_column(writer, head, [[row[i]] for row, _ in sheet.rows], _HEAD) for i, head in enumerate(heads)]
    right = [
        _column(writer, title, [_lines(writer, cells[i]) for _, cells in sheet.rows], _WIDEST)
        for i, title in enumerate(sheet.columns)
    ]
    for portion in _portions(writer, left, right):
        _draw(writer, left, portion)
    for line in (*sheet.notes, *sheet.legend):
        writer.say((line, "dim"), indent=2, hang=4)


Column = tuple[list[list[Part]], int]
"""The lines of each row of a column, the head first; and how wide it is."""


def _column(writer: ConsoleWriter, title: str, cells: Sequence[Sequence[Part]], widest: int) -> Column:
    """A column whose texts are broken where they are too wide for a terminal."""
    if not writer.terminal:
        widest = 10_000
    rows: list[list[Part]] = [[(part, "dim") for part in textwrap.wrap(title, widest)]]
    for cell in cells:
        lines: list[Part] = []
        for part in cell:
            text, style = (part, "") if isinstance(part, str) else part
            lines += [(line, style) for line in textwrap.wrap(text, widest)]
        rows.append(lines)
    return rows, max((len(_text(part)) for row in rows for part in row), default=1)


def _portions(writer: ConsoleWriter, left: Sequence[Column], right: Sequence[Column]) -> list[list[Column]]:
    """The columns that fit beside the heads of the rows, in several portions where not all do."""
    if not writer.terminal:
        return [list(right)]
    start = sum(wide + _GAP for _, wide in left)
    portions: list[list[Column]] = [[]]
    used = start
    for column in right:
        if portions[-1] and used + column[1] > writer.width:
            portions.append([])
            used = start
        portions[-1].append(column)
        used += column[1] + _GAP
    return portions


def _draw(writer: ConsoleWriter, left: Sequence[Column], right: Sequence[Column]) -> None:
    columns = [*left, *right]
    for row in range(len(columns[0][0])):
        high = max((len(rows[row]) for rows, _ in columns), default=1)
        for number in range(high):
            parts: list[Part] = []
            for place, (rows, wide) in enumerate(columns):
                # heads stand above their columns: what is shorter is filled from above
                offset = number - (high - len(rows[row]) if row == 0 else 0)
                text, style = _styled(rows[row][offset]) if 0 <= offset < len(rows[row]) else ("", "")
                padded = text.ljust(wide) if place < len(left) else text.rjust(wide)
                parts += [(padded, style), " " * _GAP if place < len(columns) - 1 else ""]
            writer.say(*parts)


def _lines(writer: ConsoleWriter, words: CellText) -> list[Part]:
    """A cell in the lines that it takes: one in a pipe."""
    if words.absent:
        return [(words.main, "dim")]
    if words.outcome is not None:
        return [(f"{SYMBOLS[words.outcome]} {words.main}", STYLES[words.outcome])]
    if not writer.terminal:
        return [words.line]
    first: Part = (f"{words.mark} {words.main}".strip(), _MARKS.get(words.mark.removeprefix("tied "), ""))
    return [first, *((part, "dim") for part in (words.beside, words.note) if part)]


def _styled(part: Part) -> tuple[str, str]:
    return (part, "") if isinstance(part, str) else part


def _text(part: Part) -> str:
    return part if isinstance(part, str) else part[0]


def print_result(writer: ConsoleWriter, result: CampaignResult) -> None:
    """The verdict, what is doubtful, the findings and the tables."""
    outcome = result.outcome
    writer.say(
        (f"{SYMBOLS[outcome]} {verdict_words(result).upper()}", STYLES[outcome]),
        (f"  campaign {result.state.name}", "bold"),
        hang=2,
    )
    writer.say(result.reason)
    writer.say(extent_words(result))
    for doubt in result.doubts:
        writer.say(("! ", "yellow"), doubt, hang=2)
    if result.findings:
        writer.title("Findings")
        for finding in result.findings:
            outcome = finding.outcome
            writer.say(
                (f"{SYMBOLS[outcome]} {outcome.value}", STYLES[outcome]),
                ("  " + finding.subject, "bold"),
                f"  {finding.asked}" if finding.kind != "comparison" else "",
                hang=4,
            )
            writer.say(finding.reason, indent=4)
    for table in result.tables:
        for sheet in table:
            print_sheet(writer, sheet)
    writer.gap()
    writer.say((f"verdict of a campaign: {DEFINITION}", "dim"), hang=2)
