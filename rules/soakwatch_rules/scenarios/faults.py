"""Known faults for series that were read of a real device: what of its traffic is lost, what it does not tell.

Leaks and busy CPUs are made by ``synthetic.leak`` and ``synthetic.raised``. Nothing is changed in place.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from soakwatch_model.series import Series
from soakwatch_model.window import Window

Floats = NDArray[np.float64]


def inside(series: Series, window: Window) -> Floats:
    """The share of the time since the reading before that lies in a window, for each reading; 0 for the first.

    >>> at = np.arange(4, dtype=np.int64) * 10**10
    >>> trait = __import__("soakwatch_model.series", fromlist=["Trait"]).Trait("1", "gauge")
    >>> inside(Series("dut", "x", "", trait, at, np.ones(4)), Window(5 * 10**9, 12 * 10**9)).tolist()
    [0.0, 0.5, 0.2, 0.0]
    """
    time_ns = series.time_ns
    if time_ns.size < 2:
        return np.zeros(time_ns.size)
    before, after = time_ns[:-1], time_ns[1:]
    overlap = np.minimum(after, window.end_ns) - np.maximum(before, window.begin_ns)
    return np.concatenate([[0.0], np.clip(overlap, 0, None) / (after - before)])


def missing(series: Series, share: float, window: Window) -> Floats:
    """What a counter would have counted less at each reading, had it lost ``share`` of what came in a window; whole
    numbers, as events are. What a restart of the counter hides stays hidden."""
    steps = np.concatenate([[0.0], series.increments().values])[: len(series)]
    gone: Floats = np.floor(np.nan_to_num(steps) * share * inside(series, window))
    return gone


def thinned(series: Series, share: float, window: Window) -> Series:
    """A counter or a rate that loses ``share`` of what came in a window: the counter stays behind for good."""
    if series.trait.kind != "counter":
        return replace(series, value=series.values * (1.0 - share * inside(series, window)))
    return counted(series, -missing(series, share, window))


def counted(series: Series, more: Floats) -> Series:
    """A counter that counted ``more`` (or less) at each reading; it starts and wraps where it did."""
    steps = series.increments()
    restarts = np.concatenate([[False], ~np.isfinite(steps.values)])[: len(series)]
    total = np.cumsum(more)
    carried = np.maximum.accumulate(np.where(restarts, np.arange(len(series)), 0))
    total = total - np.where(carried > 0, total[carried], 0.0)
    if series.value.dtype.kind == "f":
        return replace(series, value=series.values + total)
    moved = series.value + total.astype(np.int64).astype(series.value.dtype)  # modulo 2**64, as counters are
    wraps = bool(np.any(series.value[1:] < series.value[:-1])) and not bool(np.any(restarts))
    if wraps and int(series.value.max()) < 1 << 32:
        moved = moved % (1 << 32)
    return replace(series, value=moved)


def risen(series: Series, factor: float, window: Window) -> Series:
    """A gauge that reads ``factor`` times as much in a window."""
    within = (series.time_ns >= window.begin_ns) & (series.time_ns < window.end_ns)
    return replace(series, value=np.where(within, series.values * factor, series.values))


def unread(series: Series, window: Window) -> Series:
    """A series without the readings of a window."""
    kept = (series.time_ns < window.begin_ns) | (series.time_ns >= window.end_ns)
    return replace(series, time_ns=series.time_ns[kept], value=series.value[kept])
