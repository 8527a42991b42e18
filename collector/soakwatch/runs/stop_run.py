"""Stopping a run from outside: a request is an event of its record, which the run sees within a second or two."""

from __future__ import annotations

from pathlib import Path

from soakwatch.core.event_kinds import STOP
from soakwatch.record import StoredEvent
from soakwatch.runs.mark_event import EventConflictError, EventRefusedError, EventRequest, record_event
from soakwatch.runs.run_state import RunState

MAX_REASON_LENGTH = 500
_RETRY_AFTER_NS = 30 * 10**9  # a run that did not react by then may be asked again


def stop_run(folder: Path, state: RunState, reason: str, by: str) -> StoredEvent:
    """Ask the run in ``folder``, whose ``state`` was just read, to stop; ``by`` says through which door.

    A run that waits for its start stops as well: it ends without a poll. Raises EventConflictError for a run that is
    over or was asked less than 30 s ago, EventRefusedError for a reason that is too long, and RecordError.
    """
    if len(reason) > MAX_REASON_LENGTH:
        raise EventRefusedError(f"the reason has {len(reason)} characters; the limit is {MAX_REASON_LENGTH}")
    if state.standing == "broken off":
        raise EventConflictError("the run broke off: no monitor runs it; judge what it has with soakwatch judge")
    if state.standing == "ended":
        raise EventConflictError("the run is over already: there is nothing to stop")
    requested_ns = max((stored.event.begin_ns for stored in state.events if stored.event.kind == STOP), default=0)
    if state.now_ns - requested_ns < _RETRY_AFTER_NS:
        raise EventConflictError("stop already requested: the run ends after its last polls")
    labels = {"reason": reason or "none given", "by": by}
    return record_event(folder, EventRequest("mark", STOP, labels=labels), state.now_ns)
