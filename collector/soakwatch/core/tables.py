"""Tables and sentences on stdout: fitted to a terminal, plain elsewhere; nothing is cut off and no word, path or
address broken, so that all can be copied."""

from __future__ import annotations

import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Sequence

import click

_BETWEEN = 2  # cells between two columns


def show_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints a table of text. In a file or pipe, columns are at least two spaces apart, a row is a line; on a terminal
    too narrow for the longest words of all columns, a row is a block of lines."""
    lines = [[harmless(cell) for cell in row] for row in (head, *rows)]
    if not sys.stdout.isatty():
        widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
        for line in lines:
            click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
        return
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    from soakwatch.core.console import CommandConsole

    console = CommandConsole()
    least = [max(cell_len(line[0]) for line in lines), *longest_words(lines)[1:]]  # names are not wrapped
    if sum(least) + _BETWEEN * (len(least) - 1) > console.width:
        for line in lines[1:]:
            for text in _block(lines[0], line):
                console.say(text)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    wanted = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    widths = fitted(wanted, least, console.width - _BETWEEN * (len(least) - 1))
    for column, (title, width) in enumerate(zip(lines[0], widths, strict=True)):
        table.add_column(title, width=width, no_wrap=column == 0)
    for line in lines[1:]:
        table.add_row(*map(Text, line))
    console.print(table)


def fitted(wanted: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Column widths that fit ``room``: the widest shrinks first, none below its longest word.

    >>> fitted([11, 40, 19], [11, 9, 10], 60), fitted([3, 5], [3, 2], 60)
    ([11, 30, 19], [3, 5])
    """
    widths = list(wanted)
    while sum(widths) > room and any(width > low for width, low in zip(widths, least, strict=True)):
        widest = max((width, column) for column, width in enumerate(widths) if width > least[column])[1]
        widths[widest] -= 1
    return widths


def longest_words(lines: Sequence[Sequence[str]]) -> list[int]:
    """The cells of the longest word of each column: its minimum width.

    >>> longest_words([["run", "so far"], ["web", "not judged yet"]])
    [3, 6]
    """
    from rich.cells import cell_len

    return [
        max(cell_len(word) for cell in column for word in (cell.split() or [""])) for column in zip(*lines, strict=True)
    ]


def _block(head: Sequence[str], line: Sequence[str]) -> list[str]:
    """A row as lines: its name, then what each column says."""
    widest = max(map(len, head[1:]), default=0)
    said = [f"  {title.strip():<{widest}}  {cell}" for title, cell in zip(head[1:], line[1:], strict=True) if cell]
    return [line[0], *said]


def say(text: str, *, indent: int = 0, err: bool = False) -> None:
    """Prints a sentence; on a terminal it is wrapped between words, with a hanging indent of two."""
    stream = sys.stderr if err else sys.stdout
    first = " " * indent
    if not stream.isatty():
        click.echo(f"{first}{text}", err=err)
        return
    width = max(shutil.get_terminal_size().columns, 30)
    lines = textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=f"{first}  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    for line in lines or [""]:
        click.echo(line, err=err)


def harmless(text: str) -> str:
    r"""Escapes control characters, so that a device's name cannot steer a terminal.

    >>> harmless("eth0\x1b[2J")
    'eth0\\x1b[2J'
    """
    return "".join(ascii(char)[1:-1] if unicodedata.category(char) in {"Cc", "Cf"} else char for char in text)
