"""Badges, for a README or a wiki: of a run, or of the newest run of a plan, by plan, target and labels."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.responses import Response

from soakwatch.core.errors import RecordError
from soakwatch.core.labels import given_labels, has_labels
from soakwatch.core.suggest import hint
from soakwatch.record import RecordView
from soakwatch.record.writer_lock import is_written
from soakwatch.report.badge import badge_of, render_badge
from soakwatch.web.endpoint import Endpoint, EndpointRequest, May, Param
from soakwatch.web.routes.verdict import verdict_so_far

_MEDIA = "image/svg+xml"
_MOST_OPENED = 200  # records that are opened to find a target


def _of_run(request: EndpointRequest) -> Response:
    return _badge(request, request.folder)


def _of_newest(request: EndpointRequest) -> Response:
    return _badge(request, _newest(request))


def _badge(request: EndpointRequest, folder: Path) -> Response:
    """Whoever shows it, a proxy or a browser, asks again each time whether it is still so."""
    with RecordView.open(folder) as view:
        picture = render_badge(badge_of(verdict_so_far(view, goes_on=is_written(folder)))).encode()
    headers = {"etag": f'"{hashlib.sha256(picture).hexdigest()[:24]}"', "cache-control": "private, no-cache"}
    if request.known == headers["etag"]:
        return Response(status_code=304, headers=headers)
    return Response(picture, media_type=_MEDIA, headers=headers)


def _newest(request: EndpointRequest) -> Path:
    """The folder of the newest run that was asked for. Raises HTTPException 400 and 404."""
    plan, target = request.text("plan"), request.text("target")
    try:
        labels = given_labels(text for text in request.words.get("label", ()) if text.strip())
    except ValueError as error:
        raise HTTPException(400, str(error)) from None
    lines = [line for line in request.runs.listed() if line["state"] != "unreadable"]
    lines.sort(key=lambda line: (str(line["begin"] or ""), str(line["run"])), reverse=True)
    named = [line for line in lines if not plan or line["name"] == plan]
    if not named:
        known = {str(line["name"]) for line in lines}
        raise HTTPException(404, f"there is no run of the plan {plan!r}{hint(plan, known)}" if plan else "no run yet")
    for folder in _folders(request, (line for line in named if has_labels(_labels(line), labels))):
        if not target or _polls(folder, target):
            return folder
    asked = [f"the target {target!r}"] if target else []
    asked += [f"the label {name}={text}" for name, text in labels.items()]
    raise HTTPException(404, f"no run{f' of the plan {plan!r}' if plan else ''} has {' and '.join(asked)}")


def _labels(line: Mapping[str, object]) -> Mapping[str, str]:
    labels = line["labels"]
    return labels if isinstance(labels, Mapping) else {}


def _folders(request: EndpointRequest, lines: Iterator[Mapping[str, object]]) -> Iterator[Path]:
    for _, line in zip(range(_MOST_OPENED), lines, strict=False):
        if (folder := request.runs.folder(str(line["run"]))) is not None:
            yield folder


def _polls(folder: Path, target: str) -> bool:
    with suppress(RecordError), RecordView.open(folder) as view:
        return target in view.roles()
    return False


ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/badge.svg",
        May.VIEW,
        "The badge of the newest run, or of the newest with this plan, target and labels: name, verdict and length; of"
        " a run that goes on, whether it fails so far. With an ETag: a client asks again whether it has changed.",
        _of_newest,
        params=(
            Param("plan", "only runs of the plan of this name"),
            Param("target", "only runs that poll this target; the verdict is that of the run"),
            Param("label", "only runs with this label, NAME=VALUE", many=True),
        ),
        gives={"type": "string"},
        media=_MEDIA,
    ),
    Endpoint(
        "GET",
        "/api/runs/{run}/badge.svg",
        May.VIEW,
        "The badge of this run.",
        _of_run,
        gives={"type": "string"},
        media=_MEDIA,
    ),
)
