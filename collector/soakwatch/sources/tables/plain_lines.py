"""Splits lines of a table into cells all at once: the quick way for lines that need no CSV reader.

A block of lines is *plain* if each has the same number of cells, and none has a quote but around a whole cell, a line
end within a cell, or a sign below the blank. What is not plain is left to the ``csv`` module: it gives the same cells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import overload

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]

MAX_LINE = 1 << 20
"""Longest line: a file without line ends is no table, and must not fill memory."""
MAX_CELL = 512
"""Longest cell in bytes: columns are padded to their widest cell."""
_LINE_END, _TAB, _BLANK, _QUOTE, _COMMENT = 10, 9, 32, 34, 35
_WORD = 8
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_SPACE = re.compile(r"[^\S\x00-\x7f]")  # to the csv module's caller, a line of these is blank


class PlainCells(Sequence[str]):
    """A column of a block of lines. Its cells are texts; as arrays of bytes they are read without making these."""

    def __init__(self, data: Bytes, first: Ints, end: Ints) -> None:
        self._data, self._first, self._size = data, first, end - first

    @classmethod
    def of(cls, matrix: Bytes) -> PlainCells:
        """The rows of a matrix of bytes, none of them zero."""
        first = np.arange(matrix.shape[0]) * matrix.shape[1]
        return cls(np.concatenate([matrix.ravel(), np.zeros(MAX_CELL, np.uint8)]), first, first + matrix.shape[1])

    def __len__(self) -> int:
        return self._first.size

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return list(self)[index]
        first = int(self._first[index])
        return self._data[first : first + int(self._size[index])].tobytes().decode()

    def __iter__(self) -> Iterator[str]:
        return iter([text.decode() for text in self.texts.tolist()])

    @cached_property
    def is_ascii(self) -> bool:
        """Whether all cells are."""
        return bool((self.matrix() < 128).all())

    @cached_property
    def texts(self) -> NDArray[np.bytes_]:
        """The cells, shape (n,)."""
        return as_texts(self._padded(max(1, int(self._size.max(initial=0)))))

    @cached_property
    def words(self) -> NDArray[np.uint64]:
        """The cells as numbers, eight bytes each, shape (n, m): two cells are equal if theirs are."""
        width = -(-max(1, int(self._size.max(initial=0))) // _WORD) * _WORD
        return np.ascontiguousarray(self._padded(width)).view(np.uint64)

    def matrix(self) -> Bytes:
        """The bytes of each cell, shape (n, width), zero behind its end."""
        return self.texts.view(np.uint8).reshape(len(self), -1)

    def without_repeats(self) -> tuple[PlainCells, Ints]:
        """The cells that differ from the one before, and for each cell its place among these, shape (n,)."""
        texts = self.texts
        new = np.ones(texts.size, dtype=np.bool_)
        np.not_equal(texts[1:], texts[:-1], out=new[1:])
        if bool(new.all()):
            return self, np.arange(texts.size)
        first = self._first[new]
        return PlainCells(self._data, first, first + self._size[new]), np.cumsum(new) - 1

    def _padded(self, width: int) -> Bytes:
        cells = np.lib.stride_tricks.sliding_window_view(self._data, width)[self._first]
        if bool((self._size < width).any()):
            cells[np.arange(width) >= self._size[:, None]] = 0
        return cells


def as_texts(matrix: Bytes) -> NDArray[np.bytes_]:
    """The rows of a matrix of bytes as texts."""
    return np.ascontiguousarray(matrix).view(f"S{matrix.shape[1]}")[:, 0]


def split_plainly(text: str, delimiter: str, width: int) -> tuple[Ints, tuple[PlainCells, ...]] | None:
    """The index of each row's line (0 is the first line of ``text``), and the cells by column; None if it is not plain.

    Blank lines and comments are left out, and what is beyond ``width`` cells.
    """
    sign = ord(delimiter)
    if not (sign == _TAB or _BLANK < sign < 127) or sign == _QUOTE or (not text.isascii() and _SPACE.search(text)):
        return None
    encoded = text.encode()
    if b"\r" in encoded:
        encoded = encoded.replace(b"\r\n", b"\n")
    if not encoded.endswith(b"\n"):
        encoded += b"\n"
    data = np.frombuffer(encoded + bytes(MAX_CELL), dtype=np.uint8)
    body = data[: len(encoded)]
    is_line_end = body == _LINE_END
    low = int((body < _BLANK).sum())
    is_cell_end = is_line_end | (body == sign)
    if low != int(is_line_end.sum()) + (int((body == _TAB).sum()) if sign == _TAB else 0):
        return None
    ends = np.flatnonzero(is_cell_end)
    line_ends = np.flatnonzero(is_line_end)
    begins = np.concatenate([[0], line_ends[:-1] + 1])
    lines = np.arange(line_ends.size)
    if int((line_ends - begins).max()) >= MAX_LINE - 2:
        return None
    kept = (line_ends > begins) & (body[begins] != _COMMENT)
    if not bool(kept.all()):
        ends = ends[kept[np.searchsorted(line_ends, ends)]]
        lines, begins, line_ends = lines[kept], begins[kept], line_ends[kept]
    if not lines.size:
        return lines, ()
    cells = ends.size // lines.size
    if cells < width or ends.size != cells * lines.size:
        return None
    by_line = ends.reshape(lines.size, cells)
    if not bool((by_line[:, -1] == line_ends).all()):
        return None
    ends = by_line.T[:width].copy()
    firsts = np.empty_like(ends)
    firsts[0] = begins
    firsts[1:] = ends[:-1] + 1
    plain = _trimmed(data, firsts, ends, sign, quotes=int((body == _QUOTE).sum()))
    if plain is None:
        return None
    return lines, tuple(PlainCells(data, first, end) for first, end in zip(*plain, strict=True))


def _trimmed(data: Bytes, firsts: Ints, ends: Ints, sign: int, quotes: int) -> tuple[Ints, Ints] | None:
    """The cells without blanks before them and quotes around them; None if they are not plain."""
    led = data[firsts] == _BLANK  # a cell that is empty begins with its end
    if bool(led.any()):
        if sign == _TAB:
            return None
        while bool(led.any()):
            firsts = firsts + led
            led = data[firsts] == _BLANK
    if quotes:
        quoted = (data[firsts] == _QUOTE) & (data[ends - 1] == _QUOTE) & (ends - firsts >= 2)
        if 2 * int(quoted.sum()) != quotes:
            return None
        firsts, ends = firsts + quoted, ends - quoted
    size = ends - firsts
    if int(size.max()) > MAX_CELL or int(size.sum(axis=0).min()) == 0 or bool((data[firsts[0]] == _COMMENT).any()):
        return None
    return firsts, ends


def codes_of(columns: Sequence[Sequence[str]]) -> tuple[list[tuple[str, ...]], Ints]:
    """The different rows of some columns in the order in which they come, and for each row its place among these."""
    plain = [column for column in columns if isinstance(column, PlainCells)]
    if plain and all(isinstance(column, PlainCells) or not any(column) for column in columns):
        found = _hashed(plain)
        if found is not None:
            first, coded = found
            return [tuple(column[index] for column in columns) for index in first.tolist()], coded
    codes: dict[tuple[str, ...], int] = {}
    rows = zip(*columns, strict=True)
    coded = np.fromiter((codes.setdefault(row, len(codes)) for row in rows), np.int64, len(columns[0]))
    return list(codes), coded


def _hashed(columns: Sequence[PlainCells]) -> tuple[Ints, Ints] | None:
    """Where each different row comes first, and for each row its place among these; None if two rows have one hash."""
    words = np.hstack([column.words for column in columns])
    mixed = np.zeros(words.shape[0], dtype=np.uint64)
    for word in words.T:
        mixed = (mixed ^ word) * _FACTOR
        mixed ^= mixed >> np.uint64(29)
    _, first, place = np.unique(mixed, return_index=True, return_inverse=True)
    if not np.array_equal(words, words[first[place]]):
        return None
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return first[order], rank[place]
