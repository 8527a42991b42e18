"""Steps of the monitor's wall clock, in words: a run keeps its own time, so they change nothing that was measured."""

from __future__ import annotations

from collections.abc import Iterable

from soakwatch.core.event_kinds import CLOCK_STEP
from soakwatch.core.formatting import utc
from soakwatch.core.units import show_seconds
from soakwatch.record import StoredEvent


def clock_steps(events: Iterable[StoredEvent]) -> list[StoredEvent]:
    """The steps among the events of a record, in order of time."""
    return sorted((stored for stored in events if stored.event.kind == CLOCK_STEP), key=lambda s: s.event.begin_ns)


def step_words(stored: StoredEvent) -> str:
    """One step: when, how far, and in which direction.

    >>> from soakwatch_model.event import Event
    >>> at_ns = 1_795_204_800 * 10**9
    >>> step_words(StoredEvent(1, "monitor", Event(CLOCK_STEP, "", "", at_ns, at_ns, {"seconds": "-3600.000"})))
    'the wall clock of the monitor was set back by 1 h at 2026-11-20 20:00:00'
    """
    event = stored.event
    try:
        seconds = float(event.detail.get("seconds", ""))
    except ValueError:
        return f"the wall clock of the monitor was set at {utc(event.begin_ns)}"
    direction = "back" if seconds < 0 else "forward"
    return f"the wall clock of the monitor was set {direction} by {show_seconds(abs(seconds))} at {utc(event.begin_ns)}"
