"""A series as it is plotted: counters as rates, start times as ages."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from soakwatch_rules.series import Series

_MIN_STEP = 0.05  # of the usual distance
START_TIMES = ("start_time", "boot.time")


def as_plotted(series: Series) -> tuple[Series, str]:
    """The series as it is plotted, and a note of the conversion: counters become rates, start times become ages."""
    if series.trait.kind == "counter":
        return _without_repeats(series).rate(), "shown as a rate"
    if series.trait.kind == "state" and series.trait.unit == "s" and series.metric.endswith(START_TIMES):
        age = series.time_ns * 1e-9 - series.values
        return replace(series, value=age), "shown as the time since then"
    return series, ""


def _without_repeats(series: Series) -> Series:
    """The series without readings that came at once after another: over so short a time nothing is a pace."""
    steps = np.diff(series.time_ns)
    if not steps.size:
        return series
    usual = (series.cadence_s or 0.0) * 1e9 or float(np.median(steps))
    near = steps < _MIN_STEP * usual
    if not bool(near.any()):
        return series
    kept = np.concatenate([[True], ~near])
    return replace(series, time_ns=series.time_ns[kept], value=series.value[kept])
