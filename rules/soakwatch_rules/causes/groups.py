"""Groups: which findings have been joined so far."""

from __future__ import annotations

from collections.abc import Iterable


class Groups:
    """Places that are joined step by step; a joined group has one root, its lowest place."""

    def __init__(self, size: int) -> None:
        self._above = list(range(size))

    def root(self, index: int) -> int:
        """The group's lowest place."""
        while self._above[index] != index:
            self._above[index] = self._above[self._above[index]]
            index = self._above[index]
        return index

    def join(self, indexes: Iterable[int]) -> None:
        """All of these belong together."""
        roots = sorted({self.root(index) for index in indexes})
        for root in roots[1:]:
            self._above[root] = roots[0]

    def joined(self, indexes: Iterable[int]) -> list[list[int]]:
        """The groups among these indexes, each in order, in the order of their lowest place."""
        groups: dict[int, list[int]] = {}
        for index in sorted(indexes):
            groups.setdefault(self.root(index), []).append(index)
        return list(groups.values())
