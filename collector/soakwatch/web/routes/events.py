"""Events of a run: told by test scripts and by people, and read back."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from soakwatch.runs.mark_event import moment_text, record_event
from soakwatch.web.endpoint import Endpoint, May, Param, Question, Schema
from soakwatch.web.reading import events_data
from soakwatch.web.wire import ask_of, event_data

_MOST_EVENTS = 1000
_TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
_TIME = {"type": "string", "description": "ISO 8601 with a zone, or now"}
_TOLD: Schema = {
    "type": "object",
    "description": "begin leaves it open, end ends the open one; begin or at with end is a stretch that is over",
    "properties": {
        "kind": {"type": "string", "examples": ["failover"]},
        "at": _TIME,
        "begin": _TIME,
        "end": _TIME,
        "target": {"type": "string"},
        "object": {"type": "string"},
        "expect": {"type": "object", "additionalProperties": {"type": "integer"}, "examples": [{"reboot": 1}]},
        "within": {"type": "string", "examples": ["5m"]},
        "labels": _TEXTS,
    },
    "required": ["kind"],
    "additionalProperties": False,
}
_EVENT: Schema = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "origin": {"type": "string"},
        "kind": {"type": "string"},
        "target": {"type": "string"},
        "object": {"type": "string"},
        "begin": {"type": "string", "format": "date-time"},
        "end": {"type": ["string", "null"], "format": "date-time", "description": "null is open"},
        "expect": {"type": "object"},
        "deadline": {"type": ["string", "null"]},
        "labels": _TEXTS,
    },
    "required": ["id", "kind", "begin", "end"],
}


def _events(question: Question) -> Response:
    told = events_data(question.folder, question.whole("after", 0), _MOST_EVENTS)
    return JSONResponse({"run": question.folder.name, "now": moment_text(question.runs.now_ns()), **told})


def _tell(question: Question) -> Response:
    ask = ask_of(question.body)
    stored = record_event(question.folder, ask, question.runs.now_ns())
    return JSONResponse(event_data(stored), 200 if ask.action == "end" else 201)


ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/runs/{run}/events",
        May.VIEW,
        "Events in the order in which they were told, 1000 at most.",
        _events,
        params=(Param("after", "id of the last event that is known", "whole"),),
        gives={
            "type": "object",
            "properties": {
                "run": {"type": "string"},
                "now": {"type": "string", "format": "date-time"},
                "events": {"type": "array", "items": _EVENT},
                "more": {"type": "boolean"},
            },
            "required": ["run", "now", "events", "more"],
        },
    ),
    Endpoint(
        "POST",
        "/api/runs/{run}/events",
        May.ACT,
        "Tell an event: 201 with what was kept, 200 if it ended one.",
        _tell,
        sends=_TOLD,
        gives=_EVENT,
        status=201,
    ),
)
