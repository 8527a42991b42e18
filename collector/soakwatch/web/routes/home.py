"""The page of all runs, also as JSON."""

from __future__ import annotations

import hashlib
import json
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from soakwatch.campaign.folder import campaigns_in
from soakwatch.web.endpoint import JSON, Endpoint, EndpointRequest, May
from soakwatch.web.json_runs import ROW, row_data
from soakwatch.web.rendering import page
from soakwatch.web.run_folder import RunFolder

_WAIT_S = 0.4


def _home(request: EndpointRequest) -> Response:
    if not isinstance(request.runs, RunFolder):
        (only,) = request.runs.listed()
        return RedirectResponse(f"/runs/{quote(str(only['run']), safe='')}/", 303, {"cache-control": "no-store"})
    campaigns = bool(campaigns_in(request.runs.path))
    lab = request.runs.lab is not None
    return page(
        "runs.html.jinja",
        folder=str(request.runs.path),
        acting=request.may >= May.ADMIN,
        campaigns=campaigns,
        lab=lab,
    )


def _summaries(request: EndpointRequest) -> Response:
    if not isinstance(request.runs, RunFolder):
        raise HTTPException(404, "this server serves one run only: GET its state")
    overview = request.runs.summaries.overview(_WAIT_S)
    data = {
        "read": len(overview.summaries),
        "there": overview.runs,
        "runs": [row_data(summary) for summary in overview.summaries],
    }
    content = json.dumps(data, ensure_ascii=True, separators=(",", ":")).encode()
    headers = {"etag": f'"{hashlib.sha256(content).hexdigest()[:24]}"', "cache-control": "no-cache"}
    if request.known == headers["etag"]:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=JSON, headers=headers)


ENDPOINTS = (
    Endpoint(
        "GET",
        "/",
        May.VIEW,
        "The page of all runs; a server of a single run redirects to its page.",
        _home,
        media="text/html",
    ),
    Endpoint(
        "GET",
        "/api/summaries",
        May.VIEW,
        "Every run with its worst finding, coverage and sparkline; runs that are not read yet are missing.",
        _summaries,
        gives={
            "type": "object",
            "properties": {
                "read": {"type": "integer", "description": "runs that have been read"},
                "there": {"type": "integer", "description": "runs in the folder"},
                "runs": {"type": "array", "items": ROW},
            },
            "required": ["read", "there", "runs"],
        },
    ),
)
