"""Shape averaging: how likely is growth at the end of the run, over all shapes that a series may have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from soakwatch_model.series import Floats, Ints, Mask
from soakwatch_rules.stats.distributions import normal_cdf, student_cdf
from soakwatch_rules.stats.medians import median
from soakwatch_rules.stats.series_shapes import FAMILIES, PERIODS, RHO, SEEN, ShapeTable, edge, table, whitened
from soakwatch_rules.stats.stairs import MAX_STEPS, Stairs, log_placements, stairs

_SHIFT: Final = 0.25  # prior probability of one lasting step more than the shape has
_MIN_WEIGHT: Final = 1e-6
_MAX_PARTS: Final = 300  # parts that suffice for an interval
_FREE: Final = np.array([family.free for family in FAMILIES])
_TURNS: Final = np.array([family.turns for family in FAMILIES])
_CYCLE: Final = [family.name for family in FAMILIES].index("cycle")
_STAIRS, _LEAK_IN_STEPS = ([family.name for family in FAMILIES].index(name) for name in ("stairs", "leak in steps"))
_MEMORY: Final = 0.5 * np.log(1 - RHO**2)


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
    y = value - median(value)
    white = np.stack([whitened(y, rho) for rho in RHO.tolist()])
    white -= np.einsum("rb,rb->r", white, shapes.level)[:, None] * shapes.level
    fits = _Fits.of(shapes, white, max(resolution, 1e-150) ** 2 * n)
    parts: list[_Part] = [_Plain(fits, shifts=shifts)]
    if shifts:
        along = np.matmul(shapes.steps, white[:, :, None])[:, :, 0]
        parts.append(_Shifted(fits, along))
        parts += _stairs(fits, along, quantum)
    return _weighed(parts)


class _Part(Protocol):
    """Some shapes of a mixture: all have a score, but only the few that weigh something need the rest."""

    @property
    def score(self) -> Floats:
        """The logarithm of the weight, up to a constant; of any number of axes."""
        ...

    def columns(self, at: Ints) -> tuple[NDArray[np.generic], ...]:
        """Middle, scale, freedom, family, bend, steepest and correlation of those at flat positions of the score."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class _Fits:
    """Every shape of a table fitted to whitened values, by correlation and column or shape.

    ``seen`` are the products with the columns, ``total`` the squares of the values, ``rest`` what a fit leaves of them
    (at least ``floor``).
    """

    shapes: ShapeTable
    seen: Floats
    total: Floats
    rest: Floats
    floor: float
    n: int
    score: Floats
    middle: Floats

    @classmethod
    def of(cls, shapes: ShapeTable, white: Floats, floor: float) -> _Fits:
        """The fits to values that are ``white`` for each correlation."""
        n = white.shape[1]
        seen = np.matmul(shapes.basis, white[:, :, None])[:, :, 0]
        total = np.einsum("rb,rb->r", white, white)
        rest = np.maximum(total[:, None] - np.add.reduceat(seen**2, shapes.first, axis=1), floor)
        k = shapes.columns + 1
        score = -0.5 * n * np.log(rest / n) + _MEMORY[:, None] - 0.5 * k * np.log(n) + shapes.prior
        middle = np.add.reduceat(shapes.growth * seen, shapes.first, axis=1)
        return cls(shapes, seen, total, rest, floor, n, score, middle)

    def freedom(self, parameters: Ints) -> Floats:
        """The degrees of freedom that so many parameters leave."""
        left: Floats = np.maximum(self.n - parameters - 1.0, 1.0)
        return left

    def over_columns(self, each: Callable[[Ints], Floats], m: Ints) -> Floats:
        """The sum of ``each`` over the columns of shapes ``m``, in their order."""
        total = each(self.shapes.first[m])
        for i in range(1, int(self.shapes.columns[m].max(initial=1))):
            more = i < self.shapes.columns[m]
            total = total + np.where(more, each(self.shapes.first[m] + np.where(more, i, 0)), 0.0)
        return total


@dataclass(frozen=True, slots=True, eq=False)
class _Plain:
    """The shapes as they are."""

    fits: _Fits
    shifts: bool

    @property
    def score(self) -> Floats:
        result: Floats = self.fits.score + (np.log(1 - _SHIFT) if self.shifts else 0.0)
        return result

    def columns(self, at: Ints) -> tuple[NDArray[np.generic], ...]:
        shapes = self.fits.shapes
        r, m = np.unravel_index(at, self.fits.score.shape)
        freedom = self.fits.freedom(shapes.columns[m] + 1)

        def swings(i: int, own: Ints) -> Floats:
            at_r = r[own]
            return self.fits.over_columns(lambda c: shapes.swing[at_r, c, i] * self.fits.seen[at_r, c], m[own])

        return (
            self.fits.middle[r, m],
            np.sqrt(shapes.variance[r, m] * self.fits.rest[r, m] / freedom),
            freedom,
            shapes.family[m],
            shapes.bends[m],
            _steepest(shapes.steep[m], swings),
            RHO[r],
        )


def _steepest(steep: Floats, swings: Callable[[int, Ints], Floats]) -> Floats:
    """The steepest slope of each part, from the ``swings`` (sine and cosine) of those that have a ``steep`` one."""
    own = np.flatnonzero(steep)
    if own.size:
        steep[own] *= np.sqrt(swings(0, own) ** 2 + swings(1, own) ** 2)
    return steep


