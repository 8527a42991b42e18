"""Whether the server answers."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from soakwatch.web.endpoint import Endpoint, May, Question


def _health(_: Question) -> Response:
    return JSONResponse({"status": "ok"})


ENDPOINTS = (
    Endpoint(
        "GET", "/api/health", May.NOTHING, "Whether the server answers. Needs no token and says nothing else.", _health,
        gives={"type": "object", "properties": {"status": {"const": "ok"}}, "required": ["status"]},
    ),
)  # fmt: skip
