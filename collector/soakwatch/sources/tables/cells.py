"""Parses table cells as numbers: missing ones are NaN, other text is marked as bad."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from soakwatch.sources.tables.plain_lines import PlainCells

MISSING = frozenset({"", "nan", "null", "none", "na", "n/a", "-", "--", "nil", "nat", "?", "#n/a"})
_GROUPED = {
    ".": re.compile(r"[+-]?\d{1,3}(?:([,' \u00a0\u2009\u202f])\d{3})(?:\1\d{3})*(?:\.\d*)?"),
    ",": re.compile(r"[+-]?\d{1,3}(?:([.' \u00a0\u2009\u202f])\d{3})(?:\1\d{3})*(?:,\d*)?"),
}


def _signs(decimal: str) -> NDArray[np.bool_]:
    """Which bytes numbers without groups are made of, and what is behind the end of a cell."""
    plain = np.zeros(256, dtype=np.bool_)
    plain[[0, *f"0123456789+-eE{decimal}".encode()]] = True
    return plain


_PLAIN = {decimal: _signs(decimal) for decimal in _GROUPED}
Kind = TypeVar("Kind", np.int64, np.uint64, np.float64)


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
    if value is None and isinstance(cells, PlainCells):
        value = _mostly_quickly(cells, decimal)
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
        return _as(np.int64, cells)
    except (ValueError, OverflowError):
        pass
    try:
        return _as(np.uint64, cells)
    except (ValueError, OverflowError):
        return None


def _quickly(cells: Sequence[str]) -> NDArray[np.float64] | None:
    try:
        return _as(np.float64, cells)
    except ValueError:
        return None


def _as(kind: type[Kind], cells: Sequence[str]) -> NDArray[Kind]:
    """All cells as numbers of a kind. Raises ValueError and OverflowError."""
    if isinstance(cells, PlainCells) and cells.is_ascii:  # digits of other scripts are numbers in texts only
        return cells.texts.astype(kind)
    return np.array(list(cells), dtype=kind)


def _mostly_quickly(cells: PlainCells, decimal: str) -> NDArray[np.float64] | None:
    """All cells as numbers, those that are of plain signs at once and the others one by one; NaN and infinity as in
    ``_number``. None if a cell of plain signs is none."""
    matrix = cells.matrix()
    plain = _PLAIN[decimal][matrix].all(axis=1) & ((matrix >= ord("0")) & (matrix <= ord("9"))).any(axis=1)
    texts = np.where(matrix == ord(decimal), np.uint8(ord(".")), matrix).view(cells.texts.dtype)[plain, 0]
    value = np.empty(len(cells), dtype=np.float64)
    try:
        value[plain] = texts.astype(np.float64)
    except ValueError:
        return None
    rest = np.flatnonzero(~plain)
    value[rest] = [_number(cells[index], decimal) for index in rest.tolist()]
    return value


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