class _Shifted:
    """The heaviest shape of each family with one more lasting step, at each place."""

    def __init__(self, fits: _Fits, along: Floats) -> None:
        shapes, n = fits.shapes, fits.n
        best = fits.score.max(axis=0)
        heads = np.array([int(own[int(np.argmax(best[own]))]) for own in shapes.members if own.size])
        taken = np.maximum(shapes.columns[heads], 1)
        column = np.concatenate([shapes.first[m] + np.arange(t) for m, t in zip(heads, taken, strict=True)])
        first = np.concatenate(([0], np.cumsum(taken)[:-1]))
        meets = shapes.meets[:, column]
        left = along[:, None] - np.add.reduceat(meets * fits.seen[:, column, None], first, axis=1)
        size = shapes.step_squares[:, None, :] - np.add.reduceat(meets**2, first, axis=1)
        adds = size > 1e-9 * n
        size = np.where(adds, size, 1.0)
        self._height = np.where(adds, left / size, 0.0)
        self._spare = np.maximum(fits.rest[:, heads, None] - self._height * left, fits.floor)
        k = (shapes.columns[heads] + 2)[None, :, None]
        # the family's whole prior, divided over the places of the step
        sizes = np.bincount(shapes.family)[shapes.family[heads]]
        prior = shapes.prior[heads] + np.log(sizes) - np.log(size.shape[2]) + np.log(_SHIFT)
        match = -0.5 * n * np.log(self._spare / n) + _MEMORY[:, None, None] - 0.5 * k * np.log(n) + prior[None, :, None]
        self.score: Floats = np.where(adds, match, -np.inf)
        self._fits, self._heads, self._size = fits, heads, size

    def columns(self, at: Ints) -> tuple[NDArray[np.generic], ...]:
        """See ``_Part``."""
        fits, shapes = self._fits, self._fits.shapes
        r, h, p = np.unravel_index(at, self.score.shape)
        m, height = self._heads[h], self._height[r, h, p]
        crossed = fits.over_columns(lambda c: shapes.growth[r, c] * shapes.meets[r, c, p], m)
        freedom = fits.freedom(shapes.columns[m] + 2)

        def swings(i: int, own: Ints) -> Floats:
            at_r, at_m, at_p = r[own], m[own], p[own]
            seen = fits.over_columns(lambda c: shapes.swing[at_r, c, i] * fits.seen[at_r, c], at_m)
            met = fits.over_columns(lambda c: shapes.swing[at_r, c, i] * shapes.meets[at_r, c, at_p], at_m)
            return seen - height[own] * met

        return (
            fits.middle[r, m] - height * crossed,
            np.sqrt((shapes.variance[r, m] + crossed**2 / self._size[r, h, p]) * self._spare[r, h, p] / freedom),
            freedom,
            shapes.family[m],
            shapes.bends[m],
            _steepest(shapes.steep[m], swings),
            RHO[r],
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Stairs:
    """Some number of steps."""

    score: Floats
    stairs: Stairs
    n: int

    def columns(self, at: Ints) -> tuple[NDArray[np.generic], ...]:
        own = self.stairs
        habits = [own.habit(r) for r in at.tolist()]
        goes_on = np.array([habit is not None for habit in habits], dtype=np.bool_)
        rate, error = (np.array([0.0 if habit is None else habit[i] for habit in habits]) for i in (0, 1))
        freedom = np.where(goes_on, own.steps - 1.0, self.n - own.steps - 2.0)
        return (
            rate,
            error,
            np.maximum(freedom, 1.0),
            np.where(goes_on, _LEAK_IN_STEPS, _STAIRS),
            (own.last[at] + edge(self.n)) / self.n,
            np.zeros(at.size),
            RHO[at],
        )


def _stairs(fits: _Fits, along: Floats, quantum: float) -> Iterator[_Stairs]:
    """Two to six steps; each number has its share of the family's prior, divided over all places of the steps."""
    n, places = fits.n, fits.shapes.steps.shape[1]
    weights = np.array([family.prior for family in FAMILIES])
    prior = float(np.log(weights[_STAIRS] / weights.sum() / (MAX_STEPS - 1)))
    for match in stairs(along, fits.shapes.gram, fits.total, n, fits.floor, quantum):
        k = match.steps + 1
        rest = np.maximum(fits.total - match.explained, fits.floor)
        score = -0.5 * n * np.log(rest / n) + _MEMORY - 0.5 * k * np.log(n)
        yield _Stairs(score + prior + match.spread - log_placements(places, match.steps), match, n)


def _weighed(parts: Sequence[_Part]) -> Mixture:
    score = np.concatenate([part.score.ravel() for part in parts])
    weight = np.exp(score - score.max())
    weight /= weight.sum()
    kept = weight > _MIN_WEIGHT
    weight = weight[kept] / weight[kept].sum()
    ends = np.cumsum([part.score.size for part in parts])
    chosen = [np.flatnonzero(own) for own in np.split(kept, ends[:-1])]
    columns = [part.columns(at) for part, at in zip(parts, chosen, strict=True) if at.size]
    middle, scale, freedom, family, bend, steepest, rho = (
        np.concatenate(column) for column in zip(*columns, strict=True)
    )
    return Mixture(weight, middle, scale, freedom, family.astype(np.int64), bend, steepest, float(weight @ rho))
