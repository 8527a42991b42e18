"""Summaries of many series, read one after another, so that thousands of them are never in memory together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from soakwatch.core.formatting import natural
from soakwatch.core.plotted import as_plotted
from soakwatch.record.source import ReportSource, SeriesKey
from soakwatch.report.curves import Glance, glance_of
from soakwatch.report.heat_cells import How, binned, bins_of
from soakwatch_model.window import Window

MAX_SERIES_READ = 300
_STRETCHES = 3
_MIN_SAMPLE_NS = 120 * 10**9


@dataclass(frozen=True, slots=True, eq=False)
class SeriesSummary:
    """What a panel needs to know of a series before it draws it: its extremes as drawn, and its row of a heat map.

    ``unit`` is that of the values as drawn, before any scale; ``row`` is empty where no heat map was asked for.
    """

    key: SeriesKey
    unit: str
    low: float
    high: float
    row: NDArray[np.float64]
    glance: Glance

    @property
    def moved(self) -> float:
        """How far apart its extremes are."""
        return self.high - self.low


def order_of(key: SeriesKey) -> tuple[object, ...]:
    """A sorting key of series: by object in natural order, the whole before its parts."""
    return (natural(key.object), key.metric)


def summaries_of(
    source: ReportSource, keys: Sequence[SeriesKey], window: Window, *, how: How | None
) -> Iterator[SeriesSummary]:
    """Each series with a number in the window. With ``how`` the summaries have rows of a heat map."""
    bins = 0
    for key in keys:
        series = source.series(key, window.begin_ns, window.end_ns)
        drawn, _ = as_plotted(series)
        glance = glance_of(series, drawn)
        if glance.low is None or glance.high is None:
            continue
        good = drawn.finite()
        if how is not None and not bins:
            bins = bins_of(window, good.cadence_s)
        row = binned(good, window, bins, how) if how is not None else np.empty(0)
        yield SeriesSummary(key, drawn.trait.unit, glance.low, glance.high, row, glance)


def candidates(
    source: ReportSource, keys: Sequence[SeriesKey], window: Window, first: Collection[SeriesKey]
) -> tuple[SeriesKey, ...]:
    """At most 300 series that are worth reading whole, in natural order.

    If there are more, those in ``first`` (with objections) are taken, then those that counted most, or were highest, in
    three short windows at the begin, in the middle and at the end. A peak elsewhere may be missed.
    """
    if len(keys) <= MAX_SERIES_READ:
        return tuple(sorted(keys, key=order_of))
    length = max((window.end_ns - window.begin_ns) // 1000, _MIN_SAMPLE_NS)
    starts = np.linspace(window.begin_ns, max(window.end_ns - length, window.begin_ns), _STRETCHES).astype(np.int64)
    ranked = sorted(keys, key=lambda key: (key not in first, -_rough(source, key, starts.tolist(), length)))
    return tuple(sorted(ranked[:MAX_SERIES_READ], key=order_of))


def _rough(source: ReportSource, key: SeriesKey, starts: Sequence[int], length: int) -> float:
    """What a counter counted from the first window to the last, or the highest reading of a gauge in any of them."""
    ends = starts[:: len(starts) - 1]
    first = source.series(key, ends[0], ends[0] + length).finite()
    if first.trait.kind == "counter":
        last = source.series(key, ends[-1], ends[-1] + length).finite()
        counted = float(last.value[-1]) - float(first.value[0]) if len(first) and len(last) else 0.0
        return counted if counted >= 0 else float("inf")  # it began anew, which is news
    parts = [first, *(source.series(key, start, start + length).finite() for start in starts[1:])]
    return max((float(part.value.max()) for part in parts if len(part)), default=0.0)
