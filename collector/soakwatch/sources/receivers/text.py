"""Received text made safe to show: printable, on one line, bounded."""

from __future__ import annotations

LINE = 500
WORD = 200


def shown(text: str | bytes, most: int = LINE) -> str:
    r"""Printable text of at most ``most`` characters: others become spaces, and a cut text ends in "…".

    >>> shown(b"link\x1b[31m down\r\n")
    'link [31m down'
    """
    if isinstance(text, bytes):
        text = text[: 4 * most].decode("utf-8", "replace")
    cut = len(text) > most
    text = "".join(char if char.isprintable() else " " for char in text[: most + 1]).strip()
    return f"{text[: most - 1]}…" if cut else text


def octets(data: bytes, most: int = WORD) -> str:
    """An octet string as text if it is printable, else in hexadecimal."""
    body = data.rstrip(b"\0")
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if body and all(char.isprintable() or char in "\r\n\t" for char in text) and text:
        return shown(text, most)
    return shown(data[:most].hex(" "), most) if data else ""
