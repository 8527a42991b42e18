"""Whatever somebody sent, as text that can be shown: printable, in one line, and not too long."""

from __future__ import annotations

LINE = 500
WORD = 200


def shown(said: str | bytes, most: int = LINE) -> str:
    r"""Printable text of at most ``most`` characters; what is not printable becomes a space, the end "…" if cut.

    >>> shown(b"link\x1b[31m down\r\n")
    'link [31m down'
    """
    if isinstance(said, bytes):
        said = said[: 4 * most].decode("utf-8", "replace")
    cut = len(said) > most
    said = "".join(char if char.isprintable() else " " for char in said[: most + 1]).strip()
    return f"{said[: most - 1]}…" if cut else said


def octets(said: bytes, most: int = WORD) -> str:
    """An octet string as text if it is some, else in hexadecimal."""
    body = said.rstrip(b"\0")
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if body and all(char.isprintable() or char in "\r\n\t" for char in text) and text:
        return shown(text, most)
    return shown(said[:most].hex(" "), most) if said else ""
