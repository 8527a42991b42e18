"""The verdict of a run, final or so far, and its report."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, Response

from soakwatch.core.errors import PlanError
from soakwatch.judge.planned import Planned
from soakwatch.judge.record_verdict import recorded_rules
from soakwatch.judge.verdict import Verdict, fold
from soakwatch.record import RecordView
from soakwatch.record.writer_lock import is_written
from soakwatch.report.files import REPORT_FILES
from soakwatch.report.json import render_json, verdict_schema
from soakwatch.web.endpoint import JSON, Endpoint, EndpointRequest, May
from soakwatch_model.finding import Outcome

_OUTCOMES = {outcome.value: outcome for outcome in Outcome}
_MAX_BYTES = 64 * 2**20
_HTML = "text/html"
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:; font-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "sandbox allow-scripts allow-popups allow-modals allow-downloads"
)
"""A report may come from anywhere and contains a script: in an origin of its own it can send requests neither to this
server with the user's rights nor to any other."""


def _verdict(request: EndpointRequest) -> Response:
    return Response(_verdict_text(request.folder), media_type=JSON)


def _report(request: EndpointRequest) -> Response:
    file = _report_file(request.folder)
    if file is None:
        raise HTTPException(404, "no report yet: it is written at the end of the run")
    return FileResponse(file, media_type=f"{_HTML}; charset=utf-8", headers={"content-security-policy": _POLICY})


def _verdict_text(folder: Path) -> str:
    """verdict.json of a run that has ended, else a preliminary one from the findings so far.

    Before its end a run is never a pass but inconclusive, and the reason says so. Raises RecordError.
    """
    with RecordView.open(folder) as view:
        if view.meta("verdict") is not None:
            written = _written(folder)
            if written is not None:
                return written
        return render_json(verdict_so_far(view, goes_on=is_written(folder)))


def verdict_so_far(view: RecordView, *, goes_on: bool) -> Verdict:
    """The fold of the recorded findings, without judging again; of the final ones if there are any."""
    final = view.meta("verdict")
    window, planned = view.window(), Planned.of(view)
    verdict = fold(
        view.meta("run") or "run",
        window,
        view.roles(),
        view.findings(live=final is None),
        view.ledgers(window),
        view.phases(),
        _optional(view),
        None if planned is None else planned.duration_s,
        events=tuple(stored.event for stored in view.events()),
        goes_on=goes_on and final is None,
    )
    verdict = replace(verdict, labels=view.labels)
    if final is not None:
        return replace(verdict, outcome=_OUTCOMES.get(final, Outcome.INCONCLUSIVE), reason=view.meta("reason") or "")
    if goes_on:
        return verdict
    outcome = Outcome.FAIL if verdict.outcome is Outcome.FAIL else Outcome.INCONCLUSIVE
    return replace(verdict, outcome=outcome, reason=f"the monitor ended without a verdict; so far: {verdict.reason}")


def _report_file(folder: Path) -> Path | None:
    """The report written at the end of a run; None if there is none."""
    file = folder / REPORT_FILES["html"]
    with RecordView.open(folder) as view:
        return file if view.meta("verdict") is not None and file.is_file() else None


def _optional(view: RecordView) -> frozenset[str]:
    try:
        return frozenset(rule.name for rule in recorded_rules(view) if rule.required is False)
    except PlanError:  # some rules are not installed here
        return frozenset()


def _written(folder: Path) -> str | None:
    file = folder / REPORT_FILES["json"]
    try:
        return file.read_text(encoding="utf-8") if file.is_file() and file.stat().st_size <= _MAX_BYTES else None
    except (OSError, ValueError):
        return None


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
