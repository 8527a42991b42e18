"""Onset: when a series that was flat began to grow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from soakwatch_model.fact import Onset
from soakwatch_model.series import Floats, Mask, Series
from soakwatch_rules.stats.medians import row_medians

_BLOCKS: Final = 240
_LEAST: Final = 24
_EDGE: Final = 0.04  # share of the stretch: growth that begins earlier began with it
_LATEST: Final = 0.97
_FLAT: Final = 0.2  # a slope before the bend below this share of the one after it is flat
_STEP: Final = 0.7  # share of a bend's squares: if a step leaves less, the series changed at once
_BETTER: Final = 0.85  # share of a straight line's squares: a bend must leave less
_CLOSE: Final = 1e-6  # share of the least squares within which places are fitted exactly
_ROUNDING: Final = 1e-12  # some thousand times that of one operation
_TINY: Final = 1e-9  # share of a row's squares beyond the others, below which only an exact fit tells


def onset_s(time_s: Floats, value: Floats) -> float | None:
    """When a growing series began to grow, in seconds of ``time_s``: its first reading if it grew from there, None if
    unknown. If a step fits far better than any bend, when it stepped.

    Medians of up to 240 blocks; of all lines with one bend the one with the least squares, if it is flat before the
    bend and leaves at most .85 of what a straight line leaves. Of 413 seeded leaks of 2 to 100 % in noise of .2 to 2 %
    with a correlation of 20 min (24 h at 60 s) 402 had a moment, 90 % of them within .9 % of the stretch; of 87 that
    leaked from the start all had the first reading. If a warm-up precedes the growth it is None, since that is not
    flat.

    >>> at = np.arange(0.0, 86_400.0, 60.0)
    >>> onset_s(at, 100.0 + np.maximum(at - 20_000.0, 0.0) * 0.01)
    20160.0
    >>> onset_s(at, 100.0 + 0.01 * at)
    0.0
    """
    good = np.isfinite(time_s) & np.isfinite(value)
    at, of = time_s[good], value[good]
    if at.size < _LEAST:
        return None
    count = int(min(_BLOCKS, at.size // 2 if at.size >= 4 * _LEAST else at.size))
    begin, x, y = _blocks(at, of, count)
    span = float(at[-1] - at[0])
    if span <= 0:
        return None
    x = (x - at[0]) / span
    places = (begin - at[0]) / span
    places = places[(places > 0.02) & (places < _LATEST)]
    straight = _left(np.stack([np.ones_like(x), x]), y)[0]
    if straight <= 0 or not places.size:
        return None
    bend, step = _best_bend(x, y, places), _best_step(x, y, places)
    if step.left < _STEP * bend.left:
        return float(at[0] + step.place * span)
    before, behind = float(bend.found[1]), float(bend.found[1] + bend.found[2])
    if bend.left > _BETTER * straight or bend.place < _EDGE:
        return float(at[0])
    if before * behind > 0 and abs(before) > _FLAT * abs(behind):
        return float(at[0])  # it grew before the bend too
    return float(at[0] + bend.place * span) if abs(before) <= _FLAT * abs(behind) else None


def _blocks(at: Floats, of: Floats, count: int) -> tuple[Floats, Floats, Floats]:
    """The first time, the mean time and the median reading of ``count`` parts of about equal size, the larger first."""
    size, larger = divmod(at.size, count)
    edge = larger * (size + 1)
    parts = [(at[:edge].reshape(larger, size + 1), of[:edge].reshape(larger, size + 1))] if larger else []
    parts += [(at[edge:].reshape(count - larger, size), of[edge:].reshape(count - larger, size))]
    return (
        np.concatenate([times[:, 0] for times, _ in parts]),
        np.concatenate([times.mean(axis=1) for times, _ in parts]),
        np.concatenate([row_medians(readings) for _, readings in parts]),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    """The best place of a bend or step, the sum of squares that it leaves, and the coefficients."""

    place: float
    left: float
    found: Floats


def _best_bend(x: Floats, y: Floats, places: Floats) -> _Fit:
    """The line with one bend that leaves the least."""
    line = np.stack([np.ones_like(x), x])
    likely = _likely(line, np.maximum(x - places[:, None], 0.0), y)
    return _best(places[likely], lambda place: np.stack([*line, np.maximum(x - place, 0.0)]), y)


def _best_step(x: Floats, y: Floats, places: Floats) -> _Fit:
    """The step that leaves the least."""
    level = np.ones((1, x.size))
    likely = _likely(level, (x > places[:, None]).astype(np.float64), y)
    return _best(places[likely], lambda place: np.stack([*level, (x > place).astype(np.float64)]), y)


def _best(places: Floats, basis: Callable[[float], Floats], y: Floats) -> _Fit:
    """The first place whose fit leaves the least."""
    return min((_Fit(float(place), *_left(basis(place), y)) for place in places), key=lambda fit: fit.left)


def _likely(basis: Floats, further: Floats, y: Floats) -> Mask:
    """Which of the ``further`` rows may leave the least beside the ``basis``: all but those that leave more by far more
    than rounding can explain. One multiplication for all of them, where a fit each takes a hundred times as long."""
    unit = np.linalg.qr(basis.T)[0].T
    rest = y - (unit @ y) @ unit
    own = further - (further @ unit.T) @ unit
    size = np.einsum("pb,pb->p", own, own)
    adds = size > _TINY * np.einsum("pb,pb->p", further, further)
    whole = float(rest @ rest)
    left = whole - np.where(adds, (own @ rest) ** 2 / np.where(adds, size, 1.0), 0.0)
    # the largest cancellation: a residual beside the readings, whose own rounding it holds
    slack = _CLOSE * float(left.min()) + _ROUNDING * (whole + float(np.sqrt(whole * (y @ y))) + _ROUNDING * (y @ y))
    likely: Mask = ~adds | (left <= float(left.min()) + slack)
    return likely


def _left(basis: Floats, y: Floats) -> tuple[float, Floats]:
    """The sum of squares that a fit leaves, and its coefficients."""
    found, *_ = np.linalg.lstsq(basis.T, y, rcond=None)
    rest = y - basis.T @ found
    return float(rest @ rest), np.asarray(found, dtype=np.float64)


def onset_of(series: Series) -> Iterator[Onset]:
    """The fact since when a series grows (or that it did from its first reading); none if unknown."""
    if len(series) < _LEAST:
        return
    first_ns = int(series.time_ns[0])
    since_s = onset_s(np.asarray((series.time_ns - first_ns) * 1e-9, dtype=np.float64), series.values)
    if since_s is not None:
        yield Onset(first_ns + round(since_s * 1e9), from_first=since_s <= 0)
