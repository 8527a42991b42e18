"""Prints a report: wrapped to the width of a terminal; plain and uncut into a pipe or file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from rich.align import Align
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from soakwatch.core.formatting import printable
from soakwatch.core.tables import longest_words
from soakwatch.core.terminal import encodable, spells
from soakwatch.report.sparks import BLOCKS, PLAIN

Part = str | tuple[str, str]
"""Text, or text with a style."""
_NARROWEST = 30
_BETWEEN, _FIGURE, _HEAD = 2, 24, 28
"""Cells between two columns; and how wide columns of figures and the heads of their rows become at most."""


class ConsoleWriter:
    """Lines and tables on a console. Text may come from anywhere: control characters in it never reach the terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self.terminal = console.is_terminal
        self.width = max(console.width, _NARROWEST)
        self._begun = False
        self.blocks = spells(console.encoding, BLOCKS + "▲█░")

    @property
    def spark_width(self) -> int:
        """The width of spark lines in cells: what their words leave of the terminal."""
        return min(max(self.width - 40, 20), 60) if self.terminal else 40

    @property
    def steps(self) -> str:
        """The characters of spark lines, the lowest first."""
        return BLOCKS if self.blocks else PLAIN

    def say(self, *parts: Part, indent: int = 0, hang: int | None = None) -> None:
        """One line. A terminal wraps it, and indents the further lines by ``hang`` cells."""
        text = self._text(parts)
        first = " " * indent
        if not self.terminal:
            self._print(Text(first).append_text(text))
            return
        rest = " " * (indent if hang is None else hang)
        room = max(self.width - max(len(rest), indent), 10)
        for number, line in enumerate(text.divide(_breaks(text.plain, room))):
            line.rstrip()
            self._print(Text(first if number == 0 else rest).append_text(line))

    def uncut(self, *parts: Part) -> None:
        """One line that is never wrapped: a command or an address, to be copied in one piece."""
        self._print(self._text(parts))

    def gap(self) -> None:
        """An empty line, unless nothing was printed yet."""
        if self._begun:
            self._print(Text(""))

    def title(self, words: str) -> None:
        """A heading, with an empty line above it."""
        self.gap()
        self._print(self._text([(words, "bold underline" if self.terminal else "")]))

    def figures(self, head: Sequence[str], rows: Sequence[Sequence[Sequence[Part]]], heads: int) -> None:
        """On a terminal: rows whose first ``heads`` cells name them, each cell its lines. Columns that do not fit go on
        below, with the heads again."""
        cells = [
            [self._wrapped(lines, _HEAD if place < heads else _FIGURE) for place, lines in enumerate(row)]
            for row in ([[(title, "dim")] for title in head], *rows)
        ]
        columns = zip(*cells, strict=True)
        widths = [max(cell_len(line) for cell in column for line in cell.plain.split("\n")) for column in columns]
        portions: list[list[int]] = []
        used = 0
        for column in range(heads, len(head)):
            if not portions or used + widths[column] > self.width:
                portions.append(list(range(heads)))
                used = sum(widths[:heads]) + _BETWEEN * heads
            portions[-1].append(column)
            used += widths[column] + _BETWEEN
        for portion in portions:
            drawn = Table(box=None, pad_edge=False, padding=(0, _BETWEEN, 0, 0))
            for column in portion:
                side: Literal["left", "right"] = "left" if column < heads else "right"
                title = Align(cells[0][column], side, vertical="bottom")
                drawn.add_column(title, justify=side, width=widths[column])
            for row in cells[1:]:
                drawn.add_row(*(row[column] for column in portion))
            self._console.print(drawn, markup=False, highlight=False, emoji=False)
        self._begun = True

    def _wrapped(self, lines: Sequence[Part], most: int) -> Text:
        wrapped = [part for line in lines for part in self._text([line]).wrap(self._console, most)]
        for part in wrapped:
            part.rstrip()
        return Text("\n").join(wrapped)

    def table(self, head: Sequence[str], rows: Sequence[Sequence[Part]], right: Sequence[int] = ()) -> None:
        """Rows of cells. Columns of numbers (``right``) never wrap, text wraps between words; without a terminal
        nothing wraps. If the longest words of all columns do not fit side by side, each row becomes a line."""
        if not self.terminal:
            lines = [[self._text([cell]).plain for cell in row] for row in (head, *rows)]
            widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
            for line in lines:
                cells = [
                    c.rjust(w) if column in right else c.ljust(w)
                    for column, (c, w) in enumerate(zip(line, widths, strict=True))
                ]
                self._print(Text("  ".join(cells).rstrip()))
            return
        texts = [[self._text([cell]) for cell in row] for row in rows]
        words = longest_words([list(head), *([text.plain for text in row] for row in texts)])
        least = [
            max(texts_of, default=0) if column in right else words[column]
            for column, texts_of in enumerate([[row[column].cell_len for row in texts] for column in range(len(head))])
        ]
        if sum(least) + 2 * len(least) > self.width:
            for row in rows:
                self.say(*(part for cell in row if words_of(cell) for part in (cell, "  ")), hang=4)
            return
        drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", width=self.width)
        for column, title in enumerate(head):
            last = column == len(head) - 1
            drawn.add_column(
                title,
                justify="right" if column in right else "left",
                no_wrap=column in right,
                min_width=least[column],
                ratio=1 if last else None,
                max_width=None if last or column in right else max(self.width // 3, 12, least[column]),
            )
        for texts_of_row in texts:
            drawn.add_row(*texts_of_row)
        self._begun = True
        self._console.print(drawn, markup=False, highlight=False, emoji=False)

    def _text(self, parts: Sequence[Part]) -> Text:
        styled = [(part, "") if isinstance(part, str) else part for part in parts]
        return Text.assemble(*((encodable(printable(words), self._console.encoding), style) for words, style in styled))

    def _print(self, text: Text) -> None:
        self._begun = True
        self._console.print(text, markup=False, highlight=False, emoji=False, soft_wrap=True)


def _breaks(plain: str, room: int) -> list[int]:
    """Where the second and each further line of at most ``room`` cells begins: always before a word, so that a path
    stays whole.

    >>> _breaks("see /srv/runs/night for more", 10)
    [4, 20]
    """
    places: list[int] = []
    used = len(plain) - len(plain.lstrip())
    for word in re.finditer(r"\S+\s*", plain):
        if used and used + cell_len(word[0].rstrip()) > room:
            places.append(word.start())
            used = 0
        used += cell_len(word[0])
    return places


def words_of(part: Part) -> str:
    """The text of a cell; "" for a dash, which stands for nothing."""
    return (part if isinstance(part, str) else part[0]).strip(" –")
