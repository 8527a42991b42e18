"""The life of a watched process, from its series and events: restarts and its end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from soakwatch_model.event import Event
from soakwatch_model.series import Series
from soakwatch_rules.events.incidents import Incident, Witness, deduplicated, witness_of
from soakwatch_rules.wording.quantities import duration

START_TIME = "start time"
"""The source of a report that only a start time changed."""
_DOWN = "down"

SAME_START_S = 2.0
"""A start time is relative to the boot time, which may differ by a second between two polls."""


def start_changes(starts: Series | None) -> Iterator[Witness]:
    """Each change of the start time (or pid) between neighbouring readings, also across a gap."""
    if starts is None or len(starts) < 2:
        return
    timed = starts.metric == "process.start_time"
    with np.errstate(over="ignore"):
        moved = np.abs(np.diff(starts.values)) > (SAME_START_S if timed else 0.5)
    for i in np.flatnonzero(moved).tolist():
        source = START_TIME if timed else "pid"
        yield Witness(source, int(starts.time_ns[i]), int(starts.time_ns[i + 1]), f"its {source} changed")


def down_windows(up: Series | None) -> Iterator[Witness]:
    """Each stretch of 0 between readings of 1: from the first reading down to the first up."""
    if up is None or len(up) < 2:
        return
    edges = np.diff((up.values > 0).astype(np.int8))
    falls, rises = np.flatnonzero(edges < 0) + 1, np.flatnonzero(edges > 0) + 1
    for fall, index in zip(falls.tolist(), np.searchsorted(rises, falls).tolist(), strict=True):
        if index < rises.size:
            begin, end = int(up.time_ns[fall]), int(up.time_ns[rises[index]])
            yield Witness(_DOWN, begin, end, f"down for {duration((end - begin) * 1e-9)}")


def reported_restarts(events: Iterable[Event]) -> Iterator[Witness]:
    """Restarts and exits in the events of one process, each once though several sources report it."""
    for event in deduplicated(events):
        if event.kind == "process.restart":
            left, came = event.detail.get("old_pid", ""), event.detail.get("new_pid", "")
            yield replace(witness_of(event, "restart", "restart reported"), left=left, came=came)
        elif event.kind == "process.exit":
            yield Witness("exit", event.begin_ns, event.begin_ns, "exit", left=event.detail.get("pid", ""))


def restart_words(incident: Incident) -> str:
    """How long it was down and its pids, as far as known; else what shows the restart.

    >>> restart_words(Incident((Witness("down", 5, 3_000_000_005, ""), Witness("exit", 5, 5, "exit", left="7"))))
    'after 3 s (pid 7)'
    >>> restart_words(Incident((Witness("exit", 5, 5, "", left="7"), Witness("restart", 9, 9, "", came="8"))))
    '(pid 7 → 8)'
    >>> restart_words(Incident((Witness(START_TIME, 5, 9, "its start time changed"),)))
    '(its start time changed)'
    """
    down_s = max(((w.end_ns - w.begin_ns) * 1e-9 for w in incident.witnesses if w.source == _DOWN), default=0.0)
    left = next((w.left for w in incident.witnesses if w.left), "")
    came = next((w.came for w in incident.witnesses if w.came), "")
    pids = " → ".join(pid for pid in (left, came) if pid) if left else f"now {came}" if came else ""
    words = [f"after {duration(down_s)}"] if down_s else []
    words += [f"(pid {pids})"] if pids else []
    return " ".join(words) or f"({incident.text})"


def gone_at(up: Series | None, starts: Series | None, events: Sequence[Event]) -> int | None:
    """When it went for good: the first reading of the final stretch of 0, else its last exit; None if it lives."""
    if up is not None and len(up):
        alive = np.flatnonzero(up.values > 0)
        if alive.size:
            return None if alive[-1] == len(up) - 1 else int(up.time_ns[alive[-1] + 1])
    exits = [e.begin_ns for e in events if e.kind == "process.exit"]
    signs = [e.begin_ns for e in events if e.kind in {"process.restart", "process.start"}]
    signs += [int(starts.time_ns[-1])] if starts is not None and len(starts) else []
    return max(exits) if exits and all(max(exits) > sign for sign in signs) else None


def is_child_replaced(incident: Incident | Witness, child: Series | None) -> bool:
    """Whether one child of another watched process was replaced by another child, which is no restart of either.

    The last reading before it and the first after it decide; if one is missing, the other alone.
    """
    if child is None or not len(child):
        return False
    before = child.values[child.time_ns <= incident.begin_ns][-1:]
    after = child.values[child.time_ns >= incident.end_ns][:1]
    around = [*before.tolist(), *after.tolist()]
    return bool(around) and min(around) > 0
