"""Stairs: the best few lasting steps of a series with correlated errors, for all correlations at once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean, pvariance
from typing import Final

import numpy as np

from soakwatch_model.series import Floats, Ints, Mask

MAX_STEPS: Final = 6
"""The most steps that are searched."""

MAX_FREE_STEPS: Final = 3
"""Up to this many steps are single events; more may be a habit."""

_EVEN: Final = 1 / 3  # least height of a step, and length of a tread, as a share of the largest, in habitual steps
_NOTHING: Final = 0.1  # share of the largest step below which a step does not count
_QUANTA: Final = 1.5  # quanta that the mean step must exceed: lower ones come from the resolution
_WAITED: Final = 1.5  # times the longest tread between two steps: after a longer last tread the steps have ended
_SURE: Final = 0.1  # least standard error of the rate of a habit, as a share

_TINY: Final = 1e-9
_ADDS: Final = 1e-6  # share of a step's squares that the others must leave


@dataclass(frozen=True, slots=True, eq=False)
class Stairs:
    """Stairs with one number of steps, one answer for each correlation.

    ``explained`` is the sum of squares that the steps take from the whitened values (0 unless all go one way, since
    what comes and goes is no stairs). ``spread`` is the log of how many places explain about as much (the product over
    the steps of the sum over their places of the likelihood relative to the best place).
    ``places`` and ``heights`` are those of the steps, in order of time.
    """

    steps: int
    explained: Floats
    spread: Floats
    places: Ints
    heights: Floats
    end: int
    n: int

    @property
    def last(self) -> Ints:
        """The place of the last step."""
        result: Ints = self.places[:, -1]
        return result

    def habit(self, r: int) -> tuple[float, float] | None:
        """Growth per run and its standard error, of one correlation, if the steps are a habit; else None.

        A habit is more than ``MAX_FREE_STEPS``, all one way, the smallest at least a third of the largest, the shortest
        tread between two likewise, and none overdue (the last tread lasts at most 1.5 times the longest).
        """
        if self.steps <= MAX_FREE_STEPS:
            return None
        found = _habit(self.places[r].tolist(), self.heights[r].tolist(), self.end)
        return None if found is None else (found[0] * self.n, found[1] * self.n)


def stairs(along: Floats, gram: Floats, total: Floats, n: int, floor: float, quantum: float = 0.0) -> Iterator[Stairs]:
    """The best stairs of two to ``MAX_STEPS`` steps.

    ``along[r, p]`` are the products of the whitened values with the whitened step at each place, ``gram[r, p, q]``
    those of the steps with each other, ``total[r]`` the squares of the values, ``n`` their number. Remaining squares
    are at least ``floor``; three or more steps of about one ``quantum`` count only as a habit. Steps are added one by
    one where they explain most (orthogonal matching pursuit, Y. Pati, R. Rezaiifar, P. Krishnaprasad, Asilomar 1993,
    which never moves a chosen one); after each, all are moved once to their best place beside the others.
    """
    whole = np.einsum("rpp->rp", gram)
    steps = _Steps(gram.reshape(-1, gram.shape[2]), _ADDS * whole, np.arange(along.shape[0]) * along.shape[1])
    none = _Beside(steps, along, whole, np.zeros(along.shape[0]))
    chosen: list[Ints] = []
    moved = none
    for _ in range(min(MAX_STEPS, along.shape[1] - 1)):
        chosen.append(moved.gains.argmax(axis=1))
        if len(chosen) < 2:
            moved = none.joined(chosen[0])
            continue
        moved = none  # the steps already moved; each is joined once, and only later ones again
        spread = np.zeros(along.shape[0])
        for i in range(len(chosen)):
            beside = moved
            for places in chosen[i + 1 :]:
                beside = beside.joined(places)
            gains = beside.gains
            chosen[i] = gains.argmax(axis=1)
            rest = (total - beside.taken)[:, None] - gains
            np.maximum(rest, floor, out=rest)
            rest /= steps.at(rest, chosen[i])[:, None]
            np.log(rest, out=rest)
            rest *= -0.5 * n
            np.minimum(rest, 0.0, out=rest)
            spread += np.log(np.exp(rest, out=rest).sum(axis=1))
            explained = beside.taken + steps.at(gains, chosen[i])
            moved = moved.joined(chosen[i])
        places = np.sort(np.stack(chosen, axis=1), axis=1)
        heights = _heights(along, gram, places)
        # places begin as far from the start of the run as they end from its end
        end = n - (n - gram.shape[1] + 1) // 2
        found = Stairs(len(chosen), explained, spread, places, heights, end, n)
        reported = _one_way(heights)
        if len(chosen) >= MAX_FREE_STEPS:
            low = reported & (np.abs(heights).sum(axis=1) <= _QUANTA * quantum * len(chosen))
            for row in np.flatnonzero(low).tolist():
                reported[row] = found.habit(row) is not None
        yield replace(found, explained=np.where(reported, explained, 0.0))


def log_placements(places: int, steps: int) -> float:
    """The log of the number of ways to choose the places of the steps.

    >>> round(log_placements(91, 3), 2)
    11.71
    """
    return math.lgamma(places + 1) - math.lgamma(steps + 1) - math.lgamma(places - steps + 1)


def _heights(along: Floats, gram: Floats, places: Ints) -> Floats:
    """The heights of all steps fitted together, for each correlation."""
    r = np.arange(places.shape[0])
    own = gram[r[:, None, None], places[:, :, None], places[:, None, :]]
    size = np.maximum(np.trace(own, axis1=1, axis2=2), 1e-300)
    own = own + (_TINY * size)[:, None, None] * np.eye(places.shape[1])
    result: Floats = np.linalg.solve(own, along[r[:, None], places][..., None])[..., 0]
    return result


def _one_way(heights: Floats) -> Mask:
    """Whether all steps that count go the same way."""
    least = _NOTHING * np.abs(heights).max(axis=1)
    result: Mask = (heights.min(axis=1) >= -least) | (heights.max(axis=1) <= least)
    return result


def _habit(places: Sequence[int], heights: Sequence[float], end: int) -> tuple[float, float] | None:
    """Growth per block and its standard error, from how even the steps are; None if they are no habit.

    >>> rate, error = _habit([10, 30, 31, 50, 70], [2.0, 1.0, 1.0, 2.0, 2.0], 94) or (0.0, 0.0)
    >>> round(rate, 3), round(error, 3)
    (0.1, 0.01)
    >>> _habit([10, 30, 50, 70], [2.0, 2.0, 2.0, 0.5], 94), _habit([10, 20, 30, 40], [2.0, 2.0, 2.0, 2.0], 94)
    (None, None)
    """
    # a step of hardly any height is noise, and one within a block appears as two beside it
    least = _NOTHING * max(map(abs, heights))
    places, heights = zip(*[(p, h) for p, h in zip(places, heights, strict=True) if abs(h) >= least], strict=True)
    first = [i for i, index in enumerate(places) if i == 0 or index - places[i - 1] > 1]
    height = [math.fsum(heights[i:j]) for i, j in zip(first, [*first[1:], len(heights)], strict=True)]
    tread = [places[j] - places[i] for i, j in pairwise(first)]
    size = [abs(each) for each in height]
    if len(height) <= MAX_FREE_STEPS or not min(size) > 0 or min(height) < 0 < max(height):
        return None
    if min(size) < _EVEN * max(size) or min(tread) < _EVEN * max(tread) or end - places[-1] > _WAITED * max(tread):
        return None
    mean, apart = fmean(height), fmean(tread)
    uneven = pvariance([x / mean for x in height]) + pvariance([x / apart for x in tread])
    return mean / apart, abs(mean / apart) * math.sqrt(_SURE**2 + uneven / len(tread))


@dataclass(frozen=True, slots=True, eq=False)
class _Steps:
    """The products of the steps with each other, a row for each correlation and place; the least that a step must add
    there; and where the places of each correlation begin among all."""

    rows: Floats
    least: Floats
    begin: Ints

    def at(self, each: Floats, places: Ints) -> Floats:
        """What an array by correlation and place has at one place of each correlation."""
        result: Floats = each.take(self.begin + places)
        return result


class _Beside:
    """The state with some steps chosen: what remains of the values (``left``) and of the squares of a step at each
    place (``size``), what is explained (``taken``), and the unit vectors of the chosen steps."""

    __slots__ = ("_gains", "_joined", "_left", "_size", "_steps", "_units", "taken")

    def __init__(
        self, steps: _Steps, left: Floats, size: Floats, taken: Floats, units: tuple[Floats, ...] = ()
    ) -> None:
        self._steps, self._left, self._size, self.taken, self._units = steps, left, size, taken, units
        self._joined: dict[bytes, _Beside] = {}
        self._gains: Floats | None = None

    def joined(self, places: Ints) -> _Beside:
        """The state with one more step chosen. Steps that do not move make the same states again, a third of all."""
        key = places.tobytes()
        known = self._joined.get(key)
        if known is None:
            known = self._joined[key] = self._with(places)
        return known

    def _with(self, places: Ints) -> _Beside:
        steps = self._steps
        at = steps.begin + places
        column = steps.rows.take(at, axis=0)
        for unit in self._units:
            column -= unit.take(at)[:, None] * unit
        own, share = column.take(at), self._left.take(at)
        adds = own > steps.least.take(at)
        if adds.all():
            length = np.sqrt(own)
            column /= length[:, None]
            share /= length
        else:  # a place that is already taken adds nothing
            length = np.sqrt(np.where(adds, own, 1.0))
            column = np.where(adds[:, None], column / length[:, None], 0.0)
            share = np.where(adds, share / length, 0.0)
        left, size = self._left - share[:, None] * column, self._size - column * column
        return _Beside(steps, left, size, self.taken + share * share, (*self._units, column))

    @property
    def gains(self) -> Floats:
        """What a step at each place would explain in addition."""
        if self._gains is None:
            more = self._size > self._steps.least
            self._gains = (
                self._left * self._left / self._size
                if more.all()
                else np.where(more, self._left**2 / np.where(more, self._size, 1.0), 0.0)
            )
        return self._gains
