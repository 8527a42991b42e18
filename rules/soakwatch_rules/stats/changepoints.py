"""Change points of a short history: an energy statistic places them, a t test confirms them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from soakwatch_model.series import Floats
from soakwatch_rules.stats.distributions import student_cdf
from soakwatch_rules.stats.medians import median

WINDOW = 50
"""Values examined at once; a long history is examined in pieces that overlap by half."""
_WEAK = 10.0  # a point is first accepted at ten times the probability: neighbours may be needed to make it clear


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """``index`` is the first value of the new level; ``before`` and ``after`` are the medians on both sides up to the
    neighbouring points; ``p`` is the probability of such a difference without a change (t test)."""

    index: int
    before: float
    after: float
    p: float

    @property
    def change(self) -> float:
        """The change relative to the level before; infinite from zero."""
        if self.before:
            return (self.after - self.before) / abs(self.before)
        return math.copysign(math.inf, self.after) if self.after else 0.0


def history(
    values: Sequence[float] | Floats, *, alpha: float = 0.001, least: float = 0.05, window: int = WINDOW
) -> tuple[ChangePoint, ...]:
    """The change points of one value a run, in time order; NaN and infinities are left out (indices stay).

    Each piece of ``window`` values is split repeatedly where the energy statistic Q (mean distance between both sides
    minus half the mean distances within them, times nm/(n+m)) is largest, while a two-sided t test with pooled variance
    gives p < 10·``alpha``. Then the least credible or smallest point is removed, one at a time, until each has p <
    ``alpha`` and a change of at least ``least`` (a ratio) of both medians and means. There are no random permutations,
    so the answer is reproducible.

    Wrong for histories that drift (a slope becomes a staircase) and for a single odd run next to a real change, which
    may shift the index by one.

    >>> [(c.index, round(c.change, 2)) for c in history([10.0, 10.1, 9.9, 10.0, 12.0, 12.1, 11.9, 12.0])]
    [(4, 0.2)]

    References: D. S. Matteson, N. A. James, A nonparametric approach for multiple change point analysis of
    multivariate data, JASA 109, 2014 (the statistic; its permutation test is replaced); M. Fleming, P. Kolaczkowski
    and others, Hunter: using change point detection to hunt for performance regressions, ICPE 2023 (windows, t
    test, taking back).
    """
    given = np.asarray(values, dtype=np.float64)
    kept = np.flatnonzero(np.isfinite(given))
    value = given[kept]
    largest = float(np.max(np.abs(value), initial=0.0))
    if value.size < 4 or largest == 0.0:
        return ()
    value = value / largest  # prevents overflow, and makes the result independent of the unit
    matches: set[int] = set()
    begin = 0
    while True:
        end = min(value.size, begin + max(window, 4))
        matches |= {begin + index for index in _split(value[begin:end], _WEAK * alpha)}
        if end == value.size:
            break
        begin += max(window, 4) // 2
    points = _taken_back(value, sorted(matches), alpha, least)
    return tuple(
        ChangePoint(int(kept[p.index]), p.before * largest, p.after * largest, p.p)
        for p in points
        if math.isfinite(p.before * largest) and math.isfinite(p.after * largest)
    )


def _split(value: Floats, alpha: float) -> list[int]:
    """The indices at which a piece is split, in no order."""
    open_pieces, matches = [(0, value.size)], []
    while open_pieces:
        begin, end = open_pieces.pop()
        if end - begin < 4:
            continue
        index = begin + best_split(value[begin:end])
        if probability(value[begin:index], value[index:end]) < alpha:
            matches.append(index)
            open_pieces += [(begin, index), (index, end)]
    return matches


def best_split(value: Floats) -> int:
    """The first index of the right side where the energy statistic is largest; at least one value on each side."""
    n = value.size
    apart = np.abs(value[:, None] - value[None, :])
    rows = np.zeros((n + 1, n + 1))
    rows[1:, 1:] = apart.cumsum(axis=0).cumsum(axis=1)
    k = np.arange(1, n)
    left, both = rows[k, k], rows[n, n]
    across = rows[k, n] - left
    right = both - left - 2 * across
    m = n - k
    within = left / np.maximum(k * (k - 1), 1) + right / np.maximum(m * (m - 1), 1)
    q = (k * m / n) * (2 * across / (k * m) - within)
    return int(np.argmax(q)) + 1


def probability(left: Floats, right: Floats) -> float:
    """Two-sided p of a t test with pooled variance; 0 for two different constants, 1 for too few values."""
    n, m = left.size, right.size
    if n + m < 3 or not n or not m:
        return 1.0
    apart = abs(float(right.mean() - left.mean()))
    squares = float(((left - left.mean()) ** 2).sum() + ((right - right.mean()) ** 2).sum())
    error = math.sqrt(squares / (n + m - 2) * (1 / n + 1 / m))
    if error <= 1e-12 * max(abs(float(left.mean())), abs(float(right.mean()))):
        return 0.0 if apart > error else 1.0
    return 2.0 * float(student_cdf(n + m - 2, -apart / error))


def _taken_back(value: Floats, positions: list[int], alpha: float, least: float) -> list[ChangePoint]:
    while True:
        edges = [0, *positions, value.size]
        points = [_point(value, edges, i) for i in range(1, len(edges) - 1)]
        sizes = [_size(value, edges, i, point) for i, point in enumerate(points, 1)]
        doubtful = [
            (p.p >= alpha, p.p if p.p >= alpha else -size, p.index)
            for p, size in zip(points, sizes, strict=True)
            if not (p.p < alpha and size >= least)
        ]
        if not doubtful:
            return points
        worst = max(doubtful)[2]
        positions = [i for i in positions if i != worst]


def _point(value: Floats, edges: list[int], i: int) -> ChangePoint:
    left, right = value[edges[i - 1] : edges[i]], value[edges[i] : edges[i + 1]]
    return ChangePoint(edges[i], median(left), median(right), probability(left, right))


def _size(value: Floats, edges: list[int], i: int, point: ChangePoint) -> float:
    """The smaller of the changes of medians and means, so that neither one odd run nor a drift makes a point."""
    left, right = (float(value[edges[j] : edges[j + 1]].mean()) for j in (i - 1, i))
    return min(abs(point.change), abs(ChangePoint(0, left, right, 0.0).change))
