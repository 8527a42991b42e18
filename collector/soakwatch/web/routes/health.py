"""Whether the server answers, and whether a run is being monitored properly."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from soakwatch.runs.run_state import RunState
from soakwatch.web.endpoint import Endpoint, EndpointRequest, May
from soakwatch.web.json_state import state_data
from soakwatch.web.routes.state import STATE, STATES

_STALLED_S, _SILENT = 30.0, 3.5  # stalled: nothing recorded for these seconds plus this many of the shortest interval


def _health(_: EndpointRequest) -> Response:
    return JSONResponse({"status": "ok"})


def _of_run(request: EndpointRequest) -> Response:
    state = STATES.read(request.folder, request.runs.now_ns())
    data = state_data(state, report=False)
    behind_s = None if state.last_ns is None else round(max(0, state.now_ns - state.last_ns) * 1e-9, 3)
    return JSONResponse(
        {
            "run": state.run,
            "state": state.standing,
            "status": status_of(state, data["sources"]),
            "now": data["now"],
            "behind_s": behind_s if state.standing == "running" else None,
            "self": data["self"],
            "sources": data["sources"],
        }
    )


def status_of(state: RunState, sources: object) -> str:
    """The health of the monitor: ok, degraded (a source does not answer), stalled, or over."""
    if state.standing in {"ended", "broken off"}:
        return "over"
    shortest_s = min((source.interval_s for source in state.sources), default=0.0)
    quiet_s = (state.now_ns - (state.last_ns or state.begin_ns or state.now_ns)) * 1e-9
    if state.standing == "running" and quiet_s > _STALLED_S + _SILENT * shortest_s:
        return "stalled"
    assert isinstance(sources, list)
    return "degraded" if any(entry["state"] in {"failing", "silent"} for entry in sources) else "ok"


_PARTS = STATE["properties"]
assert isinstance(_PARTS, dict)
ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/health",
        May.NOTHING,
        "Whether the server answers. Needs no token and returns nothing else.",
        _health,
        gives={"type": "object", "properties": {"status": {"const": "ok"}}, "required": ["status"]},
    ),
    Endpoint(
        "GET",
        "/api/runs/{run}/health",
        May.VIEW,
        "Whether the run is being monitored as it should be.",
        _of_run,
        gives={
            "type": "object",
            "properties": {
                "run": {"type": "string"},
                "state": _PARTS["state"],
                "status": {
                    "enum": ["ok", "degraded", "stalled", "over"],
                    "description": "degraded: a source does not answer; stalled: nothing is recorded",
                },
                "now": {"type": "string", "format": "date-time"},
                "behind_s": {"type": ["number", "null"], "description": "seconds since the last recorded sample"},
                "self": _PARTS["self"],
                "sources": _PARTS["sources"],
            },
            "required": ["run", "state", "status", "now", "behind_s", "self", "sources"],
        },
    ),
)
