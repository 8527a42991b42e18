"""Events of a run: recorded by scripts and people, and listed."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from soakwatch.runs.mark_event import moment_text, record_event
from soakwatch.web.endpoint import Endpoint, EndpointRequest, May, Param, Schema
from soakwatch.web.json_events import event_data, request_from_json
from soakwatch.web.json_record import events_data

_MAX_EVENTS = 1000
_TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
_TIME = {"type": "string", "description": "ISO 8601 with a zone, or now"}
_REQUEST: Schema = {
    "type": "object",
    "description": "begin alone opens an event, end alone closes it; end with begin or at records a finished event",
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
        "end": {"type": ["string", "null"], "format": "date-time", "description": "null: still open"},
        "expect": {"type": "object"},
        "deadline": {"type": ["string", "null"]},
        "labels": _TEXTS,
    },
    "required": ["id", "kind", "begin", "end"],
}


def _events(request: EndpointRequest) -> Response:
    events = events_data(request.folder, request.whole("after", 0), _MAX_EVENTS)
    return JSONResponse({"run": request.folder.name, "now": moment_text(request.runs.now_ns()), **events})


def _record(request: EndpointRequest) -> Response:
    event = request_from_json(request.body)
    stored = record_event(request.folder, event, request.runs.now_ns())
    return JSONResponse(event_data(stored), 200 if event.action == "end" else 201)


ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/runs/{run}/events",
        May.VIEW,
        "Events in the order in which they were recorded, 1000 at most.",
        _events,
        params=(Param("after", "id of the last known event", "whole"),),
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
        "Record an event: 201 with the stored event, 200 if it ended an open one.",
        _record,
        sends=_REQUEST,
        gives=_EVENT,
        status=201,
        audited="mark an event",
    ),
)
