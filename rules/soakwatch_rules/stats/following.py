"""Series that follow a load: the part that the load explains, and the rest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from soakwatch_model.flow import BACK, OFFERED, SENT
from soakwatch_model.metric import flows
from soakwatch_model.series import Floats, Ints, Series
from soakwatch_model.shared_times import of_times

_MIN_PAIRS: Final = 24  # block pairs
_VARIES: Final = 0.02  # share of its mean by which a load must spread to explain anything
_OWN: Final = 0.05  # share of a load's variance that its straight line must leave
_BASELESS: Final = 1.15
_SURELY: Final = 5.0  # standard errors
_UNSURE: Final = 1.0  # standard error
_LOADS: Final = frozenset(("load.connections", *flows(OFFERED), *flows(SENT), *flows(BACK)))


@dataclass(frozen=True, slots=True)
class LoadDependence:
    """``metric`` explains ``share`` of the variance (both without their straight lines), at ``each`` per unit of load.

    ``unit`` and ``mean`` are those of the load; ``straight``: the load itself rises steadily, so that its share cannot
    be told from a leak.
    """

    metric: str
    unit: str
    share: float
    each: float
    mean: float
    straight: bool = False


def explaining_load(centres_ns: Ints, value: Floats, loads: Iterable[Series]) -> tuple[LoadDependence, Floats] | None:
    """The load that explains most of the blocks, and its values there; None if no load varies.

    Least squares of the value on time and load together: only what moves with the load beside a straight line is
    attributed to it, so that a rising load does not explain a leak away.
    """
    best: tuple[LoadDependence, Floats] | None = None
    centres = tuple(centres_ns.tolist())
    for series in loads:
        if series.metric not in _LOADS:
            continue
        load = _on(series.time_ns, series, centres)
        if load is None:
            continue
        match = _explains(value, load, series)
        if match is not None and (best is None or match.share > best[0].share):
            best = match, load
    return best


def holds_throughout(value: Floats, load: Floats, each: float) -> bool:
    """Whether both halves and the last third of the blocks follow the load too, by at least half as much per unit, as
    far as their noise can tell. A cache that was full at the highest load does not fall with it, and a leak that begins
    when the load begins to rise did not follow it before."""
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


@of_times
def _on(time_ns: Ints, series: Series, centres: tuple[int, ...]) -> Floats | None:
    """A load as means over the blocks (counters as rates between their edges); None if it does not cover them."""
    centres_ns = np.array(centres, dtype=np.int64)
    half = (centres_ns[1] - centres_ns[0]) // 2
    edges = np.append(centres_ns - half, centres_ns[-1] + half)
    positions = np.searchsorted(time_ns, edges)
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


def _explains(value: Floats, load: Floats, series: Series) -> LoadDependence | None:
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
        # what follows a load is base + each·load with a base of at least 0, up to noise in the slope
        possible = each * mean <= _BASELESS * abs(float(value.mean()))
        return LoadDependence(series.metric, unit, share if possible else 0.0, each / size, mean * size, straight=True)
    each = float(own @ rest) / float(own @ own)
    total = float(rest @ rest)
    share = each**2 * float(own @ own) / total if total > 0 and each > 0 else 0.0
    if each > _SURELY * _error(own, rest - each * own):
        # noise hides how much of the movement beside a line the load explains, not that it follows: count all movement
        left = value - value.mean() - each * (load - mean)
        share = max(share, 1 - float(left @ left) / float(np.sum((value - value.mean()) ** 2)))
    return LoadDependence(series.metric, unit, min(share, 1.0), each / size, mean * size)


def _error(own: Floats, left: Floats) -> float:
    """The standard error of the slope on the load, with correlated residuals (lag 1)."""
    square = float(left @ left)
    if not square > 0:
        return 0.0
    rho = min(max(float(left[1:] @ left[:-1]) / square, 0.0), 0.95)
    return float(np.sqrt(square / max(left.size - 3, 1) / float(own @ own) * (1 + rho) / (1 - rho)))


def _detrended(value: Floats, indices: Floats) -> Floats:
    """The values minus their straight line."""
    off: Floats = value - value.mean()
    return off - float(indices @ off) / float(indices @ indices) * indices
