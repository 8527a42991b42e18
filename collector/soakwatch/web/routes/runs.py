"""The list of runs."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from soakwatch.web.endpoint import Endpoint, EndpointRequest, May, Schema
from soakwatch.web.json_runs import LABELS

RUN: Schema = {
    "type": "object",
    "properties": {
        "run": {"type": "string", "description": "name for use in paths"},
        "name": {"type": "string", "description": "name of the plan"},
        "labels": LABELS,
        "state": {"enum": ["running", "ended", "broken off", "unreadable"]},
        "begin": {"type": ["string", "null"], "format": "date-time"},
        "seconds": {"type": ["number", "null"]},
        "verdict": {"enum": ["pass", "fail", "inconclusive", None]},
        "trouble": {"type": ["string", "null"], "description": "why it cannot be read"},
    },
    "required": ["run", "name", "labels", "state", "begin", "seconds", "verdict", "trouble"],
}


def _list(request: EndpointRequest) -> Response:
    return JSONResponse({"runs": request.runs.listed()})


ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/runs",
        May.VIEW,
        "Every run, oldest first.",
        _list,
        gives={"type": "object", "properties": {"runs": {"type": "array", "items": RUN}}, "required": ["runs"]},
    ),
)
