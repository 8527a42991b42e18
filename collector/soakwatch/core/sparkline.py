"""A small line plot of a series for a table row: an SVG path, and its lowest and highest value in words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from soakwatch.core.formatting import extent
from soakwatch.core.plotted import as_plotted
from soakwatch_model.series import Series

WIDTH, HEIGHT = 120, 28
"""The box of a path, in SVG units."""
_BINS, _MARGIN, _HOLE = 60, 2.0, 3


@dataclass(frozen=True, slots=True)
class Sparkline:
    """``path`` is the ``d`` of an SVG path in a box of ``WIDTH`` by ``HEIGHT``; ``reach`` is the range of values with
    unit (counters as rates); ``moves`` is False if all values are equal."""

    target: str
    metric: str
    object: str
    path: str
    reach: str
    moves: bool


def sparkline(series: Series) -> Sparkline | None:
    """Draws minimum and maximum of sixty equal time spans, so that no spike is lost; None without a reading.

    A gap of more than three times the usual distance, and more than three spans, breaks the line.
    """
    drawn, _ = as_plotted(series)
    good = drawn.finite()
    if not len(good):
        return None
    values = good.values
    low, high = float(values.min()), float(values.max())
    span_ns = max(int(good.time_ns[-1] - good.time_ns[0]), 1)
    bins = ((good.time_ns - good.time_ns[0]) / span_ns * (_BINS - 1e-9)).astype(np.int64)
    starts = np.flatnonzero(np.diff(bins, prepend=-1))
    path = _path(bins[starts], np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts), low, high)
    return Sparkline(series.target, series.metric, series.object, path, extent(low, high, drawn.trait.unit), low < high)


def _path(
    bins: NDArray[np.int64], lows: NDArray[np.float64], highs: NDArray[np.float64], low: float, high: float
) -> str:
    # halve first: the difference of two large floats may overflow
    reach = high / 2 - low / 2

    def y(value: float) -> str:
        share = 0.5 if not reach > 0 else (value / 2 - low / 2) / reach
        return f"{HEIGHT - _MARGIN - share * (HEIGHT - 2 * _MARGIN):.1f}"

    parts: list[str] = []
    usual = float(np.median(np.diff(bins))) if bins.size > 1 else 1.0
    before = -_BINS * 10
    for bin_index, bottom, top in zip(bins.tolist(), lows.tolist(), highs.tolist(), strict=True):
        x = f"{(bin_index + 0.5) / _BINS * WIDTH:.0f}"
        # A single point has no length and would be invisible.
        pen, dot = ("L", "") if bin_index - before <= max(_HOLE, _HOLE * usual) else ("M", "h1")
        parts.append(f"{pen}{x} {y(bottom)}{dot}" + ("" if bottom == top else f"L{x} {y(top)}"))
        before = bin_index
    return "".join(parts)
