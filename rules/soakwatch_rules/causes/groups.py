"""Groups of findings that have been joined so far (union-find)."""

from __future__ import annotations

from collections.abc import Iterable


class Groups:
    """Indexes that are joined step by step; the root of a group is its lowest index."""

    def __init__(self, size: int) -> None:
        self._above = list(range(size))

    def root(self, index: int) -> int:
        """The lowest index of the group."""
        while self._above[index] != index:
            self._above[index] = self._above[self._above[index]]
            index = self._above[index]
        return index

    def join(self, indexes: Iterable[int]) -> None:
        """Joins the groups of these indexes."""
        roots = sorted({self.root(index) for index in indexes})
        for root in roots[1:]:
            self._above[root] = roots[0]

    def joined(self, indexes: Iterable[int]) -> list[list[int]]:
        """The groups among these indexes, each sorted, ordered by their roots."""
        groups: dict[int, list[int]] = {}
        for index in sorted(indexes):
            groups.setdefault(self.root(index), []).append(index)
        return list(groups.values())
