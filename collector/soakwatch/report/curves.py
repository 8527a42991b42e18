"""What is drawn of a series: counters as rates, human units, few points, no spike lost, no hole bridged."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from soakwatch.report.show import Scale, quantity, scale_of, utc
from soakwatch.report.source import SeriesKey
from soakwatch_rules.series import Series

_HOLE = 3.5  # times the usual distance of readings: a longer silence is drawn as a hole
_MOST_HOLES_KEPT = 200
_BIRTHS = ("start_time", "boot.time")


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A thinned line: ``time_ms`` and ``value`` (already in ``unit``, NaN where the line breaks).

    ``readings`` is the length of the series it stands for, ``low``/``high`` its true extremes in ``unit`` (None if
    nothing can be drawn), ``note`` what was done to it. ``constant`` is the one value that every reading has, in words;
    empty if they differ.
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


def shown(series: Series) -> tuple[Series, str]:
    """The series as it is drawn, and what was done: counters become rates, times of birth become ages."""
    if series.trait.kind == "counter":
        return series.rate(), "shown as a rate"
    if series.trait.kind == "state" and series.trait.unit == "s" and series.metric.endswith(_BIRTHS):
        age = series.time_ns * 1e-9 - series.values
        return replace(series, value=age), "shown as the time since then"
    return series, ""


def curve_of(series: Series, points: int, scale: Scale | None = None) -> Curve:
    """At most about ``points`` points of the series, chosen by MinMaxLTTB so that every spike survives.

    A restart of a counter and a silence of more than 3.5 times the usual distance break the line. ``scale`` is that
    of the lines it stands beside; without one it gets its own.
    """
    drawn, note = shown(series)
    good = drawn.finite()
    values = good.values
    peak = float(np.abs(values).max()) if len(good) else 0.0
    state = drawn.trait.kind == "state" and not note
    if scale is None:
        scale = Scale(1.0, "") if state and drawn.trait.unit == "1" else scale_of(drawn.trait.unit, peak)
    time_ms, picked = _thin(good.time_ns, values * scale.factor, _broken(drawn, good), points)
    return Curve(
        SeriesKey(series.target, series.metric, series.object),
        time_ms,
        picked.astype(np.float32),
        scale.label,
        state,
        len(series),
        float(values.min()) * scale.factor if len(good) else None,
        float(values.max()) * scale.factor if len(good) else None,
        scale,
        drawn.trait.unit,
        note,
        _constant(series),
    )


def _constant(series: Series) -> str:
    values = series.finite().value
    if not len(values) or values.min() != values.max():
        return ""
    if series.trait.kind == "state" and series.metric.endswith(_BIRTHS):
        return f"{utc(int(values[0] * 10**9))} UTC"
    unit = "" if series.trait.kind == "state" and series.trait.unit == "1" else series.trait.unit
    return quantity(float(values[0]), unit)


def _broken(drawn: Series, good: Series) -> NDArray[np.bool_]:
    """Where the line breaks before a reading of ``good``: behind a hole, or behind readings that are no numbers."""
    if len(good) < 2:
        return np.zeros(len(good), dtype=np.bool_)
    steps = np.diff(good.time_ns)
    usual = drawn.cadence_s * 1e9 if drawn.cadence_s else float(np.median(steps))
    breaks = np.concatenate([[False], steps > _HOLE * max(usual, float(np.median(steps)))])
    if len(good) < len(drawn):
        place = np.searchsorted(drawn.time_ns, good.time_ns)
        breaks[1:] |= np.diff(place) > 1
    return breaks


def _thin(
    time_ns: NDArray[np.int64], values: NDArray[np.float64], breaks: NDArray[np.bool_], points: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    from tsdownsample import MinMaxLTTBDownsampler

    picked = np.arange(values.size)
    holes = np.flatnonzero(breaks)
    if values.size > points:
        # the library thins into an even number of buckets; regular positions would bridge holes, real times do not
        elapsed = (time_ns - time_ns[0]).astype(np.float64)
        thinned: NDArray[np.uint64] = MinMaxLTTBDownsampler().downsample(  # type: ignore[no-untyped-call]
            elapsed, np.ascontiguousarray(values), n_out=points - points % 2
        )
        edges = holes[:_MOST_HOLES_KEPT]
        extremes = [int(values.argmin()), int(values.argmax())]
        picked = np.unique(np.concatenate([thinned.astype(np.int64), edges, edges - 1, extremes]))
    time_ms = time_ns[picked] // 10**6 * 1.0
    drawn = values[picked]
    passed = np.searchsorted(holes, picked, side="right")
    cut = np.flatnonzero(np.diff(passed) > 0) + 1
    return np.insert(time_ms, cut, time_ms[cut]), np.insert(drawn, cut, np.nan)
