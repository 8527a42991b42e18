"""Shape averaging: how likely is growth at the end of the run, over all shapes that a series may have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from soakwatch_model.series import Floats, Ints, Mask
from soakwatch_rules.stats.distributions import normal_cdf, student_cdf
from soakwatch_rules.stats.series_shapes import FAMILIES, PERIODS, RHO, SEEN, ShapeTable, edge, table, whitened
from soakwatch_rules.stats.stairs import MAX_STEPS, log_placements, stairs

_SHIFT: Final = 0.25  # prior probability of one lasting step more than the shape has
_MIN_WEIGHT: Final = 1e-6
_MAX_PARTS: Final = 300  # parts that suffice for an interval
_FREE: Final = np.array([family.free for family in FAMILIES])
_TURNS: Final = np.array([family.turns for family in FAMILIES])
_CYCLE: Final = [family.name for family in FAMILIES].index("cycle")
_STAIRS, _LEAK_IN_STEPS = ([family.name for family in FAMILIES].index(name) for name in ("stairs", "leak in steps"))
_SHIFTED: Final = tuple(i for i, family in enumerate(FAMILIES) if family.shift)


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """The parts of the mixture: weights, and the slope at the end of the run (per run) as Student's t: middle, scale,
    freedom.

    ``family`` indexes FAMILIES; ``bends`` is where a shape bends (share of the run); ``steepest`` the steepest slope of
    a cycle (0 for other shapes); ``correlation`` the mean over the parts.
    """

    weight: Floats
    middle: Floats
    scale: Floats
    freedom: Floats
    family: Ints
    bends: Floats
    steepest: Floats
    correlation: float

    def above(self, limit: float) -> tuple[float, float, float]:
        """P(slope at the end > limit): over all shapes; among shapes whose end slope is fitted; and the share of the
        first that these hold.

        The second ignores the prior weight of shapes that come to rest: short, noisy readings do not exclude those,
        which is no evidence that nothing grows. The third matters because what rests later may still be steep at the
        end, and a straight line cannot tell it from growth.
        """
        each, free = self._each(limit), _FREE[self.family]
        total, open_ended = float(self.weight[free].sum()), float(each[free].sum())
        return min(1.0, float(each.sum())), min(1.0, open_ended / total) if total > 0 else 0.0, min(1.0, open_ended)

    def without(self, name: str, limit: float) -> float:
        """P(slope at the end > limit) over the other families; 0 if these have no weight."""
        others = self.family != [family.name for family in FAMILIES].index(name)
        total = float(self.weight[others].sum())
        return float(self._each(limit)[others].sum()) / total if total > 0 else 0.0

    def _each(self, limit: float) -> Floats:
        """For each part, its weight times P(slope at the end > limit)."""
        known = self.scale > 0
        off = np.clip((self.middle - limit) / np.where(known, self.scale, 1.0), -1e6, 1e6)
        result: Floats = self.weight * np.where(known, student_cdf(self.freedom, off), self.middle > limit)
        return result

    def blur(self) -> float:
        """The standard error of a fitted end slope: root mean square over the shapes that fit one."""
        free = _FREE[self.family]
        total = float(self.weight[free].sum())
        return float(np.sqrt(self.weight[free] @ self.scale[free] ** 2 / total)) if total > 0 else 0.0

    def turning(self, limit: float, small: float = 0.0) -> float:
        """The weight of cycles about as long as the run that exceed the limit somewhere and swing by more than
        ``small`` from trough to peak."""
        return float(self.weight[self._turns(limit, small)].sum())

    def _turns(self, limit: float, small: float) -> Mask:
        # the steepest slope of a wave is its swing times pi over its period
        swings = self.steepest * self.bends > np.pi * small
        result: Mask = _TURNS[self.family] & (self.steepest > limit) & swings
        return result

    def came_back(self, limit: float, small: float, value: Floats) -> float:
        """The weight of those cycles that were seen whole and end no higher than one period earlier.

        A wave of any form has the same height one period apart; a difference is growth.
        """
        some, n = max(2, value.size // 32), value.size
        last = float(value[-some:].mean())
        came = np.zeros(len(PERIODS), dtype=np.bool_)
        for index, period in enumerate(PERIODS):
            end = n - round(period * n)
            if SEEN < period <= 1:
                before = float(value[max(0, end - some) : max(end, some)].mean())
                came[index] = last - before <= limit * period
        which = np.searchsorted(PERIODS, self.bends).clip(0, len(PERIODS) - 1)
        turns = self._turns(limit, small) & (self.family == _CYCLE)
        return float(self.weight[turns & came[which]].sum())

    def quantiles(self, low: float, high: float) -> tuple[float, float]:
        """Two quantiles of the slope, by bisection; each part is approximated by a normal of the same spread."""
        heavy = np.argsort(-self.weight, kind="stable")[:_MAX_PARTS]
        weight, middle = self.weight[heavy] / self.weight[heavy].sum(), self.middle[heavy]
        freedom = np.maximum(self.freedom[heavy], 3.0)
        spread = np.maximum(self.scale[heavy] * np.sqrt(freedom / (freedom - 2)), 1e-300)
        bounds = float((middle - 9 * spread).min()), float((middle + 9 * spread).max())
        matches = []
        for share in (low, high):
            begin, end = bounds
            for _ in range(24):
                half = 0.5 * (begin + end)
                below = float(weight @ normal_cdf((half - middle) / spread))
                begin, end = (half, end) if below < share else (begin, half)
            matches.append(0.5 * (begin + end))
        return matches[0], matches[1]

    def families(self) -> dict[str, float]:
        """Weight of each family, heaviest first."""
        sums = np.bincount(self.family, self.weight, minlength=len(FAMILIES))
        return {FAMILIES[i].name: float(sums[i]) for i in np.argsort(-sums, kind="stable").tolist()}

    def bend(self, name: str) -> float:
        """Where the heaviest shape of a family bends, as a share of the run."""
        index = next(i for i, family in enumerate(FAMILIES) if family.name == name)
        weight = np.where(self.family == index, self.weight, -1.0)
        return float(self.bends[int(np.argmax(weight))])


def mixture(value: Floats, *, resolution: float = 0.0, quantum: float = 0.0, shifts: bool = True) -> Mixture:
    """Averages over all shapes and error correlations for evenly spaced values (at least 16, in any unit).

    weight = prior · exp(-BIC/2), with the likelihood of normal AR(1) errors. ``resolution`` is the least error
    (standard deviation) of the values, so that an exact fit does not become certain; ``quantum`` is the step of the
    readings.
    """
    n, shapes = value.size, table(value.size)
    y = value - float(np.median(value))
    white = np.stack([whitened(y, rho) for rho in RHO.tolist()])
    white -= np.einsum("rb,rb->r", white, shapes.level)[:, None] * shapes.level
    seen = np.matmul(shapes.basis, white[:, :, None])[:, :, 0]
    total = np.einsum("rb,rb->r", white, white)
    floor = max(resolution, 1e-150) ** 2 * n
    rest = np.maximum(total[:, None] - np.add.reduceat(seen**2, shapes.first, axis=1), floor)
    middle = np.add.reduceat(shapes.growth * seen, shapes.first, axis=1)
    k = shapes.columns + 1
    freedom = np.maximum(n - k - 1.0, 1.0)
    scale = np.sqrt(shapes.variance * rest / freedom)
    memory = 0.5 * np.log(1 - RHO**2)
    score = -0.5 * n * np.log(rest / n) + memory[:, None] - 0.5 * k * np.log(n) + shapes.prior
    swing = np.sqrt(sum(np.add.reduceat(shapes.swing[:, :, i] * seen, shapes.first, axis=1) ** 2 for i in (0, 1)))
    wide = np.broadcast_to
    parts: list[tuple[NDArray[np.generic], ...]] = [
        (
            score + (np.log(1 - _SHIFT) if shifts else 0.0),
            middle,
            scale,
            wide(freedom, score.shape),
            wide(shapes.family, score.shape),
            wide(shapes.bends, score.shape),
            shapes.steep * swing,
            wide(RHO[:, None], score.shape),
        )
    ]
    if shifts:
        parts.append(_with_shift(shapes, white, seen, rest, score, floor))
        parts += _stairs(shapes, white, total, floor, quantum)
    return _weighed([np.concatenate([part[i].ravel() for part in parts]) for i in range(8)])


def _with_shift(
    table: ShapeTable, white: Floats, seen: Floats, rest: Floats, score: Floats, floor: float
) -> tuple[Floats, ...]:
    """The heaviest shape of each family with one more lasting step, at each place."""
    n = white.shape[1]
    best = []
    for index in _SHIFTED:
        members = np.flatnonzero(table.family == index)
        best.append(int(members[int(np.argmax(score[:, members].max(axis=0)))]))
    heads = np.array(best)
    taken = np.maximum(table.columns[heads], 1)
    column = np.concatenate([table.first[m] + np.arange(t) for m, t in zip(heads, taken, strict=True)])
    first = np.concatenate(([0], np.cumsum(taken)[:-1]))
    meets, gain = table.meets[:, column], table.growth[:, column, None]
    along = np.matmul(table.steps, white[:, :, None])[:, None, :, 0]
    left = along - np.add.reduceat(meets * seen[:, column, None], first, axis=1)
    size = np.einsum("rpb,rpb->rp", table.steps, table.steps)[:, None, :] - np.add.reduceat(meets**2, first, axis=1)
    adds = size > 1e-9 * n
    size = np.where(adds, size, 1.0)
    height = np.where(adds, left / size, 0.0)
    spare = np.maximum(rest[:, heads, None] - height * left, floor)
    crossed = np.add.reduceat(gain * meets, first, axis=1)
    middle = np.add.reduceat(table.growth[:, column] * seen[:, column], first, axis=1)[:, :, None] - height * crossed
    k = (table.columns[heads] + 2)[None, :, None]
    freedom = np.maximum(n - k - 1.0, 1.0)
    scale = np.sqrt((table.variance[:, heads, None] + crossed**2 / size) * spare / freedom)
    # the family's whole prior, divided over the places of the step
    sizes = np.bincount(table.family)[table.family[heads]]
    prior = table.prior[heads] + np.log(sizes) - np.log(size.shape[2]) + np.log(_SHIFT)
    memory = 0.5 * np.log(1 - RHO**2)[:, None, None]
    match = -0.5 * n * np.log(spare / n) + memory - 0.5 * k * np.log(n) + prior[None, :, None]
    match = np.where(adds, match, -np.inf)
    wide = np.broadcast_to
    swing = np.sqrt(
        sum(
            (
                np.add.reduceat(table.swing[:, column, i] * seen[:, column], first, axis=1)[:, :, None]
                - height * np.add.reduceat(table.swing[:, column, i, None] * meets, first, axis=1)
            )
            ** 2
            for i in (0, 1)
        )
    )
    shape = match.shape
    return (
        match,
        middle,
        scale,
        wide(freedom, shape),
        wide(table.family[heads][None, :, None], shape),
        wide(table.bends[heads][None, :, None], shape),
        table.steep[heads][None, :, None] * swing,
        wide(RHO[:, None, None], shape),
    )


def _stairs(
    table: ShapeTable, white: Floats, total: Floats, floor: float, quantum: float
) -> Iterator[tuple[Floats, ...]]:
    """Two to six steps; each number has its share of the family's prior, divided over all places of the steps."""
    n, places = white.shape[1], table.steps.shape[1]
    weights = np.array([family.prior for family in FAMILIES])
    prior = float(np.log(weights[_STAIRS] / weights.sum() / (MAX_STEPS - 1)))
    along = np.matmul(table.steps, white[:, :, None])[:, :, 0]
    memory = 0.5 * np.log(1 - RHO**2)
    for match in stairs(along, table.gram, total, n, floor, quantum):
        k = match.steps + 1
        rest = np.maximum(total - match.explained, floor)
        score = -0.5 * n * np.log(rest / n) + memory - 0.5 * k * np.log(n)
        score = score + prior + match.spread - log_placements(places, match.steps)
        none, freedom = np.zeros_like(rest), np.where(match.goes_on, match.steps - 1.0, n - k - 1.0)
        yield (
            score,
            np.where(match.goes_on, match.rate, 0.0),
            np.where(match.goes_on, match.error, 0.0),
            np.maximum(freedom, 1.0),
            np.where(match.goes_on, _LEAK_IN_STEPS, _STAIRS),
            (match.last + edge(n)) / n,
            none,
            np.asarray(RHO),
        )


def _weighed(columns: list[Floats]) -> Mixture:
    score, middle, scale, freedom, family, bend, steepest, rho = columns
    weight = np.exp(score - score.max())
    weight /= weight.sum()
    kept = weight > _MIN_WEIGHT
    weight = weight[kept] / weight[kept].sum()
    return Mixture(
        weight,
        middle[kept],
        scale[kept],
        freedom[kept],
        family[kept].astype(np.int64),
        bend[kept],
        steepest[kept],
        float(weight @ rho[kept]),
    )
