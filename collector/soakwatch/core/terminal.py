"""Text that a terminal can show: characters that its encoding lacks are replaced by plainer ones."""

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
    """Whether an encoding has all of these signs.

    >>> spells("utf-8", "▁█"), spells("latin-1", "▁█"), spells("no-such", "a")
    (True, False, False)
    """
    try:
        signs.encode(encoding)
    except (UnicodeError, LookupError):
        return False
    return True


def encodable(text: str, encoding: str) -> str:
    """The text in signs that the encoding has; what has no likeness there is a question mark.

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
