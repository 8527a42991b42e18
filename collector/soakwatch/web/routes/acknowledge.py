"""Acknowledging a finding: it stays what it is, and everybody sees that somebody knows of it, and why."""

from __future__ import annotations

import time

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from soakwatch.core.event_kinds import ACKNOWLEDGED
from soakwatch.runs.mark_event import EventRequest, moment_text, record_event
from soakwatch.web.endpoint import Endpoint, May, Question
from soakwatch.web.routes.state import STATES
from soakwatch.web.routes.stop import reason_of
from soakwatch.web.wire import event_data

_TEXT = {"type": "string"}


def _acknowledge(question: Question) -> Response:
    body, now_ns = question.json(), question.runs.now_ns()
    words = [body.get(name, "") for name in ("rule", "target", "metric", "object")]
    texts = [word for word in words if isinstance(word, str)]
    if len(texts) < len(words):
        raise HTTPException(400, "rule, target, metric and object are texts: those of the finding")
    rule, target, metric, thing = texts
    reason = reason_of(question)
    if not reason:
        raise HTTPException(400, "reason is missing: say why the finding is known")
    state = STATES.read(question.folder, now_ns)
    if not any((f.rule, f.target, f.metric, f.object) == (rule, target, metric, thing) for f in state.findings):
        raise HTTPException(404, "the run has no such finding: name rule, target, metric and object as it does")
    labels = {"rule": rule, "metric": metric, "reason": reason}
    at_ns = now_ns
    if state.standing in {"ended", "broken off"} and state.last_ns is not None:
        # A run is told of nothing behind its end; each event has a time of its own.
        at_ns = min(now_ns, state.last_ns + state.last_event + 1)
        labels["said"] = moment_text(time.time_ns())
    ask = EventRequest("mark", ACKNOWLEDGED, at_ns=at_ns, target=target, object=thing, labels=labels)
    stored = record_event(question.folder, ask, now_ns)
    return JSONResponse(event_data(stored), 201)


ENDPOINTS = (
    Endpoint(
        "POST",
        "/api/runs/{run}/findings/acknowledge",
        May.ACT,
        "Say that a finding is known, and why: its outcome stays what it is.",
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
        gives={"type": "object", "description": "the event that tells of it"},
        status=201,
    ),
)
