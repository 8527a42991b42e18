"""Lives: the stretches between restarts. Growth is judged within one, never across two."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from soakwatch_rules.rule import Event, Window
from soakwatch_rules.series import Series

_OF_PROCESS = frozenset({"process.start", "process.restart", "process.exit"})


@dataclass(frozen=True, slots=True, eq=False)
class Life:
    """One stretch without a restart, and the readings in it (at least one)."""

    window: Window
    series: Series


def lives(series: Series, window: Window, events: Iterable[Event]) -> tuple[Life, ...]:
    """The lives of a series' object in a window, in order; stretches without a reading are left out.

    A reboot (or an event that announces one) cuts every series; the start, restart or exit of a process cuts the
    series of its object. A gap is not a restart.
    """
    cuts = sorted({e.begin_ns for e in events if _cuts(e, series) and window.begin_ns < e.begin_ns < window.end_ns})
    edges = [window.begin_ns, *cuts, window.end_ns]
    at = np.searchsorted(series.time_ns, edges)
    return tuple(
        Life(Window(edges[i], edges[i + 1]), series.between(edges[i], edges[i + 1]))
        for i in np.flatnonzero(at[1:] > at[:-1]).tolist()
    )


def _cuts(event: Event, series: Series) -> bool:
    if event.kind == "reboot" or "reboot" in event.expect:
        return True
    return event.kind in _OF_PROCESS and series.metric.startswith("process.") and event.object == series.object
