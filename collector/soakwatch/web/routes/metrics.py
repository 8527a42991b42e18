"""OpenMetrics of the running runs, for Prometheus."""

from __future__ import annotations

from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.responses import Response

from soakwatch.web.endpoint import Endpoint, EndpointRequest, May, Param
from soakwatch.web.openmetrics import MEDIA, Families, Reading, add_readings, add_state
from soakwatch.web.routes.state import STATES
from soakwatch.web.series_reader import READER
from soakwatch_model.roles import MONITOR

MAX_SERIES = 5000
"""Maximum number of series per run, ordered by target, metric and object."""
_MAX_RUNS = 50
_GOING_ON = frozenset({"running", "waiting"})


def _metrics(request: EndpointRequest) -> Response:
    families = Families()
    now_ns = request.runs.now_ns()
    named = request.text("run")
    for folder in [_named(request, named)] if named else _going_on(request):
        state = STATES.read(folder, now_ns)
        add_state(families, state)
        if named and state.standing in _GOING_ON:
            newest, left = READER.newest(folder, now_ns, MAX_SERIES)
            readings = [Reading(key, known.unit, known.kind, value) for key, known, value in newest]
            add_readings(families, state.run, [reading for reading in readings if reading.key.target != MONITOR])
            families.add(
                "soakwatch_series_left_out",
                "series that are left out: too many, or with conflicting names",
                "gauge",
                float(left + families.left),
                {"run": state.run},
            )
    return Response(families.text(), headers={"content-type": MEDIA})


def _named(request: EndpointRequest, name: str) -> Path:
    folder = request.runs.folder(name)
    if folder is None:
        raise HTTPException(404, "no run of this name on this server; GET /api/runs lists them")
    return folder


def _going_on(request: EndpointRequest) -> list[Path]:
    names = [str(line["run"]) for line in request.runs.listed() if line["state"] in _GOING_ON]
    return [folder for name in names[-_MAX_RUNS:] if (folder := request.runs.folder(name)) is not None]


ENDPOINTS = (
    Endpoint(
        "GET",
        "/metrics",
        May.VIEW,
        "OpenMetrics of every running run: state, time, polls by outcome, findings by outcome, the monitor itself;"
        f" with run also the newest sample of each series of that run, {MAX_SERIES} at most, none that is stale.",
        _metrics,
        params=(Param("run", "name of a run, or last"),),
        gives={"type": "string"},
        media=MEDIA,
    ),
)
