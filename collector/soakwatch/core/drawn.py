"""A series as it is drawn: counters as rates, times of birth as ages."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from soakwatch_rules.series import Series

_AT_ONCE = 0.05  # of the usual distance
BIRTHS = ("start_time", "boot.time")


def shown(series: Series) -> tuple[Series, str]:
    """The series as it is drawn, and what was done: counters become rates, times of birth become ages."""
    if series.trait.kind == "counter":
        return _apart(series).rate(), "shown as a rate"
    if series.trait.kind == "state" and series.trait.unit == "s" and series.metric.endswith(BIRTHS):
        age = series.time_ns * 1e-9 - series.values
        return replace(series, value=age), "shown as the time since then"
    return series, ""


def _apart(series: Series) -> Series:
    """The series without readings that came at once after another: over so short a time nothing is a pace."""
    steps = np.diff(series.time_ns)
    if not steps.size:
        return series
    usual = (series.cadence_s or 0.0) * 1e9 or float(np.median(steps))
    near = steps < _AT_ONCE * usual
    if not bool(near.any()):
        return series
    kept = np.concatenate([[True], ~near])
    return replace(series, time_ns=series.time_ns[kept], value=series.value[kept])
