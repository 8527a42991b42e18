"""Replaces characters that a terminal's encoding lacks by plainer ones."""

from __future__ import annotations

import unicodedata

_PLAIN = {
    "✗": "x",
    "✓": "+",
    "–": "-",
    "—": "-",
    "…": "...",
    "±": "+-",
    "µ": "u",
    "·": "-",
    "→": "->",
    "×": "x",
    "°": " ",
    "≥": ">=",
    "≤": "<=",
    "━": "#",
    "─": "-",
    "│": "|",
    "█": "#",
    "░": ".",
    "▲": "^",
    "“": '"',
    "”": '"',
    "’": "'",
}


def spells(encoding: str, signs: str) -> bool:
    """True if an encoding has all of these characters.

    >>> spells("utf-8", "▁█"), spells("latin-1", "▁█"), spells("no-such", "a")
    (True, False, False)
    """
    try:
        signs.encode(encoding)
    except (UnicodeError, LookupError):
        return False
    return True


def encodable(text: str, encoding: str) -> str:
    """The text in characters that the encoding has; one without a plain form becomes a question mark.

    >>> encodable("✗ 5 µs ± 1 … é", "ascii"), encodable("✗ ±", "utf-8")
    ('x 5 us +- 1 ... e', '✗ ±')
    """
    if spells(encoding, text):
        return text
    return "".join(char if spells(encoding, char) else _likeness(char, encoding) for char in text)


def _likeness(char: str, encoding: str) -> str:
    plain = _PLAIN.get(char)
    if plain is None:
        plain = "".join(part for part in unicodedata.normalize("NFKD", char) if not unicodedata.combining(part))
    return plain if plain and spells(encoding, plain) else "?"
