"""The words of a device or a peer, as one line that can be shown."""

from __future__ import annotations


def one_line(text: str, most: int) -> str:
    r"""Printable characters with single blanks between words, at most ``most`` of them: what is longer ends in "...".

    >>> one_line("no\x1b[2J\r\nmore", 20), one_line("a long story", 9)
    ('no [2J more', 'a long...')
    """
    begin = text[: 4 * most]  # blanks and what is not printable shrink, and a device may send megabytes of them
    line = " ".join("".join(char if char.isprintable() else " " for char in begin).split())
    return line if len(line) <= most and len(begin) == len(text) else f"{line[: most - 3]}..."
