"""The floors of a few cycles: do they go on rising, or is it a warm-up that comes to rest under a sawtooth?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from soakwatch_rules.stats.cycles import Cycles
from soakwatch_rules.stats.distributions import student_cdf

Floats = NDArray[np.float64]

MIN_FLOORS: Final = 4
"""Floors from which shapes can be told apart at all."""
_TAUS: Final = (0.05, 0.1, 0.17, 0.25, 0.35, 0.5)  # of the run, for a warm-up under the sawtooth
_RESTED: Final = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)  # of the run, at which a plateau begins
_BEYOND: Final = 2.0  # times what a sawtooth climbs in a block
_LEAK: Final = 2.0  # prior weight of a straight rise against each other kind


@dataclass(frozen=True, slots=True, eq=False)
class Floors:
    """P(slope at the end > limit), that slope per run with its 5 and 95 % bounds, and the share of the first that a
    straight rise holds."""

    probability: float
    rate: float
    low: float
    high: float
    straight: float


def of_floors(indices: Floats, floor: Floats, limit: float, resolution: float) -> Floors:
    """Averages over constant, leak, step, warm-up and plateau for 4 floors and more.

    ``indices`` are in shares of the run, ``limit`` in the floors' unit per run. Weights are prior·exp(-BIC/2) with
    independent normal errors, whose standard deviation is at least ``resolution``; a shape with a bend shares its
    kind's prior between its bends. Few floors leave the straight rise and the warm-up both likely, which is the answer.
    """
    n, last = floor.size, float(indices.max())
    shapes: list[tuple[float, Floats, float]] = [(1.0, np.empty((0, n)), 0.0), (_LEAK, indices[None, :], 1.0)]
    shapes += [(1.0 / len(_TAUS), -np.exp(-indices / tau)[None, :], float(np.exp(-last / tau)) / tau) for tau in _TAUS]
    shapes += [(1.0 / len(_RESTED), np.minimum(indices, position)[None, :], 0.0) for position in _RESTED]
    cuts = 0.5 * (indices[1:] + indices[:-1])
    shapes += [(1.0 / cuts.size, (indices > position).astype(np.float64)[None, :], 0.0) for position in cuts.tolist()]
    score, middle, scale, freedom, linear = [], [], [], [], []
    for index, (prior, column, end) in enumerate(shapes):
        design = np.vstack([np.ones(n), column])
        cross = design @ design.T
        back = np.linalg.pinv(cross)
        matches = back @ (design @ floor)
        rest = floor - matches @ design
        k, free = design.shape[0], max(n - design.shape[0], 1)
        square = max(float(rest @ rest), free * resolution**2)
        score.append(np.log(prior) - 0.5 * n * np.log(square / n) - 0.5 * k * np.log(n))
        middle.append(end * float(matches[-1]) if k > 1 else 0.0)
        scale.append(abs(end) * float(np.sqrt(back[-1, -1] * square / free)) if k > 1 else 0.0)
        freedom.append(float(free))
        linear.append(index == 1)
    weight = np.exp(np.array(score) - max(score))
    weight /= weight.sum()
    centre, wide, free_ = np.array(middle), np.array(scale), np.array(freedom)
    known = wide > 0
    off = np.clip((centre - limit) / np.where(known, wide, 1.0), -1e6, 1e6)
    above = np.where(known, student_cdf(free_, off), centre > limit)
    order = np.argsort(centre, kind="stable")
    share = np.cumsum(weight[order])
    low = float((centre - 2 * wide)[order][np.searchsorted(share, 0.05)])
    high = float((centre + 2 * wide)[order][min(np.searchsorted(share, 0.95), centre.size - 1)])
    rate, straight = float(weight @ centre), np.array(linear)
    return Floors(
        min(1.0, float(weight @ above)),
        rate,
        min(low, rate),
        max(high, rate),
        min(1.0, float(weight[straight] @ above[straight])),
    )


def rose(cycles: Cycles, height: float, allowed: float, *, straight: bool) -> bool:
    """Whether the floors rose by more than the sawtooth of ``height`` climbs in a block; where no ``straight`` line
    agrees by twice that, and their last half by more than ``allowed`` per second too.

    How low a cycle was read depends on where its blocks lie: sawteeth beat with them.
    """
    climb = height * cycles.block_s / float(np.median(np.diff(cycles.falls)))
    some = max(1, min(3, cycles.floor.size // 4))
    means = np.convolve(cycles.floor, np.full(some, 1 / some), "valid")
    rise = float(means[-1] - means.min())
    if straight:
        return rise > climb
    half = cycles.floor.size // 2
    since = cycles.time_s[half:] - cycles.time_s[half:].mean()
    return rise > _BEYOND * climb and float(since @ cycles.floor[half:]) > allowed * float(since @ since)


def jumped(cycles: Cycles, allowed: float, hidden: float) -> bool:
    """Whether the last floor lies above the one before by more than ``allowed`` per second and ``hidden``: a step, or
    a leak that has just begun."""
    apart = float(cycles.time_s[-1] - cycles.time_s[-2])
    return float(cycles.floor[-1] - cycles.floor[-2]) > allowed * apart + hidden
