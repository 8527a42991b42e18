"""The page of key figures over the runs of a plan, also as JSON."""

from __future__ import annotations

import time
from dataclasses import dataclass

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from soakwatch.core.errors import SoakwatchError
from soakwatch.core.formatting import utc
from soakwatch.core.labels import given_labels, has_labels, labels_words
from soakwatch.core.units import seconds
from soakwatch.runs.figure_trend import RELEASE_BY, TrendResult, trend_of
from soakwatch.runs.key_figures import FigureSpec, parse_figure
from soakwatch.runs.trend_data import trend_data
from soakwatch.runs.trend_runs import BY_TIME, CELL, TrendReader, TrendRun, trend_folders
from soakwatch.runs.trend_words import (
    change_text,
    interval_text,
    median_text,
    missing_text,
    outcome_text,
    runs_text,
    turn_text,
    verdicts_text,
)
from soakwatch.web.endpoint import Endpoint, EndpointRequest, May, Param
from soakwatch.web.rendering import page
from soakwatch.web.run_folder import RunFolder
from soakwatch.web.trend_chart import HEIGHT, WIDTH, chart_of

TRENDS = TrendReader()
"""The cache of this process."""
READ_S = 4.0
"""How long a request reads records; the next request continues."""
_MAX_FIGURES, _MAX_PLANS = 24, 24
_SPANS = ("7d", "30d", "90d", "365d")
_LINK_LENGTH = 400
_PARAMS = (
    Param("plan", "only runs of the plan of this name"),
    Param("by", "group runs by this label, or by day, week, month or run; release without it"),
    Param("figure", "an expression such as max(load.latency); the usual figures without it", many=True),
    Param("label", "only runs with this label, NAME=VALUE", many=True),
    Param("last", "only runs that began since then, such as 30d"),
)


@dataclass(frozen=True, slots=True)
class _TrendPage:
    """What the request chose, and the choices that the folder's runs offer."""

    trend: TrendResult
    by: str
    plan: str
    plans: tuple[str, ...]
    labels: tuple[str, ...]
    read: int
    unread: int


def _trend_page(request: EndpointRequest, *, newest_plan: bool) -> _TrendPage:
    """The trend for a request. Raises SoakwatchError, and HTTPException 404 on the server of a single run."""
    if not isinstance(request.runs, RunFolder):
        raise HTTPException(
            404, "this server serves one run only: use soakwatch serve for the trend of a folder's runs"
        )
    texts = [text for text in request.words.get("figure", ()) if text.strip()]
    if len(texts) > _MAX_FIGURES:
        raise SoakwatchError(f"{len(texts)} figures are too many: {_MAX_FIGURES} at most")
    wanted: tuple[FigureSpec, ...] = tuple(map(parse_figure, texts))
    by, last = request.text("by") or RELEASE_BY, request.text("last")
    try:
        labels = given_labels(text for text in request.words.get("label", ()) if text.strip())
        since_ns = time.time_ns() - round(seconds(last) * 1e9) if last else 0
    except ValueError as error:
        raise SoakwatchError(str(error)) from None
    runs, unread = TRENDS.runs(trend_folders(request.runs.path), wanted, READ_S)
    judged = [run for run in runs if isinstance(run, TrendRun)]
    chosen = [
        run
        for run in runs
        if not isinstance(run, TrendRun) or (run.begin_ns >= since_ns and has_labels(run.labels, labels))
    ]
    plan = request.text("plan")
    if not plan and newest_plan and judged:
        plan = max((run for run in judged), key=lambda run: run.begin_ns).plan
    names = sorted({name for run in judged for name in run.labels} - {CELL})
    plans = tuple(sorted({run.plan for run in judged}))
    return _TrendPage(trend_of(chosen, by, wanted, plan), by, plan, plans, tuple(names), len(runs), unread)


def _page(request: EndpointRequest) -> Response:
    try:
        view = _trend_page(request, newest_plan=True)
    except SoakwatchError as error:
        return page("trend.html.jinja", 400, problem=f"{str(error)[:_LINK_LENGTH]}.", unread=0)
    if view.unread:
        waiting = page("trend.html.jinja", problem="", unread=view.unread, read=view.read)
        waiting.headers["refresh"] = "1"
        return waiting
    plans = view.trend.plans[:_MAX_PLANS]
    return page(
        "trend.html.jinja",
        problem="",
        unread=0,
        plans=[(plan, [(figure, chart_of(plan, figure)) for figure in plan.figures]) for plan in plans],
        unshown=len(view.trend.plans) - len(plans),
        left_out=view.trend.left_out,
        view=view,
        by_words=list(dict.fromkeys((RELEASE_BY, *view.labels, *BY_TIME))),
        spans=_SPANS,
        last=request.text("last"),
        figures=[text for text in request.words.get("figure", ()) if text.strip()],
        chosen_labels=[text for text in request.words.get("label", ()) if text.strip()],
        width=WIDTH,
        height=HEIGHT,
        utc=utc,
        labels_words=labels_words,
        change_text=change_text,
        interval_text=interval_text,
        median_text=median_text,
        missing_text=missing_text,
        outcome_text=outcome_text,
        runs_text=runs_text,
        turn_text=turn_text,
        verdicts_text=verdicts_text,
    )


def _data(request: EndpointRequest) -> Response:
    view = _trend_page(request, newest_plan=False)
    return JSONResponse({"read": view.read, "there": view.read + view.unread, **trend_data(view.trend)})


_ARRAY = {"type": "array", "items": {"type": "object"}}

ENDPOINTS = (
    Endpoint(
        "GET",
        "/trend",
        May.VIEW,
        "Key figures over the runs of a plan.",
        _page,
        params=_PARAMS,
        media="text/html",
    ),
    Endpoint(
        "GET",
        "/api/trend",
        May.VIEW,
        "Key figures over the runs of each plan, with medians of groups and change points; runs that are not read yet"
        " are missing.",
        _data,
        params=_PARAMS,
        gives={
            "type": "object",
            "properties": {
                "read": {"type": "integer", "description": "runs that have been read"},
                "there": {"type": "integer", "description": "runs in the folder"},
                "by": {"type": "string", "description": "what runs are grouped by"},
                "plans": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "plan": {"type": "string"},
                            "cell": {"type": "string", "description": "the cell of a campaign, or empty"},
                            "groups": _ARRAY,
                            "runs": _ARRAY,
                            "figures": _ARRAY,
                        },
                        "required": ["plan", "cell", "groups", "runs", "figures"],
                    },
                },
                "left_out": _ARRAY,
            },
            "required": ["read", "there", "by", "plans", "left_out"],
        },
    ),
)
