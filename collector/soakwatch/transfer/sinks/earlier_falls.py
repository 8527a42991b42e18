"""What a sink must know of counters that were sent before it was started: where each began anew, and its last reading.

A sink that says since when a counter counts sees that by a fall of its value. A process of the sink that is started
amid a run has not seen the earlier ones; the record has.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from soakwatch.record import RecordView
from soakwatch.transfer.sinks.lines import decimals, key
from soakwatch_model.metric import BY_NAME, COUNTER
from soakwatch_model.sample import object_labels

MOST_FALLS = 100
"""Of each counter, the last of them."""
_COUNTERS = frozenset(name for name, metric in BY_NAME.items() if metric.kind == COUNTER)


def earlier_falls(view: RecordView, run: str) -> Iterator[bytes]:
    """Lines of every counter, in order of time: its first reading, those on both sides of each fall, and the newest."""
    roles = view.roles()
    for name in view.keys(_COUNTERS):
        series = view.series(name)
        if not series.value.size:
            continue
        falls = np.flatnonzero(series.value[1:] < series.value[:-1])[-MOST_FALLS:]
        chosen = np.unique(np.concatenate([[0], falls, falls + 1, [series.value.size - 1]])).astype(np.int64)
        tags = {"run": run, "target": name.target, "role": roles.get(name.target, "")}
        head = key(name.metric, tags, object_labels(name.object)).encode(errors="replace")
        values, times = decimals(series.value[chosen]), series.time_ns[chosen].tolist()
        for value, time_ns in zip(values, times, strict=True):
            yield b"%b value=%b %d" % (head, value, time_ns)
