"""The series of a case, read when a rule looks at them: a hundred of three days are 160 MB, and few are kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar, overload

T_co = TypeVar("T_co", covariant=True)


class SeriesOnDemand(Sequence[T_co], Generic[T_co]):
    """A sequence of ``number`` items that are made by their index each time they are asked for, and not kept."""

    __slots__ = ("_make", "_number")

    def __init__(self, number: int, make: Callable[[int], T_co]) -> None:
        self._number, self._make = number, make

    def __len__(self) -> int:
        return self._number

    @overload
    def __getitem__(self, index: int) -> T_co: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T_co]: ...
    def __getitem__(self, index: int | slice) -> T_co | Sequence[T_co]:
        if isinstance(index, slice):
            chosen = range(self._number)[index]
            return SeriesOnDemand(len(chosen), lambda i: self._make(chosen[i]))
        return self._make(range(self._number)[index])
