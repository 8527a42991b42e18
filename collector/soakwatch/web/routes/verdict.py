"""The verdict of a run, and its report."""

from __future__ import annotations

import json

from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, Response

from soakwatch.report.json import verdict_schema
from soakwatch.web.endpoint import JSON, Endpoint, May, Question
from soakwatch.web.live_verdict import report_file, verdict_text

_HTML = "text/html"
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:; font-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "sandbox allow-scripts allow-popups allow-modals allow-downloads"
)
"""The report's script is part of its file, and a file may come from anywhere: it runs in an origin of its own, and can
neither send requests to this server with the user's rights nor to any other."""


def _verdict(question: Question) -> Response:
    return Response(verdict_text(question.folder), media_type=JSON)


def _report(question: Question) -> Response:
    file = report_file(question.folder)
    if file is None:
        raise HTTPException(404, "no report yet: it is written at the end of the run")
    return FileResponse(file, media_type=f"{_HTML}; charset=utf-8", headers={"content-security-policy": _POLICY})


ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/runs/{run}/verdict",
        May.VIEW,
        "verdict.json: the final one; while the run goes on a preliminary one, which is never a pass.",
        _verdict,
        gives=json.loads(verdict_schema()),
    ),
    Endpoint(
        "GET",
        "/api/runs/{run}/report",
        May.VIEW,
        "The report as one file that opens offline; 404 until the run ends.",
        _report,
        gives={"type": "string"},
        media=_HTML,
    ),
)
