"""Series made ready for a plot: counters as rates, readable units, few points; every spike stays, and no line crosses a
gap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from soakwatch.core.formatting import Scale, quantity, scale_of, utc
from soakwatch.core.plotted import START_TIMES, as_plotted
from soakwatch.record.source import SeriesKey
from soakwatch_model.series import Series

_GAP = 3.5  # times the usual distance of readings: a longer silence is drawn as a hole
_MAX_GAPS_KEPT = 200
Places = NDArray[np.int64]
Readings = NDArray[np.float64] | NDArray[np.int64] | NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A thinned line: ``time_ms`` and ``value`` (already in ``unit``, NaN where the line breaks).

    ``readings`` is the length of the whole series, ``low``/``high`` are its true extremes in ``unit`` (None if nothing
    can be drawn), ``note`` says what was done to it. ``constant`` is the value of every reading, in words; empty if
    they differ. With ``rate`` the values are increments per second of a counter.
    """

    key: SeriesKey
    time_ms: NDArray[np.float64]
    value: NDArray[np.float32]
    unit: str
    steps: bool
    readings: int
    low: float | None
    high: float | None
    scale: Scale
    source_unit: str
    note: str
    constant: str
    rate: bool = False


@dataclass(frozen=True, slots=True)
class Glance:
    """A series that is not drawn: its extremes as they would be (None if it has no number), the value of every reading
    in words (empty if they differ), and how many readings it has."""

    low: float | None
    high: float | None
    constant: str
    readings: int

    @property
    def moved(self) -> float:
        """How far apart its extremes are, as a share of the larger one."""
        if self.low is None or self.high is None:
            return 0.0
        return (self.high - self.low) / (max(abs(self.high), abs(self.low)) or 1.0)


def glance_of(series: Series, drawn: Series | None = None) -> Glance:
    """What is known of a series at a glance; ``drawn`` is it as it is plotted, if that was made already."""
    constant = _constant(series)
    if constant and drawn is None:  # what does not change need not be made a rate
        return Glance(0.0, 0.0, constant, len(series))
    good = (as_plotted(series)[0] if drawn is None else drawn).finite().value
    low, high = (float(good.min()), float(good.max())) if good.size else (None, None)
    return Glance(low, high, constant, len(series))


def curve_of(series: Series, points: int, scale: Scale | None = None) -> Curve:
    """At most about ``points`` points of the series, chosen so that every spike survives: see ``_telling``.

    A restart of a counter and a silence of more than 3.5 times the usual distance break the line. ``scale`` is shared
    with the lines beside it; without one the curve gets its own.
    """
    drawn, note = as_plotted(series)
    good = drawn.finite()
    low, high = (float(good.value.min()), float(good.value.max())) if len(good) else (None, None)
    peak = max(abs(low or 0.0), abs(high or 0.0))
    state = drawn.trait.kind == "state" and not note
    if scale is None:
        scale = Scale(1.0, "") if state and drawn.trait.unit == "1" else scale_of(drawn.trait.unit, peak)
    time_ms, picked = thinned(good.time_ns, good.value, breaks(drawn, good), points)
    return Curve(
        SeriesKey(series.target, series.metric, series.object),
        time_ms,
        (picked * scale.factor).astype(np.float32),
        scale.label,
        state,
        len(series),
        None if low is None else low * scale.factor,
        None if high is None else high * scale.factor,
        scale,
        drawn.trait.unit,
        note,
        _constant(series) if drawn is not series or low == high else "",
        series.trait.kind == "counter",
    )


def _constant(series: Series) -> str:
    values = series.finite().value
    if not len(values) or values.min() != values.max():
        return ""
    if series.trait.kind == "state" and series.metric.endswith(START_TIMES):
        return f"{utc(int(values[0] * 10**9))} UTC"
    unit = "" if series.trait.kind == "state" and series.trait.unit == "1" else series.trait.unit
    return quantity(float(values[0]), unit)


def breaks(drawn: Series, good: Series) -> Places:
    """Indexes in ``good`` before which the line breaks: after a gap, or after readings that are no numbers."""
    if len(good) < 2:
        return np.empty(0, dtype=np.int64)
    steps = np.diff(good.time_ns)
    planned = (drawn.cadence_s or 0.0) * 1e9
    gaps = np.empty(0, dtype=np.int64)
    if float(steps.max()) > _GAP * planned:  # else no gap is possible, whatever distance is usual
        gaps = np.flatnonzero(steps > _GAP * max(planned, float(np.median(steps)))) + 1
    if len(good) < len(drawn):
        indices = np.searchsorted(drawn.time_ns, good.time_ns)
        gaps = np.union1d(gaps, np.flatnonzero(np.diff(indices) > 1) + 1)
    return gaps


def thinned(
    time_ns: NDArray[np.int64], values: Readings, gaps: Places, points: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Times (ms) and values of about ``points`` of the readings, all finite; a NaN at each gap that is kept.

    The lowest and the highest reading of every stretch and both sides of the first 200 gaps are kept; no line crosses a
    gap.
    """
    picked = np.arange(values.size)
    if values.size > points:
        edges = gaps[:_MAX_GAPS_KEPT]
        extremes = [int(values.argmin()), int(values.argmax())]
        telling = _telling(time_ns - time_ns[0], values, points)
        picked = np.unique(np.concatenate([*telling, edges, edges - 1, extremes]))
    time_ms = time_ns[picked] // 10**6 * 1.0
    drawn = values[picked].astype(np.float64)
    passed = np.searchsorted(gaps, picked, side="right")
    cut = np.flatnonzero(np.diff(passed) > 0) + 1
    return np.insert(time_ms, cut, time_ms[cut]), np.insert(drawn, cut, np.nan)


def _telling(elapsed_ns: Places, values: Readings, points: int) -> tuple[Places, Places]:
    """Indexes of the readings to draw: the lowest and the highest in each of points // 4 equal stretches, and those
    that give the line its shape.

    MinMaxLTTB alone gives the shape, but of two spikes in one of its stretches it may drop one.
    """
    from tsdownsample import MinMaxDownsampler, MinMaxLTTBDownsampler

    held = np.ascontiguousarray(values)
    half = max(points // 4, 1) * 2
    spikes: NDArray[np.uint64] = MinMaxDownsampler().downsample(elapsed_ns, held, n_out=half)  # type: ignore[no-untyped-call]
    shape: NDArray[np.uint64] = MinMaxLTTBDownsampler().downsample(  # type: ignore[no-untyped-call]
        elapsed_ns, held, n_out=max(half, 4)
    )
    return spikes.astype(np.int64), shape.astype(np.int64)
