"""OpenMetrics of runs, for Prometheus: of those that go on, and of the last ones that are over."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.responses import Response

from soakwatch.core.errors import RecordError
from soakwatch.web.endpoint import Endpoint, EndpointRequest, May, Param
from soakwatch.web.openmetrics import MEDIA, PLAIN_MEDIA, Families, add_readings, add_state
from soakwatch.web.routes.state import STATES
from soakwatch.web.scraped_runs import GOING_ON, ScrapedRun, ScrapedRuns
from soakwatch.web.series_reader import READER

MAX_SERIES = 5000
"""Maximum number of series per run, ordered by target, metric and object."""
MAX_ALL = 20_000
"""Maximum number of series of all runs together: runs that go on come first, then the newest."""
ENDED = 5
"""How many runs that are over are told of, if the request does not say."""
_MAX_ENDED = 50
_MAX_RUNS = 50
_RUNS = ScrapedRuns(STATES, READER)
_FORMATS = ("openmetrics", "text")


def _metrics(request: EndpointRequest) -> Response:
    form = request.text("format", _FORMATS[0])
    if form not in _FORMATS:
        raise HTTPException(400, f"format is {' or '.join(_FORMATS)}")
    named = request.text("run")
    ended = request.whole("ended", ENDED, 0, _MAX_ENDED)
    now_ns = request.runs.now_ns()
    families, room = Families(), MAX_ALL
    for folder in [_named(request, named)] if named else _told(request, ended):
        try:
            run = _RUNS.read(folder, now_ns, min(MAX_SERIES, max(room, 1)))
        except RecordError:
            if named:
                raise
            continue  # one record that cannot be read costs its own place
        room -= len(run.readings)
        _add(families, run)
    text = form == "text"
    return Response(families.text(plain=text), headers={"content-type": PLAIN_MEDIA if text else MEDIA})


def _add(families: Families, run: ScrapedRun) -> None:
    state = run.state
    add_state(families, state)
    before = families.left
    phase = state.phase or next((phase for phase in reversed(state.phases) if phase.state == "over"), None)
    add_readings(families, state.run, run.readings, "" if phase is None else phase.name)
    families.add(
        "soakwatch_series_left_out",
        "series that are left out: too many, or with conflicting names",
        "gauge",
        float(run.left + families.left - before),
        {"run": state.run},
    )


def _named(request: EndpointRequest, name: str) -> Path:
    folder = request.runs.folder(name)
    if folder is None:
        raise HTTPException(404, "no run of this name on this server; GET /api/runs lists them")
    return folder


def _told(request: EndpointRequest, ended: int) -> list[Path]:
    """The runs that go on, then those that are over, the newest first."""
    lines = request.runs.listed()
    going_on = [str(line["run"]) for line in lines if line["state"] in GOING_ON][-_MAX_RUNS:]
    over = [str(line["run"]) for line in lines if line["state"] in {"ended", "broken off"}]
    names = [*going_on, *reversed(over[-ended:] if ended else [])]
    folders = []
    for name in names:
        with suppress(RecordError):
            folders.append(request.runs.folder(name))
    return [folder for folder in folders if folder is not None]


ENDPOINTS = (
    Endpoint(
        "GET",
        "/metrics",
        May.VIEW,
        f"OpenMetrics of every run that goes on and of the last {ENDED} that are over: state, phase, time, polls by"
        " outcome, verdict, findings, the monitor itself, and the newest sample of each series with run, target and"
        f" phase as labels; none that was stale, then or at the end. At most {MAX_SERIES} series a run and {MAX_ALL} in"
        " all: soakwatch_series_left_out counts the rest.",
        _metrics,
        params=(
            Param("run", "only this run: its name, or last"),
            Param("ended", f"how many runs that are over, 0 to {_MAX_ENDED}; default {ENDED}", "whole"),
            Param("format", "openmetrics (the default) or text, the format of promtool check metrics"),
        ),
        gives={"type": "string"},
        media=MEDIA,
    ),
)
