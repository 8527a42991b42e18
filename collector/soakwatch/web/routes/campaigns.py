"""The pages of campaigns, also as JSON."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from soakwatch.campaign.campaign_model import CellRun
from soakwatch.campaign.campaign_results import CampaignResults
from soakwatch.campaign.folder import campaigns_in
from soakwatch.campaign.tables.campaign_report import Link, campaign_body
from soakwatch.campaign.tables.data import result_data
from soakwatch.campaign.tables.result import CampaignResult, extent_words, verdict_words
from soakwatch.core.errors import SoakwatchError
from soakwatch.runs.catalog import RECORD
from soakwatch.web.endpoint import Endpoint, EndpointRequest, May, Schema
from soakwatch.web.rendering import page
from soakwatch.web.run_folder import RunFolder

_RESULTS = CampaignResults()
_HEADERS = {"cache-control": "no-store"}


def _folders(request: EndpointRequest) -> tuple[Path, Mapping[str, Path]]:
    """The served folder, and its campaigns."""
    if not isinstance(request.runs, RunFolder):
        raise HTTPException(404, "this server serves one run only: use soakwatch serve for campaigns")
    return request.runs.path, campaigns_in(request.runs.path)


def _campaign(request: EndpointRequest) -> tuple[Path, Path]:
    """The served folder, and that of the campaign in the path."""
    runs, campaigns = _folders(request)
    name = request.path["campaign"]
    folder = campaigns.get(name)
    if folder is None:
        shown = name if len(name) <= 100 and name.isprintable() else "this"
        raise HTTPException(404, f"no campaign {shown} on this server; GET /api/campaigns lists them")
    return runs, folder


def _link(runs: Path, campaign: Path) -> Link:
    """Makes links to the pages of runs: a run in the campaign's own folder is named CAMPAIGN:RUN."""

    def link(run: CellRun) -> str:
        if run.folder is None or not (run.folder / RECORD).is_file():
            return ""
        own = run.folder.absolute().parent == runs
        name = run.folder.name if own else f"{campaign.absolute().name}:{run.folder.name}"
        return f"/runs/{quote(name, safe='')}/"

    return link


def _page(request: EndpointRequest) -> Response:
    runs, folder = _campaign(request)
    try:
        result = _RESULTS.of(folder, time.monotonic_ns())
    except SoakwatchError as error:
        return page(
            "campaign.html.jinja", 409, campaign=folder.absolute().name, problem=f"{error}.", live=False, body=""
        )
    body = campaign_body(result, _link(runs, folder))
    return page("campaign.html.jinja", campaign=result.state.name, problem="", live=result.goes_on, body=body)


def _list_page(request: EndpointRequest) -> Response:
    runs, campaigns = _folders(request)
    return page("campaigns.html.jinja", folder=str(runs), campaigns=[_row(*item) for item in campaigns.items()])


def _row(name: str, folder: Path) -> Mapping[str, object]:
    try:
        result = _RESULTS.of(folder, time.monotonic_ns())
    except SoakwatchError as error:
        return {"name": name, "trouble": str(error)}
    return {
        "name": name,
        "trouble": "",
        "outcome": result.outcome,
        "words": verdict_words(result),
        "reason": result.reason,
        "extent": extent_words(result),
    }


def _list(request: EndpointRequest) -> Response:
    _, campaigns = _folders(request)
    return JSONResponse({"campaigns": [_line(*item) for item in campaigns.items()]}, headers=_HEADERS)


def _line(name: str, folder: Path) -> Mapping[str, object]:
    try:
        result: CampaignResult | None = _RESULTS.of(folder, time.monotonic_ns())
        trouble = None
    except SoakwatchError as error:
        result, trouble = None, str(error)
    return {
        "campaign": name,
        "verdict": None if result is None else result.outcome.value,
        "preliminary": result is not None and result.goes_on,
        "reason": "" if result is None else result.reason,
        "states": {} if result is None else dict(result.states),
        "trouble": trouble,
    }


def _data(request: EndpointRequest) -> Response:
    _, folder = _campaign(request)
    return JSONResponse(result_data(_RESULTS.of(folder, time.monotonic_ns())), headers=_HEADERS)


_STATES: Schema = {"type": "object", "additionalProperties": {"type": "integer"}, "description": "runs by state"}
_LINE: Schema = {
    "type": "object",
    "properties": {
        "campaign": {"type": "string", "description": "name for use in paths"},
        "verdict": {"enum": ["pass", "fail", "inconclusive", None]},
        "preliminary": {"type": "boolean", "description": "whether runs wait or go on"},
        "reason": {"type": "string"},
        "states": _STATES,
        "trouble": {"type": ["string", "null"], "description": "why it cannot be read"},
    },
    "required": ["campaign", "verdict", "preliminary", "reason", "states", "trouble"],
}
_CAMPAIGN: Schema = {
    "type": "object",
    "properties": {
        "version": {"type": "integer"},
        "campaign": {"type": "string"},
        "verdict": {"enum": ["pass", "fail", "inconclusive"]},
        "preliminary": {"type": "boolean"},
        "reason": {"type": "string"},
        "states": _STATES,
        "axes": {"type": "array", "items": {"type": "object"}},
        "doubts": {"type": "array", "items": {"type": "string"}},
        "findings": {"type": "array", "items": {"type": "object"}},
        "cells": {"type": "array", "items": {"type": "object"}},
    },
    "required": ["version", "campaign", "verdict", "preliminary", "reason", "axes", "doubts", "findings", "cells"],
}

ENDPOINTS = (
    Endpoint("GET", "/campaigns", May.VIEW, "The page of all campaigns.", _list_page, media="text/html"),
    Endpoint("GET", "/campaigns/{campaign}", May.VIEW, "The page of a campaign.", _page, media="text/html"),
    Endpoint(
        "GET",
        "/api/campaigns",
        May.VIEW,
        "Every campaign with its verdict and the states of its runs.",
        _list,
        gives={
            "type": "object",
            "properties": {"campaigns": {"type": "array", "items": _LINE}},
            "required": ["campaigns"],
        },
    ),
    Endpoint(
        "GET",
        "/api/campaigns/{campaign}",
        May.VIEW,
        "A campaign: verdict, findings, and its cells with their figures and runs. The same as"
        " soakwatch campaign report --json.",
        _data,
        gives=_CAMPAIGN,
    ),
)
