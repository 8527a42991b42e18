"""Suggests the nearest known word for a misspelt one."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_MAX_SUGGESTIONS = 12


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word most like ``word``, ignoring case; None if none is near.

    >>> nearest("intervall", ["interval", "timeout"]), nearest("zzz", ["interval"])
    ('interval', None)
    """
    by_lower = {name.lower(): name for name in known}
    matches = get_close_matches(word.lower(), list(by_lower), n=1, cutoff=0.6)
    return by_lower[matches[0]] if matches else None


def hint(word: str, known: Iterable[str]) -> str:
    """The end of an error about an unknown word: the nearest known one, else all if they are few.

    >>> hint("intervall", ["interval"]), hint("x", ["b", "a"]), hint("x", [])
    ("; did you mean 'interval'?", '; known here: a, b', '; nothing is known here')
    """
    names = sorted(known)
    near = nearest(word, names)
    if near is not None:
        return f"; did you mean {near!r}?"
    if not names:
        return "; nothing is known here"
    return f"; known here: {', '.join(names[:_MAX_SUGGESTIONS])}" + (" …" if len(names) > _MAX_SUGGESTIONS else "")
