"""Runs laid on one clock: minute means and maxima of what runs are compared by, from one hour zero for all.

InfluxQL cannot shift times, so a second, small copy is written (measurement ``soakwatch_aligned``). Hour zero lies in
the year 2100: the retention of a bucket drops what is old, and this must stay as long as the run's verdict does.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from soakwatch.record import RecordView
from soakwatch.sinks.lines import decimals, key
from soakwatch_agent.metric import BY_NAME
from soakwatch_agent.sample import object_labels

MEASUREMENT = "soakwatch_aligned"
ZERO_NS = 4_102_444_800_000_000_000
"""2100-01-01T00:00:00Z."""
MINUTE_NS = 60_000_000_000
METRICS = frozenset(
    {
        "system.cpu.utilization",
        "system.cpu.module.utilization",
        "system.memory.usage",
        "system.memory.utilization",
        "process.memory.usage",
        "process.cpu.utilization",
        "queue.depth",
        "queue.dropped",
        "system.network.packet.dropped",
        "system.forwarding.dropped",
        "system.ip.dropped",
        "system.memory.pool.usage",
        "system.sessions",
        "load.request.rate",
        "load.requests",
        "load.tx.packet.rate",
        "load.tx.packets",
        "load.tx.bit.rate",
        "load.tx.bytes",
        "load.latency",
        "load.lost.packets",
    }
)
"""What two releases or two nights are held against each other by; counters as their rate per second."""


def aligned(view: RecordView, run: str) -> Iterator[bytes]:
    """The lines of a run, without line ends; none for a record without a poll. Raises RecordError.

    A minute that holds no reading has no line. The same record gives the same lines, so that writing them again
    changes nothing; a minute that was written half full is overwritten when it is full.
    """
    phases = view.phases()
    begin_ns = phases[0].window.begin_ns if phases else None
    roles = view.roles()
    for series_key in view.keys(METRICS):
        series = view.series(series_key)
        if BY_NAME[series_key.metric].kind == "counter":
            series = series.rate()
        series = series.finite()
        if begin_ns is None:
            begin_ns = view.window().begin_ns
        after = series.time_ns >= begin_ns
        times, values = series.time_ns[after], series.values[after]
        if not times.size:
            continue
        tags = {
            "run": run,
            "target": series_key.target,
            "role": roles.get(series_key.target, ""),
            "metric": series_key.metric,
        }
        head = key(MEASUREMENT, tags, object_labels(series_key.object))
        minutes, starts, counts = np.unique((times - begin_ns) // MINUTE_NS, return_index=True, return_counts=True)
        with np.errstate(over="ignore"):
            means, highest = np.add.reduceat(values, starts) / counts, np.maximum.reduceat(values, starts)
        known = np.isfinite(means)
        minutes, means, highest = minutes[known], means[known], highest[known]
        fields = f"{head} mean=".encode(errors="replace")
        for minute, mean, most in zip(minutes.tolist(), decimals(means), decimals(highest), strict=True):
            yield b"%b%b,max=%b %d" % (fields, mean, most, ZERO_NS + minute * MINUTE_NS)
