"""When an interface was administratively down, as its device reported it."""

from __future__ import annotations

import numpy as np

from soakwatch.judge.judged_record import JudgeableRecord
from soakwatch_model.label import label
from soakwatch_model.series import Series
from soakwatch_model.window import Window

_ADMIN_UP = "system.network.admin_up"


def shut_ports(record: JudgeableRecord, target: str, window: Window) -> dict[str, tuple[Window, ...]]:
    """The intervals of each interface by name; those never shut are left out.

    An interval starts at the last reading with the port up, since it was shut after that, and ends at the next one with
    the port up; the record's window bounds both.
    """
    shut: dict[str, tuple[Window, ...]] = {}
    for key in record.keys([_ADMIN_UP]):
        name = label(key.object, "interface")
        if key.target != target or not name:
            continue
        if found := _stretches(record.series(key, window.begin_ns, window.end_ns).finite(), window):
            shut[name] = (*shut.get(name, ()), *found)
    return shut


def _stretches(series: Series, window: Window) -> tuple[Window, ...]:
    down = np.concatenate([[False], series.values < 0.5, [False]]).astype(np.int8)
    edges = np.flatnonzero(np.diff(down)).reshape(-1, 2)
    times = series.time_ns
    return tuple(
        Window(
            int(times[first - 1]) if first else window.begin_ns,
            int(times[close]) if close < len(times) else window.end_ns,
        )
        for first, close in edges
    )
