"""What follows its load: the part of a series that a load explains, and what is left to be judged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from soakwatch_model.flow import BACK, OFFERED, SENT
from soakwatch_model.metric import flows
from soakwatch_model.series import Series

Floats = NDArray[np.float64]

_MIN_PAIRS: Final = 24  # block pairs
_VARIES: Final = 0.02  # of its mean that a load's spread must have to explain anything
_OWN: Final = 0.05  # of its variance that a load must have beside its straight line
_BASELESS: Final = 1.15
_SURELY: Final = 5.0  # standard errors
_UNSURE: Final = 1.0  # standard error
_LOADS: Final = frozenset(("load.connections", *flows(OFFERED), *flows(SENT), *flows(BACK)))


@dataclass(frozen=True, slots=True)
class Following:
    """``share`` of the variance (both without their straight lines) that ``metric`` explains, at ``each`` per unit.

    ``unit`` is that of the load, ``mean`` its mean; ``straight`` says that the load itself rises steadily, so that its
    share and a leak's cannot be told apart.
    """

    metric: str
    unit: str
    share: float
    each: float
    mean: float
    straight: bool = False


def explained(centres_ns: NDArray[np.int64], value: Floats, loads: Iterable[Series]) -> tuple[Following, Floats] | None:
    """The load that explains most of the blocks, with its values on them; None where none varies.

    Least squares of value on time and load together: what is taken for the load is what moves with it beside a
    straight line, so that a leak is not explained away by a load that happens to rise too.
    """
    best: tuple[Following, Floats] | None = None
    for series in loads:
        if series.metric not in _LOADS:
            continue
        load = _on(centres_ns, series)
        if load is None:
            continue
        match = _explains(value, load, series)
        if match is not None and (best is None or match.share > best[0].share):
            best = match, load
    return best


def holds(value: Floats, load: Floats, each: float) -> bool:
    """Whether both halves and the last third of the blocks follow the load too, by half as much for each unit at least,
    as far as their noise can tell: a cache that was full when the load was highest does not go back with it, and a leak
    that begins when the load begins to rise did not follow it before."""
    half, third = value.size // 2, value.size - value.size // 3
    return all(_holds(value[part], load[part], each) for part in (slice(half), slice(half, None), slice(third, None)))


def _holds(value: Floats, load: Floats, each: float) -> bool:
    indices = np.linspace(-1, 1, value.size)
    own, rest = _detrended(load, indices), _detrended(value, indices)
    square = float(own @ own)
    if not square > 0:
        return False
    slope = float(own @ rest) / square
    return slope + _UNSURE * _error(own, rest - slope * own) >= 0.5 * each


def _on(centres_ns: NDArray[np.int64], series: Series) -> Floats | None:
    """A load as means over the blocks (counters as rates between their edges); None where it does not cover them."""
    half = (centres_ns[1] - centres_ns[0]) // 2
    edges = np.append(centres_ns - half, centres_ns[-1] + half)
    positions = np.searchsorted(series.time_ns, edges)
    if series.trait.kind == "counter":
        taken = np.unique(np.clip(positions, 0, max(len(series) - 1, 0)))
        if len(series) < 2 or taken.size < _MIN_PAIRS:
            return None
        thin = Series(
            series.target, series.metric, series.object, series.trait, series.time_ns[taken], series.value[taken]
        ).rate()
        middle, result = 0.5 * (series.time_ns[taken][1:] + series.time_ns[taken][:-1]), thin.values
    else:
        filled = np.diff(positions) > 0
        if filled.sum() < _MIN_PAIRS:
            return None
        inner = series.values[positions[0] : positions[-1]]
        result = np.add.reduceat(inner, (positions[:-1] - positions[0])[filled]) / np.diff(positions)[filled]
        middle = centres_ns[filled].astype(np.float64)
    good = np.isfinite(result)
    if good.sum() < _MIN_PAIRS or good.sum() < 0.75 * centres_ns.size:
        return None
    return np.interp(centres_ns.astype(np.float64), middle[good], result[good])


def _explains(value: Floats, load: Floats, series: Series) -> Following | None:
    size = float(np.max(np.abs(load)))
    if not 0 < size < 1e150:
        return None
    load = load / size
    mean, spread = float(load.mean()), float(load.std())
    if not spread > _VARIES * abs(mean):
        return None
    indices = np.linspace(-1, 1, value.size)
    own, rest = _detrended(load, indices), _detrended(value, indices)
    unit = series.trait.unit + ("/s" if series.trait.kind == "counter" else "")
    if float(own @ own) < _OWN * spread**2 * value.size:
        together = float(np.corrcoef(load, value)[0, 1]) if float(np.ptp(value)) > 0 else 0.0
        each = float((load - mean) @ value) / (spread**2 * value.size)
        share = max(together, 0.0) ** 2
        # what follows a load is base + each·load with a base of 0 or more, but for noise in the slope
        possible = each * mean <= _BASELESS * abs(float(value.mean()))
        return Following(series.metric, unit, share if possible else 0.0, each / size, mean * size, straight=True)
    each = float(own @ rest) / float(own @ own)
    total = float(rest @ rest)
    share = each**2 * float(own @ own) / total if total > 0 and each > 0 else 0.0
    if each > _SURELY * _error(own, rest - each * own):
        # noise hides how much of its movement beside a line the load explains, not that it follows: then all counts
        left = value - value.mean() - each * (load - mean)
        share = max(share, 1 - float(left @ left) / float(np.sum((value - value.mean()) ** 2)))
    return Following(series.metric, unit, min(share, 1.0), each / size, mean * size)


def _error(own: Floats, left: Floats) -> float:
    """The standard error of what follows, with residuals that remember (lag-1 correlation)."""
    square = float(left @ left)
    if not square > 0:
        return 0.0
    rho = min(max(float(left[1:] @ left[:-1]) / square, 0.0), 0.95)
    return float(np.sqrt(square / max(left.size - 3, 1) / float(own @ own) * (1 + rho) / (1 - rho)))


def _detrended(value: Floats, indices: Floats) -> Floats:
    """What is left of values beside their straight line."""
    off: Floats = value - value.mean()
    return off - float(indices @ off) / float(indices @ indices) * indices
