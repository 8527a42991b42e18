"""What is remembered of each set of series that came together: of a source the sets that came last, and no more.

A source mostly sends the same few sets, each again and again. Where processes come and go nearly every poll is another
one, and most never come back: what is known of those that came long ago is forgotten.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

from soakwatch.record.follow import Table

MAX_SETS = 64
"""Sets of series that are remembered of one source."""

TableSet = tuple[tuple[int, ...], str]
T = TypeVar("T")


class TableSets(Generic[T]):
    """Something for each set of series, by source; the sets of a source that came last."""

    def __init__(self) -> None:
        self._of: dict[int, OrderedDict[TableSet, T]] = {}

    def get(self, source: int, of: TableSet) -> T | None:
        """What was kept last for a set; None for one that is new, or forgotten."""
        sets = self._of.get(source)
        return None if sets is None else sets.get(of)

    def keep(self, source: int, of: TableSet, what: T) -> None:
        """Remember it for the set, which came just now."""
        sets = self._of.setdefault(source, OrderedDict())
        sets[of] = what
        sets.move_to_end(of)
        if len(sets) > MAX_SETS:
            sets.popitem(last=False)


def set_of(table: Table) -> TableSet:
    """The set of series of a table, with their kinds."""
    return table.series, table.kinds
