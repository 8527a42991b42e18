"""A series as it is plotted: counters as rates, start times as ages."""

from __future__ import annotations

from dataclasses import replace

from soakwatch_model.series import Series

START_TIMES = ("start_time", "boot.time")


def as_plotted(series: Series) -> tuple[Series, str]:
    """Converts counters to rates and start times to ages; also returns a note of the conversion."""
    if series.trait.kind == "counter":
        return series.spaced().rate(), "shown as a rate"
    if series.trait.kind == "state" and series.trait.unit == "s" and series.metric.endswith(START_TIMES):
        age = series.time_ns * 1e-9 - series.values
        return replace(series, value=age), "shown as the time since then"
    return series, ""
