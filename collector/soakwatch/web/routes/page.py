"""The page of a run: its state while it goes on, then verdict and report."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from importlib import resources

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response

from soakwatch.core.formatting import SYMBOLS, printable
from soakwatch.report.files import REPORT_FILES
from soakwatch.web.auth import GUARDS
from soakwatch.web.endpoint import JSON, Endpoint, EndpointRequest, May, Param
from soakwatch.web.json_state import shown_data
from soakwatch.web.plot_cache import BeingDrawnError, PlotCache
from soakwatch.web.routes.state import STATES, state_of

_PLOTS = PlotCache()
_POLICY = "content-security-policy"
_PAGE_POLICY = f"{GUARDS[_POLICY]}; frame-src 'self'"  # frames the report of a run that has ended
_REPORT_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:;"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'self';"
    " sandbox allow-scripts allow-popups allow-modals allow-downloads"
)
"""A report's inline scripts may run, but in an origin of their own from which they can reach nothing."""


def _page(request: EndpointRequest) -> Response:
    state = state_of(request, "")
    facts: Mapping[str, object] = {
        "run": _name(request),
        "name": printable(str(state["name"])),
        "act": request.may >= May.ACT,
        "single": request.runs.single,
        "state": Markup(_safe(json.dumps(state))),  # noqa: S704 - no "<" in it
        "symbols": Markup(_safe(json.dumps({outcome.value: sign for outcome, sign in SYMBOLS.items()}))),  # noqa: S704
    }
    headers = {_POLICY: _PAGE_POLICY, "cache-control": "no-store"}
    return HTMLResponse(_environment().get_template("live.html.jinja").render(facts), headers=headers)


def _name(request: EndpointRequest) -> str:
    """The run's name for paths; ``last`` is replaced by the folder, as it will be another run tomorrow."""
    name = request.path["run"]
    return name if ":" in name else request.folder.name


def _plots(request: EndpointRequest) -> Response:
    state = STATES.read(request.folder, request.runs.now_ns())
    mark = str(shown_data(state, "")["drawn"])
    try:
        first = request.text("part") == "first"
        text = _PLOTS.text(request.folder, mark, live=state.verdict is None, first=first)
    except BeingDrawnError:
        return JSONResponse({"drawn": None}, 202, {"cache-control": "no-store", "retry-after": "1"})
    return Response(text, media_type=JSON, headers={"cache-control": "no-store"})


def _report(request: EndpointRequest) -> Response:
    file = request.folder / REPORT_FILES["html"]
    if not file.is_file():
        raise HTTPException(404, "no report yet: it is written at the end of the run")
    return FileResponse(file, media_type="text/html; charset=utf-8", headers={_POLICY: _REPORT_POLICY})


def _safe(text: str) -> str:
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@functools.cache
def _environment() -> Environment:
    def load(name: str) -> str:
        return resources.files("soakwatch.web").joinpath("pages", name).read_text(encoding="utf-8")

    return Environment(
        autoescape=True, undefined=StrictUndefined, loader=FunctionLoader(load), trim_blocks=True, lstrip_blocks=True
    )


ENDPOINTS = (
    Endpoint("GET", "/runs/{run}/", May.VIEW, "The page of a run.", _page, media="text/html"),
    Endpoint(
        "GET",
        "/runs/{run}/plots",
        May.VIEW,
        "The plots of a run.",
        _plots,
        params=(Param("part", "first: the few that come first, in a few strokes; all without it"),),
    ),
    Endpoint("GET", "/runs/{run}/report", May.VIEW, "The report of a run.", _report, media="text/html"),
)
