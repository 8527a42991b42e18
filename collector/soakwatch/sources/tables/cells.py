"""Parses table cells as numbers: missing ones are NaN, other text is marked as bad."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MISSING = frozenset({"", "nan", "null", "none", "na", "n/a", "-", "--", "nil", "nat", "?", "#n/a"})
_GROUPED = {
    ".": re.compile(r"[+-]?\d{1,3}(?:([,' \u00a0\u2009\u202f])\d{3})(?:\1\d{3})*(?:\.\d*)?"),
    ",": re.compile(r"[+-]?\d{1,3}(?:([.' \u00a0\u2009\u202f])\d{3})(?:\1\d{3})*(?:,\d*)?"),
}


class Numbers(NamedTuple):
    """Numbers, shape (n,), NaN if missing or bad, and which cells are bad: neither number nor missing."""

    value: NDArray[np.float64]
    bad: NDArray[np.bool_]


def numbers(cells: Sequence[str], decimal: str = ".") -> Numbers:
    """Parses cells.

    >>> made = numbers(["1.5", "", "1,234,567", "x", "inf"])
    >>> made.value.tolist(), made.bad.tolist()
    ([1.5, nan, 1234567.0, nan, nan], [False, False, False, True, True])
    """
    value = _quickly(cells) if decimal == "." else None
    if value is None:
        value = np.fromiter((_number(cell, decimal) for cell in cells), np.float64, len(cells))
    bad = np.isinf(value)
    value[bad] = np.nan
    return Numbers(value, bad)


def middle(sizes: NDArray[np.float64]) -> float:
    """The upper median: cannot overflow.

    >>> middle(np.array([3.0, 1.0, 1e308, 1e308]))
    1e+308
    """
    index = sizes.size // 2
    return float(np.partition(sizes, index)[index])


def whole(cells: Sequence[str]) -> NDArray[np.int64] | NDArray[np.uint64] | None:
    """The cells as exact 64-bit integers; None if one of them is no integer."""
    try:
        return np.array(list(cells), dtype=np.int64)
    except (ValueError, OverflowError):
        pass
    try:
        return np.array(list(cells), dtype=np.uint64)
    except (ValueError, OverflowError):
        return None


def _quickly(cells: Sequence[str]) -> NDArray[np.float64] | None:
    try:
        return np.array(list(cells), dtype=np.float64)
    except ValueError:
        return None


def _number(cell: str, decimal: str) -> float:
    """The number in a cell; NaN if it is missing, infinity if it is bad."""
    text = cell.strip()
    if text.lower() in MISSING:
        return math.nan
    match = _GROUPED[decimal].fullmatch(text)
    if match:
        text = text.replace(match[1], "")
    if decimal == ",":
        text = text.replace(".", "x").replace(",", ".")  # a point is invalid here
    try:
        return float(text) if "_" not in text else math.inf
    except ValueError:
        return math.inf
