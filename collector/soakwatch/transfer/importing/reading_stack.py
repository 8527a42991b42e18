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

_LOOSE = 16
"""So many pieces are joined to one: an array of a few numbers takes more for itself than for them."""


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
    """Packs pieces of times and lines; those that many columns share are packed once, and shared by them again."""

    _times: Sequence[Ints] = ()
    _lines: Sequence[Ints] = ()
    _packed: tuple[PackedInts, PackedInts] | None = None

    def pack(self, times: Sequence[Ints], lines: Sequence[Ints]) -> tuple[PackedInts, PackedInts]:
        """The pieces joined and packed."""
        if self._packed is None or not (_same(times, self._times) and _same(lines, self._lines)):
            self._packed = PackedInts.of(np.concatenate(times)), PackedInts.of(np.concatenate(lines))
            self._times, self._lines = tuple(times), tuple(lines)
        return self._packed


def _same(some: Sequence[Ints], others: Sequence[Ints]) -> bool:
    return len(some) == len(others) and all(one is other for one, other in zip(some, others, strict=True))


@dataclass(slots=True)
class ReadingStack:
    """The readings of one column, added piece by piece."""

    _once: PackedOnce
    _packed: list[tuple[PackedInts, PackedInts, Values]] = field(default_factory=list)
    _times: list[Ints] = field(default_factory=list)
    _lines: list[Ints] = field(default_factory=list)
    _values: list[Values] = field(default_factory=list)

    def add(self, time_ns: Ints, line: Ints, value: Values) -> None:
        """Adds a piece; columns may share the arrays of times and lines."""
        self._times.append(time_ns)
        self._lines.append(line)
        self._values.append(value)
        if len(self._times) >= _LOOSE:
            self._pack()

    def emptied(self) -> tuple[Ints, Ints, Values]:
        """All times, lines and values in the order in which they came; nothing is left."""
        if self._times:
            self._pack()
        pieces, self._packed = self._packed, []
        times = np.concatenate([time.numbers() for time, _, _ in pieces])
        lines = np.concatenate([line.numbers() for _, line, _ in pieces])
        return times, lines, unified([value for _, _, value in pieces])

    def _pack(self) -> None:
        self._packed.append((*self._once.pack(self._times, self._lines), unified(self._values)))
        self._times, self._lines, self._values = [], [], []
