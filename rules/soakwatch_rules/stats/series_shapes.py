"""Shapes that a series may have over a run, prepared for fitting: what grows at its end, and what only seems to."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from soakwatch_model.series import Floats, Ints

RHO: Final = np.array([0.0, 0.2, 0.4, 0.55, 0.7, 0.8, 0.87, 0.92, 0.96, 0.985])
"""Correlations of neighbouring errors that are tried."""

PERIODS: Final = (0.25, 0.33, 0.5, 0.67, 0.8, 1.0, 1.25, 1.5, 2.0)
"""Lengths of a cycle as a share of the run."""

SEEN: Final = 0.55
"""A cycle longer than this share of the run was not seen twice and cannot be told from growth."""

_QUICK: Final = 0.01  # share of the run

_MOST_TABLES: Final = 8
_IN_USE: Final = 32  # requests in a row without one for a table, after which it is dropped

_TINY: Final = 1e-6  # a column with less than this share of its length beyond the others adds nothing


@dataclass(frozen=True, slots=True)
class ShapeFamily:
    """One kind of shape and its prior weight (not normalised).

    ``free``: its end slope is fitted; ``turns``: it comes back; ``shift``: one more step is tried on top.
    """

    name: str
    prior: float = 1.0
    free: bool = False
    turns: bool = False
    shift: bool = True


FAMILIES: Final = (
    ShapeFamily("constant", shift=False),
    ShapeFamily("leak", 32.0, free=True, shift=False),  # by far the most common way to grow at the end
    ShapeFamily("step"),
    ShapeFamily("warm-up"),
    ShapeFamily("plateau"),
    ShapeFamily("ramp between plateaus"),
    ShapeFamily("late leak", free=True),
    ShapeFamily("two slopes", free=True),
    ShapeFamily("step and leak", free=True),
    ShapeFamily("warm-up and leak", free=True),
    ShapeFamily("two warm-ups"),
    ShapeFamily("two warm-ups and leak", 0.02, free=True),  # three slopes imitate most of what slows down
    ShapeFamily("stairs", 3.0, shift=False),  # fitted separately: they have too many places for a table
    ShapeFamily("leak in steps", free=True, shift=False),  # habitual stairs
    ShapeFamily("bump"),
    ShapeFamily("bump and leak", free=True),
    ShapeFamily("half wave", turns=True),
    ShapeFamily("cycle", 0.2, turns=True),  # a cycle that matters fits clearly
    ShapeFamily("cycle and leak", 0.2, free=True),
    ShapeFamily("accelerating leak", 0.5, free=True),
)


@dataclass(frozen=True, slots=True, eq=False)
class ShapeTable:
    """All shapes on ``n`` blocks, whitened for each correlation and made orthonormal, ready for one multiplication.

    Axes: correlation r, shape m, column c (those of shape m from ``first[m]`` on, at least one), block b, step p.
    ``basis[r, c]`` are unit vectors orthogonal to the whitened constant ``level[r]`` and to each other within a shape
    (zero if a column adds nothing). The end slope, in units of the value per run, is the sum of
    ``growth[r, c] · basis[r, c] · whitened value`` over a shape's columns; its variance is ``variance[r, m]`` times
    that of the errors. ``swing`` likewise gives sine and cosine of a cycle (the first for half a wave, zero for other
    shapes), whose steepest slope is ``steep[m]`` times the amplitude. ``meets[r, c, p]`` are the products of the basis
    with the whitened ``steps[r, p]``, ``gram[r, p, q]`` those of the steps with each other, ``step_squares[r, p]``
    those with themselves. ``members`` are the shapes of each family that is tried with one more step.
    """

    level: Floats
    basis: Floats
    growth: Floats
    variance: Floats
    swing: Floats
    steep: Floats
    first: Ints
    columns: Ints
    family: Ints
    prior: Floats
    bends: Floats
    steps: Floats
    meets: Floats
    gram: Floats
    step_squares: Floats
    members: tuple[Ints, ...]


def whitened(columns: Floats, rho: float) -> Floats:
    """Values along the last axis without their AR(1) correlation; the first is scaled to the same variance."""
    result = columns.copy()
    result[..., 1:] -= rho * columns[..., :-1]
    result[..., 0] *= math.sqrt(1 - rho * rho)
    return result


def edge(n: int) -> int:
    """Blocks at each end in which no step is searched."""
    return max(2, int(0.03 * n))


_Shape = tuple[str, list[Floats], list[float], float]
"""(family, columns, end slope of each column, place); time ``u`` runs from 0 to 1."""


def _shapes(n: int) -> list[_Shape]:
    u = (np.arange(n) + 0.5) / n
    rim = edge(n)
    taus = np.geomspace(0.02, 0.33, 9).tolist()
    return [
        ("constant", [], [], 0.0),
        ("leak", [u], [1.0], 0.0),
        *_steps(u, (np.arange(rim, n - rim + 1) / n).tolist()),
        *_warm_ups(u, taus),
        *_plateaus(u),
        *_bends(u),
        *_bumps(u),
        *_slow_warm_ups(u, taus),
        *_waves(u),
    ]


def _steps(u: Floats, cuts: list[float]) -> Iterator[_Shape]:
    for c in cuts:
        step = (u >= c).astype(np.float64)
        yield "step", [step], [0.0], c
        yield "step and leak", [step, u], [0.0, 1.0], c


def _warm_ups(u: Floats, taus: list[float]) -> Iterator[_Shape]:
    """Exponential ones; a second, quick one is over within a few blocks."""
    quick = -np.exp(-u / _QUICK)
    for tau in taus:
        rise, end = -np.exp(-u / tau), math.exp(-1 / tau) / tau
        yield "warm-up", [rise], [end], tau
        yield "warm-up and leak", [rise, u], [end, 1.0], tau
        if tau > 2 * _QUICK:
            yield "two warm-ups", [quick, rise], [0.0, end], tau
            yield "two warm-ups and leak", [quick, rise, u], [0.0, end, 1.0], tau


def _plateaus(u: Floats) -> Iterator[_Shape]:
    """A plateau counts only if it fills the last quarter."""
    for c in np.linspace(0.1, 0.75, 14).tolist():
        yield "plateau", [np.minimum(u, c)], [0.0], c
    for begin in np.arange(0.05, 0.65, 0.05).tolist():
        for end in np.arange(0.1, 0.76, 0.05).tolist():
            if end - begin >= 0.049:
                yield "ramp between plateaus", [np.clip(u - begin, 0, end - begin)], [0.0], begin


def _bends(u: Floats) -> Iterator[_Shape]:
    for c in np.linspace(0.1, 0.9, 17).tolist():
        yield "late leak", [np.maximum(u - c, 0)], [1.0], c
        yield "two slopes", [np.minimum(u, c), u], [0.0, 1.0], c


def _bumps(u: Floats) -> Iterator[_Shape]:
    for width in (0.05, 0.1, 0.2):
        for c in np.arange(0.05, 0.95 - width, width / 2).tolist():
            bump = ((u >= c) & (u < c + width)).astype(np.float64)
            if bump.sum() >= 2:
                yield "bump", [bump], [0.0], c
                yield "bump and leak", [bump, u], [0.0, 1.0], c


def _slow_warm_ups(u: Floats, taus: list[float]) -> Iterator[_Shape]:
    """Those that slow down with the root of time, and two exponential ones together."""
    for tau in np.geomspace(0.01, 0.15, 9).tolist():
        end = math.exp(-math.sqrt(1 / tau)) / (2 * math.sqrt(tau))
        yield "warm-up", [-np.exp(-np.sqrt(u / tau))], [end], tau
    for slow in taus:
        for fast in taus:
            if slow > 2 * fast:
                ends = [math.exp(-1 / fast) / fast, math.exp(-1 / slow) / slow]
                yield "two warm-ups", [-np.exp(-u / fast), -np.exp(-u / slow)], ends, slow


def _waves(u: Floats) -> Iterator[_Shape]:
    """The rise of a wave that fills most of the run (its fall may follow), leaks that accelerate, and cycles."""
    for begin in (0.0, 0.1):
        for end in (0.9, 1.0):
            wave = -np.cos(np.pi * np.clip((u - begin) / (end - begin), 0, 1))
            yield "half wave", [wave], [0.0], 2 * (end - begin)
    for pace in (1.0, 2.0, 4.0):
        end = pace * math.exp(pace) / math.expm1(pace)
        yield "accelerating leak", [np.expm1(pace * u) / math.expm1(pace)], [end], pace
    for period in PERIODS:
        sine, cosine = np.sin(2 * np.pi * u / period), np.cos(2 * np.pi * u / period)
        yield "cycle", [sine, cosine], [0.0, 0.0], period
        yield "cycle and leak", [sine, cosine, u], [0.0, 0.0, 1.0], period


class _Tables:
    """A cache of tables: those still asked for stay, those of a length that is no longer asked for are dropped.

    A run that is judged live has ever more blocks, up to 96, and asks for each length only for some minutes.
    """

    def __init__(self) -> None:
        self._kept: dict[int, tuple[ShapeTable, int]] = {}  # by length: the table and the number of its last request
        self._asked = 0

    def of(self, n: int) -> ShapeTable:
        self._asked += 1
        known = self._kept.get(n)
        found = _made(n) if known is None else known[0]
        self._kept[n] = found, self._asked
        for other, (_, asked) in sorted(self._kept.items(), key=lambda entry: entry[1][1])[:-1]:
            if self._asked - asked > _IN_USE or len(self._kept) > _MOST_TABLES:
                self._kept.pop(other, None)
        return found


_TABLES: Final = _Tables()


def table(n: int) -> ShapeTable:
    """The shapes on ``n`` blocks (at least 16); cached, as 96 blocks take 16 MB and 0.1 to 0.5 s."""
    return _TABLES.of(n)


def _made(n: int) -> ShapeTable:
    shapes = _shapes(n)
    names = [family.name for family in FAMILIES]
    family = np.array([names.index(name) for name, *_ in shapes])
    columns = np.array([len(result) for _, result, *_ in shapes])
    taken = np.maximum(columns, 1)
    first = np.concatenate(([0], np.cumsum(taken)[:-1]))
    sizes = np.maximum(np.bincount(family, minlength=len(names)), 1)
    weights = np.array([f.prior for f in FAMILIES])
    prior = np.log(weights[family] / weights.sum() / sizes[family])
    total, correlations = int(taken.sum()), RHO.size
    basis, growth = np.zeros((correlations, total, n)), np.zeros((correlations, total))
    variance, level = np.zeros((correlations, len(shapes))), np.zeros((correlations, n))
    swing = np.zeros((correlations, total, 2))
    u = (np.arange(n) + 0.5) / n
    rim = edge(n)
    raw_steps = (u >= (np.arange(rim, n - rim + 1) / n)[:, None]).astype(np.float64)
    steps = np.zeros((correlations, *raw_steps.shape))
    raw = []
    for k in (1, 2, 3):
        which = np.flatnonzero(columns == k)
        turning = np.array([FAMILIES[family[m]].turns for m in which])
        ends = np.array([shapes[m][2] for m in which])
        raw.append((k, which, np.stack([np.stack(shapes[m][1]) for m in which]), ends, turning))
    for r, rho in enumerate(RHO.tolist()):
        constant = whitened(np.ones(n), rho)
        level[r] = constant / np.linalg.norm(constant)
        steps[r] = _without(whitened(raw_steps, rho), level[r])
        for k, which, rows, ends, turning in raw:
            unit, upper = _orthonormal(_without(whitened(rows, rho), level[r]))
            back = np.linalg.inv(upper)
            positions = first[which]
            gain = np.einsum("mj,mji->mi", ends, back)
            variance[r, which] = np.sum(gain**2, axis=1)
            for i in range(k):
                basis[r, positions + i], growth[r, positions + i] = unit[:, i], gain[:, i]
                swing[r, positions[turning] + i, : min(k, 2)] = back[turning, :2, i]
    bend = np.array([shape[3] for shape in shapes])
    turns = np.array([f.turns for f in FAMILIES])[family] & (bend > SEEN)
    steep = np.where(turns, 2 * np.pi / np.where(turns, bend, 1.0), 0.0)
    meets, gram = np.matmul(basis, steps.transpose(0, 2, 1)), np.matmul(steps, steps.transpose(0, 2, 1))
    squares = np.einsum("rpb,rpb->rp", steps, steps)
    members = tuple(np.flatnonzero(family == index) for index, each in enumerate(FAMILIES) if each.shift)
    return ShapeTable(
        level,
        basis,
        growth,
        variance,
        swing,
        steep,
        first,
        columns,
        family,
        prior,
        bend,
        steps,
        meets,
        gram,
        squares,
        members,
    )


def _without(rows: Floats, unit: Floats) -> Floats:
    """Rows (last axis) without their component along a unit vector."""
    left: Floats = rows - (rows @ unit)[..., None] * unit
    return left


def _orthonormal(rows: Floats) -> tuple[Floats, Floats]:
    """Gram-Schmidt over axis 1 of (shapes, columns, blocks): unit rows, and R with row j = sum of R[i, j]·unit i.

    A row that adds nothing becomes zero, with 1 on the diagonal, so that its coefficient is zero.
    """
    unit, count = rows.copy(), rows.shape[1]
    upper = np.zeros((rows.shape[0], count, count))
    for j in range(count):
        before = np.linalg.norm(rows[:, j], axis=1)
        for i in range(j):
            share = np.einsum("mb,mb->m", unit[:, i], unit[:, j])
            upper[:, i, j] = share
            unit[:, j] -= share[:, None] * unit[:, i]
        length = np.linalg.norm(unit[:, j], axis=1)
        adds = length > _TINY * np.maximum(before, 1e-300)
        adds &= length > _TINY
        unit[:, j] = np.where(adds[:, None], unit[:, j] / np.where(adds, length, 1.0)[:, None], 0.0)
        upper[:, j, j] = np.where(adds, length, 1.0)
    return unit, upper
