"""Ending a run from outside: told as an event of its record, which it hears within a second or two."""

from __future__ import annotations

from pathlib import Path

from soakwatch.core.event_kinds import STOP
from soakwatch.record import StoredEvent
from soakwatch.runs.mark_event import EventConflictError, EventRefusedError, EventRequest, record_event
from soakwatch.runs.state import StateReader

LONGEST_REASON = 500
_AGAIN_NS = 30 * 10**9  # a run that did not hear it by then may be told again


def end_run(folder: Path, reason: str, by: str, now_ns: int) -> StoredEvent:
    """Tell a run to end, why and by which way. Raises EventConflictError for one that is over or was told so just now,
    EventRefusedError for a reason that is too long, and RecordError."""
    if len(reason) > LONGEST_REASON:
        raise EventRefusedError(f"the reason has {len(reason)} characters: {LONGEST_REASON} at most")
    state = StateReader(folder).read(now_ns)
    if state.standing == "broken off":
        raise EventConflictError(
            "no monitor is running this run: it broke off, and soakwatch judge judges what is there"
        )
    if state.standing == "waiting":
        raise EventConflictError(
            "the run waits for its start and has nothing to judge: Ctrl-C where it was started ends it"
        )
    if state.standing != "running":
        raise EventConflictError("the run is over already: there is nothing to stop")
    told_ns = max((one.event.begin_ns for one in state.events if one.event.kind == STOP), default=0)
    if now_ns - told_ns < _AGAIN_NS:
        raise EventConflictError("stop was requested already: the run ends after its last polls")
    return record_event(folder, EventRequest("mark", STOP, labels={"reason": reason or "none given", "by": by}), now_ns)
