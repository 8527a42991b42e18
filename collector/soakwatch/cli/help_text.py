"""Help that no terminal breaks inside a word: lines that are kept as they stand are wrapped where they are too long."""

from __future__ import annotations

import sys
import textwrap

import click

_HANGING = "    "


class HelpFormatter(click.HelpFormatter):
    """Wraps on a terminal the lines of examples and notes too, which click leaves as they are."""

    def write_text(self, text: str) -> None:
        """Write a text, its kept lines fitted to the width."""
        before = len(self.buffer)
        super().write_text(text)
        if sys.stdout.isatty():
            written = "".join(self.buffer[before:])
            self.buffer[before:] = ["\n".join(fitted(line, self.width) for line in written.split("\n"))]


class HelpContext(click.Context):
    """The context of a command whose help is written so."""

    formatter_class = HelpFormatter


def fitted(line: str, width: int) -> str:
    r"""A line in as many lines as it needs; one that is a command goes on behind a backslash, so that it can be copied.

    >>> print(fitted("  soakwatch run plan.yaml --label release=7.2", 32))
      soakwatch run plan.yaml \
          --label release=7.2
    >>> fitted("Exit codes: 0 pass, 1 fail", 16)
    'Exit codes: 0\n    pass, 1 fail'
    """
    if len(line) <= width:
        return line
    indent = " " * (len(line) - len(line.lstrip()))
    command = line.lstrip().startswith("soakwatch ")
    lines = textwrap.wrap(
        line.strip(),
        width - 2 * command,
        initial_indent=indent,
        subsequent_indent=indent + _HANGING,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return (" \\\n" if command else "\n").join(lines)
