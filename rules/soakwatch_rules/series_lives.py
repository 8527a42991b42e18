"""Lives: the stretches between restarts. Growth is judged within one, never across two."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from soakwatch_model.event import Event
from soakwatch_model.series import Series
from soakwatch_model.window import Window

_BIRTHS = frozenset({"process.start", "process.restart"})
_OF_PROCESS = _BIRTHS | {"process.exit"}
_OF_MONITOR = frozenset({"gap"})


@dataclass(frozen=True, slots=True, eq=False)
class Life:
    """One stretch without a restart, and its readings (at least one)."""

    window: Window
    series: Series


def lives(series: Series, window: Window, events: Iterable[Event]) -> tuple[Life, ...]:
    """The lives of a series' object in a window, in order; those without a reading are left out.

    A reboot (or an event that announces one) cuts every series; the start, restart or exit of a process cuts the
    series of its object; a time in which the monitor did not run cuts the monitor's own. A gap of polls is no restart.
    """
    cuts = sorted({e.begin_ns for e in _cutting(events, series) if window.begin_ns < e.begin_ns < window.end_ns})
    edges = [window.begin_ns, *cuts, window.end_ns]
    positions = np.searchsorted(series.time_ns, edges)
    return tuple(
        Life(Window(edges[i], edges[i + 1]), series.between(edges[i], edges[i + 1]))
        for i in np.flatnonzero(positions[1:] > positions[:-1]).tolist()
    )


def dead_seconds(series: Series, window: Window, events: Iterable[Event]) -> float:
    """Seconds for which the object is known not to have existed: without readings, after an exit or before its start.

    No reading was due then, so none is missing. Stretches without readings that no event explains do not count.
    """
    own = _cutting(events, series)
    cuts = sorted((e.begin_ns, e.kind) for e in own if window.begin_ns < e.begin_ns < window.end_ns)
    edges = [(window.begin_ns, ""), *cuts, (window.end_ns, "")]
    dead_ns = 0
    for (begin_ns, left), (end_ns, right) in pairwise(edges):
        explained = left == "process.exit" or (right in _BIRTHS and left in {"", "process.exit"})
        if explained and not len(series.between(begin_ns, end_ns)):
            dead_ns += end_ns - begin_ns
    return dead_ns * 1e-9


def _cutting(events: Iterable[Event], series: Series) -> list[Event]:
    """The events that end a life of the series; a run has hundreds of events, and every rule asks for every series."""
    kinds = frozenset[str]()
    if series.metric.startswith("monitor."):
        kinds = _OF_MONITOR
    elif series.metric.startswith("process."):
        kinds = _OF_PROCESS
    return [
        event
        for event in events
        if (event.kind in kinds and (kinds is _OF_MONITOR or event.object == series.object))
        or event.kind == "reboot"
        or "reboot" in event.expect
    ]
