"""Flow: how much counters or rates counted between any two times."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from soakwatch_model.series import Floats, Ints, Series

_MAX_COUNT = 1e120  # larger steps are invalid; sums and squares below it stay finite


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """What was counted from ``begin_ns`` to ``end_ns`` of each step; NaN if unknown (a restart)."""

    begin_ns: Ints
    end_ns: Ints
    count: Floats

    @property
    def seconds(self) -> Floats:
        """The length of each step in seconds."""
        return np.asarray((self.end_ns - self.begin_ns) * 1e-9, dtype=np.float64)


def steps(series: Series) -> Steps:
    """The steps of a counter, or of a rate times the time since the previous reading.

    A counter that falls below half of its value restarted at 0: it counted what it shows now; what it counted before
    the restart is unknown. Any other fall is no count and gives NaN.
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
    """What all series counted in a stretch, and the seconds of it that the least complete series covers.

    A step that reaches over an edge counts by its share, as if counted evenly. (0, 0) without a series.
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


def amounts(series: Iterable[Series], edges_ns: Ints) -> Floats:
    """What all series counted between neighbouring edges, as far as known (see ``amount``)."""
    total = np.zeros(max(edges_ns.size - 1, 0))
    for samples in series:
        increments = steps(samples)
        if increments.count.size:
            positions = np.append(increments.begin_ns[:1], increments.end_ns)
            count = np.append(0.0, np.cumsum(np.nan_to_num(increments.count)))
            total += np.diff(np.interp((edges_ns - positions[0]) * 1e-9, (positions - positions[0]) * 1e-9, count))
    return total


def binned(series: Iterable[Series], edges_ns: Ints) -> Floats:
    """What all series counted between neighbouring edges; NaN in a bin that one of them does not cover.

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
