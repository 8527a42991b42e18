"""Holds the readings of a table until it is read to its end, in little memory.

A value takes its eight bytes. Times and lines take none where they come at equal distances, as of most tables, else one
to eight each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from soakwatch.record.merge import unified
from soakwatch.record.model import Values

Ints = NDArray[np.int64]

_MANY, _LONG = 16, 1024
"""So many pieces, or readings, are joined and packed: an array of few numbers takes more for itself than for them."""


@dataclass(frozen=True, slots=True, eq=False)
class PackedInts:
    """Numbers as multiples of ``unit`` above the ``lowest``; without ``multiples`` 0, 1, 2 … times it."""

    lowest: int
    unit: int
    size: int
    multiples: NDArray[np.unsignedinteger] | None

    @classmethod
    def of(cls, numbers: Ints) -> PackedInts:
        """Packs numbers.

        >>> PackedInts.of(np.array([70, 90, 110])).multiples is None, PackedInts.of(np.array([90, 70, 90])).multiples
        (True, array([1, 0, 1], dtype=uint8))
        """
        lowest = int(numbers.min()) if numbers.size else 0
        above = (numbers - lowest).view(np.uint64)
        unit = int(np.gcd.reduce(above)) or 1
        if unit > 1:
            above //= np.uint64(unit)
        if bool((above == np.arange(above.size, dtype=np.uint64)).all()):
            return cls(lowest, unit, numbers.size, None)
        return cls(lowest, unit, numbers.size, above.astype(np.min_scalar_type(int(above.max()))))

    def numbers(self) -> Ints:
        """The numbers, shape (n,)."""
        multiples = np.arange(self.size) if self.multiples is None else self.multiples.astype(np.int64)
        return multiples * self.unit + self.lowest


@dataclass(slots=True)
class PackedOnce:
    """Packs and unpacks times and lines; those that many columns share are packed once, and shared by them again."""

    _times: Sequence[Ints] = ()
    _lines: Sequence[Ints] = ()
    _packed: tuple[PackedInts, PackedInts] | None = None
    _pieces: Sequence[tuple[PackedInts, PackedInts]] = ()
    _unpacked: tuple[Ints, Ints] | None = None

    def pack(self, times: Sequence[Ints], lines: Sequence[Ints]) -> tuple[PackedInts, PackedInts]:
        """The pieces joined and packed."""
        if self._packed is None or not (_same(times, self._times) and _same(lines, self._lines)):
            self._packed = PackedInts.of(np.concatenate(times)), PackedInts.of(np.concatenate(lines))
            self._times, self._lines = tuple(times), tuple(lines)
        return self._packed

    def unpack(self, pieces: Sequence[tuple[PackedInts, PackedInts]]) -> tuple[Ints, Ints]:
        """All times and lines of these pieces."""
        if self._unpacked is None or not _same(pieces, self._pieces):
            self._unpacked = None  # before the others are made
            times, lines = (np.concatenate([piece[which].numbers() for piece in pieces]) for which in (0, 1))
            self._pieces, self._unpacked = tuple(pieces), (times, lines)
        return self._unpacked


def _same(some: Sequence[object], others: Sequence[object]) -> bool:
    return len(some) == len(others) and all(one is other for one, other in zip(some, others, strict=True))


@dataclass(slots=True)
class ReadingStack:
    """The readings of one column, added piece by piece."""

    _once: PackedOnce
    _pieces: list[tuple[PackedInts, PackedInts]] = field(default_factory=list)
    _held: Values = field(default_factory=lambda: np.empty(0))
    _size: int = 0
    _loose: int = 0
    _times: list[Ints] = field(default_factory=list)
    _lines: list[Ints] = field(default_factory=list)
    _values: list[Values] = field(default_factory=list)

    def add(self, time_ns: Ints, line: Ints, value: Values) -> None:
        """Adds a piece; columns may share the arrays of times and lines."""
        self._times.append(time_ns)
        self._lines.append(line)
        self._values.append(value)
        self._loose += value.size
        if len(self._times) >= _MANY or self._loose >= _LONG:
            self._pack()

    def emptied(self) -> tuple[Ints, Ints, Values]:
        """All times, lines and values in the order in which they came; nothing is left."""
        self._pack()
        pieces, value, size = self._pieces, self._held, self._size
        self._pieces, self._held, self._size = [], np.empty(0), 0
        value.resize(size, refcheck=False)
        return *self._once.unpack(pieces), value

    def _pack(self) -> None:
        if not self._times:
            return
        self._pieces.append(self._once.pack(self._times, self._lines))
        joined = unified(self._values)
        if not self._size or joined.dtype != self._held.dtype:
            before = [self._held[: self._size]] if self._size else []
            self._held, self._size = unified([*before, joined]).copy(), self._size + joined.size
        else:
            end = self._size + joined.size
            if end > self._held.size:  # in place: pieces that are joined at the end would take the memory twice
                self._held.resize(max(end, self._held.size * 9 // 8), refcheck=False)
            self._held[self._size : end] = joined
            self._size = end
        self._times, self._lines, self._values, self._loose = [], [], [], 0
