"""The best and the worst of the cells of a table, where their intervals tell them apart."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Literal, TypeVar

from soakwatch.campaign.tables.cells import CellFigure

Mark = Literal["best", "worst", "tied best", "tied worst", ""]
K = TypeVar("K", bound=Hashable)
TRIFLING = 0.01
"""What two single runs may differ by, as a share of their value, without one being called better."""


def marks(cells: Mapping[K, CellFigure]) -> dict[K, Mark]:
    """Which cells of one figure are the best and the worst, by the figure's direction.

    A cell has the mark if its interval (with fewer than six runs: from the lowest to the highest run) overlaps that of
    no cell behind it; of single runs, if it is more than 1 % of the value away from the next. Cells of exactly the same
    median are tied and have it together. No mark with fewer than two different values, for a figure without a
    direction, or where the generator's limit hides which device is better.

    >>> marks({name: CellFigure("", "higher", value) for name, value in {"a": 3.0, "b": 5.0, "c": 5.0}.items()})
    {'b': 'tied best', 'c': 'tied best', 'a': 'worst'}
    """
    known = {key: cell for key, cell in cells.items() if cell.median is not None and cell.better and cell.ranked}
    if len({cell.median for cell in known.values()}) < 2:
        return {}
    made: dict[K, Mark] = {}
    for word, sign in (("best", 1.0), ("worst", -1.0)):
        top = _front(known, sign)
        if word == "best" and any(known[key].note for key in top):
            continue
        for key in top:
            made[key] = "tied best" if word == "best" else "tied worst"
            if len(top) == 1:
                made[key] = "best" if word == "best" else "worst"
    return made


def _front(cells: Mapping[K, CellFigure], sign: float) -> list[K]:
    """The cells of the best (sign 1) or the worst median (-1), if no other's interval reaches theirs."""

    def rank(cell: CellFigure) -> float:
        assert cell.median is not None
        return cell.median * sign * (1 if cell.better == "higher" else -1)

    most = max(rank(cell) for cell in cells.values())
    top = [key for key, cell in cells.items() if rank(cell) == most]
    others = [cell for key, cell in cells.items() if key not in top]
    return top if all(apart(cells[key], other) for key in top for other in others) else []


def apart(one: CellFigure, other: CellFigure) -> bool:
    """Whether the bounds of two cells do not overlap; of a single run also whether they are more than ``TRIFLING``
    apart, as a share of the larger: nobody knows how far its runs lie apart."""
    (low, high), (least, most) = bounds(one), bounds(other)
    gap = max(least - high, low - most)
    if min(one.n, other.n) > 1:
        return gap > 0
    return gap > TRIFLING * max(abs(low), abs(high), abs(least), abs(most))


def bounds(cell: CellFigure) -> tuple[float, float]:
    """Where the median lies: its interval, else the range of the runs, else the one number there is."""
    assert cell.median is not None
    if cell.low is not None and cell.high is not None:
        return cell.low, cell.high
    if cell.least is not None and cell.most is not None:
        return cell.least, cell.most
    return cell.median, cell.median
