"""Tables on stdout: drawn for a terminal, plain columns for everything else, and nothing cut off in either."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Sequence

import click


def show_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints a table; cells are text. In a file or pipe columns are two or more spaces apart, a line a row."""
    if sys.stdout.isatty():
        from rich.table import Table
        from rich.text import Text

        from soakwatch.core.console import CommandConsole

        table = Table(box=None, pad_edge=False, header_style="bold")
        for column, title in enumerate(head):
            table.add_column(title, overflow="fold", no_wrap=column == 0)  # names stay in one piece to be copied
        for row in rows:
            table.add_row(*(Text(harmless(cell)) for cell in row))
        CommandConsole().print(table)
        return
    lines = [[harmless(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    for line in lines:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def harmless(text: str) -> str:
    r"""Text without control characters, so that what a device calls itself cannot steer a terminal.

    >>> harmless("eth0\x1b[2J")
    'eth0\\x1b[2J'
    """
    return "".join(ascii(char)[1:-1] if unicodedata.category(char) in {"Cc", "Cf"} else char for char in text)
