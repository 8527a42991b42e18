"""What Prometheus, or whoever reads OpenMetrics, can scrape of the runs that go on."""

from __future__ import annotations

from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.responses import Response

from soakwatch.runs.state import SELF
from soakwatch.web.endpoint import Endpoint, May, Param, Question
from soakwatch.web.openmetrics import MEDIA, Families, Reading, add_readings, add_state
from soakwatch.web.routes.state import STATES
from soakwatch.web.series_reading import READER

MOST_SERIES = 5000
"""Series of one run that are told at most, in order of target, metric and object."""
_MOST_RUNS = 50
_GOING_ON = frozenset({"running", "waiting"})


def _metrics(question: Question) -> Response:
    families = Families()
    now_ns = question.runs.now_ns()
    named = question.text("run")
    for folder in [_named(question, named)] if named else _going_on(question):
        state = STATES.read(folder, now_ns)
        add_state(families, state)
        if named and state.standing in _GOING_ON:
            newest, left = READER.newest(folder, now_ns, MOST_SERIES)
            readings = [Reading(key, known.unit, known.kind, value) for key, known, value in newest]
            add_readings(families, state.run, [one for one in readings if one.key.target != SELF])
            families.add(
                "soakwatch_series_left_out",
                "series that are not told here: too many, or of one name",
                "gauge",
                float(left + families.left),
                {"run": state.run},
            )
    return Response(families.text(), headers={"content-type": MEDIA})


def _named(question: Question, name: str) -> Path:
    folder = question.runs.folder(name)
    if folder is None:
        raise HTTPException(404, "no run here has the name that run says: GET /api/runs lists them")
    return folder


def _going_on(question: Question) -> list[Path]:
    names = [str(line["run"]) for line in question.runs.listed() if line["state"] in _GOING_ON]
    return [folder for name in names[-_MOST_RUNS:] if (folder := question.runs.folder(name)) is not None]


ENDPOINTS = (
    Endpoint(
        "GET",
        "/metrics",
        May.VIEW,
        "OpenMetrics of every run that goes on: state, time, polls by outcome, findings by outcome, the monitor itself;"
        f" of the run that is named also the newest reading of each series, {MOST_SERIES} at most, none that is stale.",
        _metrics,
        params=(Param("run", "a run by its name, or last"),),
        gives={"type": "string"},
        media=MEDIA,
    ),
)
