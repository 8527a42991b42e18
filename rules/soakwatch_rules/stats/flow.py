"""Flow: how much was counted between any two times, by counters or by rates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from soakwatch_model.series import Series

_MAX_COUNT = 1e120  # no counter counts this much in one reading; sums and squares of it stay finite


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """What was counted from ``begin_ns`` to ``end_ns`` of each reading; NaN where nobody knows (a restart)."""

    begin_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    count: NDArray[np.float64]

    @property
    def seconds(self) -> NDArray[np.float64]:
        """How long each step lasted."""
        return np.asarray((self.end_ns - self.begin_ns) * 1e-9, dtype=np.float64)


def steps(series: Series) -> Steps:
    """The steps of a counter, or of a rate times the time that each reading speaks for (the time since the last one).

    A counter that falls to less than half of what it stood at began again at 0: it counted what it shows, and what
    it counted before its restart is not known. Any other fall is no count and gives NaN.
    """
    good = series.finite()
    value = good.values
    with np.errstate(over="ignore", invalid="ignore"):
        if good.trait.kind == "counter":
            count = good.increments().values.copy()
            restarted = np.isnan(count) & (value[1:] >= 0) & (value[1:] < 0.5 * value[:-1])
            count[restarted] = value[1:][restarted]
        else:
            count = value[1:] * np.diff(good.time_ns) * 1e-9
    count[~(np.abs(count) < _MAX_COUNT)] = np.nan
    return Steps(good.time_ns[:-1], good.time_ns[1:], count)


def restarts(series: Series) -> int:
    """How often a counter fell without having wrapped."""
    with np.errstate(over="ignore", invalid="ignore"):
        return int(np.isnan(series.finite().increments().values).sum())


def amount(series: Iterable[Series], begin_ns: int, end_ns: int) -> tuple[float, float]:
    """What all of the series counted in a stretch, and the seconds of it that the least complete of them saw.

    A step that reaches over an edge counts by its share, as if it had been counted evenly. (0, 0) without a series.
    """
    total, least = 0.0, None
    for samples in series:
        increments = steps(samples)
        inside = np.minimum(increments.end_ns, end_ns) - np.maximum(increments.begin_ns, begin_ns)
        share = np.clip(inside, 0, None) / np.maximum(increments.end_ns - increments.begin_ns, 1)
        known = np.isfinite(increments.count)
        total += float(np.sum(increments.count[known] * share[known]))
        seen = float(np.sum((share * increments.seconds)[known]))
        least = seen if least is None else min(least, seen)
    return total, least or 0.0


def amounts(series: Iterable[Series], edges_ns: NDArray[np.int64]) -> NDArray[np.float64]:
    """What all of the series are known to have counted between neighbouring edges, as ``amount`` tells it."""
    total = np.zeros(max(edges_ns.size - 1, 0))
    for samples in series:
        increments = steps(samples)
        if increments.count.size:
            positions = np.append(increments.begin_ns[:1], increments.end_ns)
            count = np.append(0.0, np.cumsum(np.nan_to_num(increments.count)))
            total += np.diff(np.interp((edges_ns - positions[0]) * 1e-9, (positions - positions[0]) * 1e-9, count))
    return total


def binned(series: Iterable[Series], edges_ns: NDArray[np.int64]) -> NDArray[np.float64]:
    """What all of the series counted between neighbouring edges; NaN in a bin that not all of them saw in full.

    >>> from soakwatch_rules.signals import readings
    >>> sent = readings("load.tx.packets", np.arange(0.0, 500.0, 10.0), 1.0)
    >>> binned([sent], np.array([0, 10, 20]) * 10**9).tolist()
    [100.0, 100.0]
    """
    total = np.zeros(max(edges_ns.size - 1, 0))
    for samples in series:
        increments = steps(samples)
        if not increments.count.size:
            return np.full(total.size, np.nan)
        known = np.isfinite(increments.count)
        positions = np.append(increments.begin_ns[:1], increments.end_ns)
        index, edge = (positions - positions[0]) * 1e-9, (edges_ns - positions[0]) * 1e-9
        count = np.append(0.0, np.cumsum(np.where(known, increments.count, 0.0)))
        seen = np.append(0.0, np.cumsum(np.where(known, increments.seconds, 0.0)))
        inside = np.diff(np.interp(edge, index, seen))
        whole = inside >= 0.999 * np.diff(edge)
        total += np.where(whole, np.diff(np.interp(edge, index, count)), np.nan)
    return total
