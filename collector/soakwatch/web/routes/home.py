"""The page of all runs, and what it shows as JSON."""

from __future__ import annotations

import hashlib
import json
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from soakwatch.web.endpoint import JSON, Endpoint, May, Question
from soakwatch.web.folder import Folder
from soakwatch.web.rendering import page
from soakwatch.web.run_rows import ROW, row_data

_WAIT_S = 0.4


def _home(question: Question) -> Response:
    if not isinstance(question.runs, Folder):
        (only,) = question.runs.listed()
        return RedirectResponse(f"/runs/{quote(str(only['run']), safe='')}/", 303, {"cache-control": "no-store"})
    return page("runs.html.jinja", folder=str(question.runs.place), acting=question.may >= May.ACT)


def _summaries(question: Question) -> Response:
    if not isinstance(question.runs, Folder):
        raise HTTPException(404, "this server shows one run only: ask for its state")
    seen = question.runs.summaries.overview(_WAIT_S)
    told = {"read": len(seen.summaries), "there": seen.runs, "runs": [row_data(one) for one in seen.summaries]}
    content = json.dumps(told, ensure_ascii=True, separators=(",", ":")).encode()
    headers = {"etag": f'"{hashlib.sha256(content).hexdigest()[:24]}"', "cache-control": "no-cache"}
    if question.known == headers["etag"]:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=JSON, headers=headers)


ENDPOINTS = (
    Endpoint(
        "GET", "/", May.VIEW, "The page of all runs; of a single run, the way to its page.", _home, media="text/html"
    ),
    Endpoint(
        "GET",
        "/api/summaries",
        May.VIEW,
        "Every run with its worst finding, coverage and sparkline; those that are not read yet follow later.",
        _summaries,
        gives={
            "type": "object",
            "properties": {
                "read": {"type": "integer", "description": "runs that have been read"},
                "there": {"type": "integer", "description": "runs that there are"},
                "runs": {"type": "array", "items": ROW},
            },
            "required": ["read", "there", "runs"],
        },
    ),
)
