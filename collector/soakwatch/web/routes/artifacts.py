"""The files of a run: script output, and what hooks captured."""

from __future__ import annotations

import re
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from soakwatch.record import ArtifactEntry, RecordView
from soakwatch.runs.mark_event import moment_text
from soakwatch.web.endpoint import Endpoint, EndpointRequest, May, Param

_BYTES = "application/octet-stream"


def _list(request: EndpointRequest) -> Response:
    with RecordView.open(request.folder) as view:
        entries = view.artifact_entries()
    return JSONResponse({"run": request.folder.name, "artifacts": [_entry(entry) for entry in entries]})


def _entry(entry: ArtifactEntry) -> dict[str, object]:
    return {
        "name": entry.name,
        "media": entry.media,
        "size": entry.size,
        "time": None if entry.time_ns is None else moment_text(entry.time_ns),
        "kind": entry.kind,
        "about": entry.about,
    }


def _file(request: EndpointRequest) -> Response:
    name = request.text("name")
    with RecordView.open(request.folder) as view:
        if name not in {entry.name for entry in view.artifact_entries()}:
            raise HTTPException(404, "the record contains no file of this name: GET the list of its artifacts")
        artifact = view.artifact(name)
    # Whatever its type, no browser may open it as a page of this server.
    headers = {"content-disposition": disposition(name), "content-security-policy": "default-src 'none'; sandbox"}
    return Response(artifact.data, media_type=_BYTES, headers=headers)


def disposition(name: str) -> str:
    """The header that makes a browser save the file under the last part of its name (RFC 6266, RFC 8187).

    >>> print(disposition("hooks/dump é.txt"))
    attachment; filename="dump _.txt"; filename*=UTF-8''dump%20%C3%A9.txt
    """
    last = name.replace("\\", "/").rpartition("/")[2].strip(". ") or "file"
    plain = re.sub(r"[^A-Za-z0-9._ -]", "_", last)[:100]
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(last.encode('utf-8', 'replace'), safe='')[:300]}"


ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/runs/{run}/artifacts",
        May.VIEW,
        "The files of the run, by time and name.",
        _list,
        gives={
            "type": "object",
            "properties": {
                "run": {"type": "string"},
                "artifacts": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "name": {"type": "string"},
                            "media": {"type": "string"},
                            "size": {"type": "integer"},
                            "time": {"type": ["string", "null"], "format": "date-time"},
                            "kind": {"type": "string"},
                            "about": {"type": "string"},
                        },
                        "required": ["name", "media", "size", "time", "kind", "about"],
                    },
                },
            },
            "required": ["run", "artifacts"],
        },
    ),
    Endpoint(
        "GET",
        "/api/runs/{run}/artifacts/file",
        May.VIEW,
        "One of these files.",
        _file,
        params=(Param("name", "as in the list", required=True),),
        gives={"type": "string"},
        media=_BYTES,
    ),
)
