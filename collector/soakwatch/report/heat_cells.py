"""What a heat map shows: series by time, in bins. A bin without samples is NaN, never zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from soakwatch_model.series import Series
from soakwatch_model.window import Window

MAX_BINS = 480
MAX_ROWS = 64
How = Literal["mean", "highest"]


@dataclass(frozen=True, slots=True, eq=False)
class HeatMap:
    """Series by time: ``cells`` (rows, bins) float32 in ``unit``, NaN where nothing was read; ``names`` one a row.

    Each cell is the mean or the highest reading of its bin of ``bin_s`` seconds. ``key`` names what is shown, as JSON.
    """

    target: str
    key: str
    names: tuple[str, ...]
    cells: NDArray[np.float32]
    window: Window
    unit: str
    how: How
    log: bool

    @property
    def bin_s(self) -> float:
        """The length of a bin in seconds."""
        return self.window.seconds / max(len(self.cells[0]), 1)


def bins_of(window: Window, cadence_s: float | None) -> int:
    """How many bins so that each holds two readings if none is missing, at most 480."""
    if not cadence_s:
        return MAX_BINS
    return max(1, min(MAX_BINS, int(window.seconds / (2 * cadence_s))))


def binned(series: Series, window: Window, bins: int, how: How) -> NDArray[np.float64]:
    """The mean or the highest reading in each of ``bins`` equal parts of the window, (bins,); NaN where none is."""
    values_by_bin = np.full(bins, np.nan)
    good = series.finite()
    edges = np.linspace(window.begin_ns, window.end_ns, bins + 1).astype(np.int64)
    edges[0], edges[-1] = window.begin_ns, window.end_ns
    edges_at = np.searchsorted(good.time_ns, edges)
    full = np.flatnonzero(np.diff(edges_at) > 0)
    if not full.size:
        return values_by_bin
    values = good.values[: edges_at[-1]]
    starts = edges_at[full]
    if how == "highest":
        values_by_bin[full] = np.maximum.reduceat(values, starts)
    else:
        values_by_bin[full] = np.add.reduceat(values, starts) / np.diff(edges_at)[full]
    return values_by_bin
