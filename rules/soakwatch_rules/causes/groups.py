"""Groups: which findings have been joined so far."""

from __future__ import annotations

from collections.abc import Iterable


class Groups:
    """Places that are joined step by step; a joined group has one root, its lowest place."""

    def __init__(self, size: int) -> None:
        self._above = list(range(size))

    def root(self, place: int) -> int:
        """The group's lowest place."""
        while self._above[place] != place:
            self._above[place] = self._above[self._above[place]]
            place = self._above[place]
        return place

    def join(self, places: Iterable[int]) -> None:
        """All of these belong together."""
        roots = sorted({self.root(place) for place in places})
        for root in roots[1:]:
            self._above[root] = roots[0]

    def joined(self, places: Iterable[int]) -> list[list[int]]:
        """The groups among these places, each in order, in the order of their lowest place."""
        found: dict[int, list[int]] = {}
        for place in sorted(places):
            found.setdefault(self.root(place), []).append(place)
        return list(found.values())
