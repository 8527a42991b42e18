"""Help text whose verbatim lines are wrapped at words where they are too long for the terminal."""

from __future__ import annotations

import sys
import textwrap

import click

_HANGING = "    "


class HelpFormatter(click.HelpFormatter):
    """Also wraps the lines of examples and notes on a terminal, which click leaves as they are."""

    def write_text(self, text: str) -> None:
        """Write a text with verbatim lines wrapped."""
        before = len(self.buffer)
        super().write_text(text)
        if sys.stdout.isatty():
            written = "".join(self.buffer[before:])
            self.buffer[before:] = ["\n".join(fitted(line, self.width) for line in written.split("\n"))]


class HelpContext(click.Context):
    """The context of a command with this help."""

    formatter_class = HelpFormatter


def fitted(line: str, width: int) -> str:
    r"""Wrap a line; a command is continued with a backslash, so that it can be copied.

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
