"""The findings of a run: final, or live while it goes on."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from soakwatch.web.endpoint import Endpoint, EndpointRequest, May
from soakwatch.web.json_record import findings_data


def _findings(request: EndpointRequest) -> Response:
    return JSONResponse({"run": request.folder.name, **findings_data(request.folder)})


ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/runs/{run}/findings",
        May.VIEW,
        "The findings of the latest evaluation: the final one, or the live one while the run goes on.",
        _findings,
        gives={
            "type": "object",
            "properties": {
                "run": {"type": "string"},
                "state": {"enum": ["running", "ended", "broken off"]},
                "verdict": {"enum": ["pass", "fail", "inconclusive", None]},
                "reason": {"type": ["string", "null"]},
                "until": {
                    "type": ["string", "null"],
                    "format": "date-time",
                    "description": "time of the last recorded sample",
                },
                "findings": {"type": "array", "items": {"type": "object"}},
            },
            "required": ["run", "state", "verdict", "findings"],
        },
    ),
)
