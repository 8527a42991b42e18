"""The state of a run: phase, time left, polls, the monitor itself, the verdict so far."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from soakwatch.report.files import REPORT_FILES
from soakwatch.web.endpoint import Endpoint, EndpointRequest, May, Param, Schema
from soakwatch.web.json_runs import LABELS
from soakwatch.web.json_state import shown_data, state_data
from soakwatch.web.state_cache import StateCache

STATES = StateCache()
_TIME = {"type": "string", "format": "date-time"}
_MAYBE_TIME = {"type": ["string", "null"], "format": "date-time"}
_MAYBE = {"type": ["number", "null"]}
_PHASE: Schema = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "begin": _TIME,
        "end": _TIME,
        "state": {"enum": ["over", "now", "planned"]},
    },
    "required": ["name", "begin", "end", "state"],
}
_SOURCE: Schema = {
    "type": "object",
    "properties": {
        "target": {"type": "string"},
        "source": {"type": "string"},
        "kind": {"type": "string"},
        "role": {"type": "string"},
        "interval_s": {"type": "number"},
        "due": {"type": "integer"},
        "got": {"type": "integer"},
        "failed": {"type": "integer"},
        "outcomes": {"type": "object", "additionalProperties": {"type": "integer"}},
        "last_ok": _MAYBE_TIME,
        "failing_since": _MAYBE_TIME,
        "state": {"enum": ["answering", "failing", "silent", "waiting", "over"]},
    },
    "required": ["target", "source", "kind", "role", "interval_s", "due", "got", "failed", "last_ok", "state"],
}
_RATE: Schema = {
    "type": "object",
    "properties": {
        "target": {"type": "string"},
        "metric": {"type": "string"},
        "object": {"type": "string"},
        "unit": {"type": "string"},
        "since": _TIME,
        "per_hour": {"type": "number"},
        "low": {"type": "number"},
        "high": {"type": "number"},
        "limit": _MAYBE,
        "limit_s": _MAYBE,
        "soonest_s": _MAYBE,
        "latest_s": _MAYBE,
        "change": _MAYBE,
        "words": {"type": "string"},
    },
    "required": ["target", "metric", "object", "unit", "since", "per_hour", "low", "high", "limit", "words"],
}
STATE: Schema = {
    "type": "object",
    "properties": {
        "run": {"type": "string"},
        "name": {"type": "string"},
        "labels": LABELS,
        "state": {"enum": ["waiting", "running", "ended", "broken off"]},
        "now": _TIME,
        "begin": _MAYBE_TIME,
        "end_planned": _MAYBE_TIME,
        "until": {**_MAYBE_TIME, "description": "time of the last recorded sample"},
        "elapsed_s": {"type": "number"},
        "left_s": {"type": "number"},
        "phase": {"anyOf": [_PHASE, {"type": "null"}]},
        "phases": {"type": "array", "items": _PHASE},
        "next": {
            "anyOf": [
                {"type": "null"},
                {
                    "type": "object",
                    "properties": {
                        "kind": {"enum": ["phase", "event", "end"]},
                        "what": {"type": "string"},
                        "in_s": {"type": "number"},
                    },
                    "required": ["kind", "what", "in_s"],
                },
            ]
        },
        "sources": {"type": "array", "items": _SOURCE},
        "self": {
            "type": "object",
            "description": "the monitor itself; null is not known",
            "properties": {
                "rss_bytes": _MAYBE,
                "cpu": _MAYBE,
                "lag_s": _MAYBE,
                "missed": _MAYBE,
                "disk_free_bytes": _MAYBE,
                "record_bytes": _MAYBE,
                "sinks": {"type": "array", "items": {"type": "object"}},
            },
        },
        "load": {"type": "array", "items": {"type": "object"}, "description": "what the generators said last"},
        "verdict": {"enum": ["pass", "fail", "inconclusive", None]},
        "reason": {"type": ["string", "null"]},
        "line": {"type": "string", "description": "the verdict, or that so far, in one line"},
        "stopping": {"type": ["string", "null"], "description": "reason of a requested stop; null: none was requested"},
        "events": {"type": "integer", "description": "id of the last event"},
        "findings": {
            "type": "object",
            "properties": {
                "judged": _MAYBE_TIME,
                "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
            },
            "required": ["judged", "counts"],
        },
        "rates": {
            "type": "array",
            "items": _RATE,
            "description": "growth so far, provisional: it may be a warm-up, and disappears when it no longer holds",
        },
        "growing": {"type": "boolean", "description": "whether something has risen by a fifth of its level, or more"},
        "series": {"type": "integer"},
        "report": {"type": "boolean", "description": "whether the report is written"},
        "shown": {"type": "object", "description": "what the page shows in addition; only with known"},
        "devices": {
            "type": "array",
            "items": {"type": "string"},
            "description": "memory, CPU, loss and latency of each target in a line, devices first; only with figures",
        },
    },
    "required": [
        "run",
        "name",
        "labels",
        "state",
        "now",
        "elapsed_s",
        "left_s",
        "phase",
        "phases",
        "next",
        "sources",
        "self",
        "verdict",
        "reason",
        "events",
        "findings",
    ],
}


def state_of(request: EndpointRequest, known: str | None) -> dict[str, object]:
    """The state of the run in the path; with ``known``, also what the page shows."""
    state = STATES.read(request.folder, request.runs.now_ns())
    data = state_data(
        state,
        report=state.verdict is not None and (request.folder / REPORT_FILES["html"]).is_file(),
        load_at=lambda time_ns: STATES.load_at(request.folder, time_ns),
    )
    return data if known is None else data | {"shown": shown_data(state, known)}


def _state(request: EndpointRequest) -> Response:
    data = state_of(request, request.text("known") if "known" in request.words else None)
    if "figures" in request.words and data["state"] == "running":
        data["devices"] = list(STATES.figures(request.folder))
    return JSONResponse(data, headers={"cache-control": "no-store"})


ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/runs/{run}/state",
        May.VIEW,
        "The state of the run now.",
        _state,
        params=(
            Param("known", "for the page: digest of the findings that it shows, so that only other findings are sent"),
            Param("figures", "for terminals: add a line for each target with its memory, CPU, loss and latency"),
        ),
        gives=STATE,
    ),
)
