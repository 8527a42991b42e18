"""Stops a run: it ends properly, within a second or two."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from soakwatch.runs.stop_run import MAX_REASON_LENGTH, stop_run
from soakwatch.web.auth import HOLDER
from soakwatch.web.endpoint import Endpoint, EndpointRequest, May
from soakwatch.web.json_events import event_data
from soakwatch.web.routes.state import STATES


def reason_of(request: EndpointRequest) -> str:
    """The text ``reason`` of the body, with whitespace normalised. Raises HTTPException 400."""
    reason = request.json().get("reason", "")
    if not isinstance(reason, str) or len(reason) > MAX_REASON_LENGTH:
        raise HTTPException(400, f"reason is a text of {MAX_REASON_LENGTH} characters at most")
    return " ".join(reason.split())


def _stop(request: EndpointRequest) -> Response:
    reason = reason_of(request)
    state = STATES.read(request.folder, request.runs.now_ns())
    user = request.user
    by = f"{user.name} ({user.role})" if user.role and user != HOLDER.user else "page"
    return JSONResponse(event_data(stop_run(request.folder, state, reason, by)), 202)


ENDPOINTS = (
    Endpoint(
        "POST",
        "/api/runs/{run}/stop",
        May.ACT,
        "End the run now, properly: what was sampled is kept, judged and reported. 409 if it is over.",
        _stop,
        sends={"type": "object", "properties": {"reason": {"type": "string", "maxLength": MAX_REASON_LENGTH}}},
        gives={"type": "object", "description": "the event that records it"},
        status=202,
        audited="stop",
    ),
)
