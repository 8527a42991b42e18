"""Texts as SQLite can keep them."""

from __future__ import annotations


def storable(text: str) -> str:
    r"""The text, with what UTF-8 cannot carry (half of a surrogate pair, as in undecodable file names) escaped.

    >>> storable("a\udcffb")
    'a\\udcffb'
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="backslashreplace").decode()
    return text
