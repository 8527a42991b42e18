"""Typed access to JSON values: the expected type, or an empty value."""

from __future__ import annotations

import math
from collections.abc import Mapping

_MAX_NUMBER = 2**64


def mapping(value: object) -> Mapping[str, object]:
    """A JSON object, or an empty one."""
    return value if isinstance(value, dict) else {}


def listing(value: object) -> list[object]:
    """A JSON array, or an empty one."""
    return value if isinstance(value, list) else []


def word(value: object) -> str:
    """A text, or an empty one."""
    return value if isinstance(value, str) else ""


def number(value: object) -> int | float | None:
    """A finite number, an int as an int; None for anything else.

    >>> number(18446744073709551615), number(True), number(float("inf")), number("7")
    (18446744073709551615, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, int):
        return value if -_MAX_NUMBER < value < _MAX_NUMBER else None
    return value if math.isfinite(value) else None


def count(value: object) -> int | None:
    """An integer from 0 to 2^64 - 1; None for anything else."""
    exact = number(value)
    return exact if isinstance(exact, int) and exact >= 0 else None


def total(parts: object) -> int | None:
    """The sum of the counters of all ports (``{"0": 12, "1": 3}``); None if there are none or one cannot be read."""
    counts = [count(part) for part in mapping(parts).values()]
    known = [part for part in counts if part is not None]
    return sum(known) if known and len(known) == len(counts) else None
