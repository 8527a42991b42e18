"""Acknowledges findings: the outcome stays, but everybody sees that the finding is known, and why."""

from __future__ import annotations

import time

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from soakwatch.core.event_kinds import ACKNOWLEDGED
from soakwatch.runs.mark_event import EventRequest, moment_text, record_event
from soakwatch.web.endpoint import Endpoint, EndpointRequest, May
from soakwatch.web.json_events import event_data
from soakwatch.web.routes.state import STATES
from soakwatch.web.routes.stop import reason_of

_TEXT = {"type": "string"}


def _acknowledge(request: EndpointRequest) -> Response:
    body, now_ns = request.json(), request.runs.now_ns()
    words = [body.get(name, "") for name in ("rule", "target", "metric", "object")]
    texts = [word for word in words if isinstance(word, str)]
    if len(texts) < len(words):
        raise HTTPException(400, "rule, target, metric and object must be texts: those of the finding")
    rule, target, metric, object_ = texts
    reason = reason_of(request)
    if not reason:
        raise HTTPException(400, "reason is missing: state why the finding is acknowledged")
    state = STATES.read(request.folder, now_ns)
    if not any(f.name == (rule, target, metric, object_) for f in state.findings):
        raise HTTPException(
            404, "the run has no such finding: give rule, target, metric and object exactly as in the finding"
        )
    labels = {"rule": rule, "metric": metric, "reason": reason}
    time_ns = now_ns
    if state.standing in {"ended", "broken off"} and state.last_ns is not None:
        # No event may lie after the end of a run, and no two acknowledgements may have the same time.
        time_ns = min(now_ns, state.last_ns + state.last_event + 1)
        labels["said"] = moment_text(time.time_ns())
    event = EventRequest("mark", ACKNOWLEDGED, at_ns=time_ns, target=target, object=object_, labels=labels)
    stored = record_event(request.folder, event, now_ns)
    return JSONResponse(event_data(stored), 201)


ENDPOINTS = (
    Endpoint(
        "POST",
        "/api/runs/{run}/findings/acknowledge",
        May.ACT,
        "Acknowledge a finding with a reason; its outcome does not change.",
        _acknowledge,
        sends={
            "type": "object",
            "properties": {
                "rule": _TEXT,
                "target": _TEXT,
                "metric": _TEXT,
                "object": _TEXT,
                "reason": {**_TEXT, "maxLength": 500},
            },
            "required": ["rule", "reason"],
        },
        gives={"type": "object", "description": "the event that records it"},
        status=201,
        audited="acknowledge a finding",
    ),
)
