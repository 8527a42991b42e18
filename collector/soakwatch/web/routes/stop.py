"""Ending a run from outside: it hears of it within a second or two, and ends properly."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from soakwatch.core.event_kinds import STOP
from soakwatch.runs.mark_event import EventConflictError, EventRequest, record_event
from soakwatch.web.endpoint import Endpoint, May, Question
from soakwatch.web.json_events import event_data
from soakwatch.web.routes.state import STATES

_LONGEST = 500
_AGAIN_NS = 30 * 10**9  # a run that did not hear it by then may be told again


def reason_of(question: Question) -> str:
    """The text ``reason`` of the body, without spaces around it. Raises HTTPException 400."""
    found = question.json().get("reason", "")
    if not isinstance(found, str) or len(found) > _LONGEST:
        raise HTTPException(400, f"reason is a text of {_LONGEST} characters at most")
    return " ".join(found.split())


def _stop(question: Question) -> Response:
    reason, now_ns = reason_of(question), question.runs.now_ns()
    state = STATES.read(question.folder, now_ns)
    if state.standing not in {"running", "waiting"}:
        raise EventConflictError("the run is over already: there is nothing to stop")
    told_ns = max((one.event.begin_ns for one in state.events if one.event.kind == STOP), default=0)
    if now_ns - told_ns < _AGAIN_NS:
        raise EventConflictError("stop was requested already: the run ends after its last polls")
    stored = record_event(
        question.folder, EventRequest("mark", STOP, labels={"reason": reason or "none given", "by": "page"}), now_ns
    )
    return JSONResponse(event_data(stored), 202)


ENDPOINTS = (
    Endpoint(
        "POST",
        "/api/runs/{run}/stop",
        May.ACT,
        "End the run now, properly: what was sampled is kept, judged and reported. 409 if it is over.",
        _stop,
        sends={"type": "object", "properties": {"reason": {"type": "string", "maxLength": _LONGEST}}},
        gives={"type": "object", "description": "the event that tells of it"},
        status=202,
    ),
)
