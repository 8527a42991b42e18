"""Deletes a run: shows what would be lost, then deletes when confirmed by name."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from soakwatch.runs.delete_run import delete, loss_of, refusal
from soakwatch.web.endpoint import Endpoint, EndpointRequest, May, Param
from soakwatch.web.json_runs import LOSS, loss_data
from soakwatch.web.run_folder import RunFolder


def _runs(request: EndpointRequest) -> RunFolder:
    """The folder of runs. Raises HTTPException 404 on the server of a single run, which deletes nothing."""
    if not isinstance(request.runs, RunFolder):
        raise HTTPException(404, "this server serves one run only: use soakwatch serve to delete runs of a folder")
    return request.runs


def _loss(request: EndpointRequest) -> Response:
    runs = _runs(request)
    return JSONResponse(loss_data(loss_of(request.folder, runs.summaries.overview().summaries)))


def _delete(request: EndpointRequest) -> Response:
    _runs(request)
    name = request.folder.name
    if request.path["run"] != name or request.text("confirm") != name:
        raise HTTPException(400, f"nothing was deleted: confirm must be the name of the run's folder, {name}")
    if why := refusal(request.folder):
        raise HTTPException(409, why)
    delete(request.folder)
    return JSONResponse({"deleted": name})


ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/runs/{run}/loss",
        May.VIEW,
        "What is lost if the run is deleted, or why it cannot be deleted.",
        _loss,
        gives=LOSS,
    ),
    Endpoint(
        "DELETE",
        "/api/runs/{run}",
        May.ADMIN,
        "Delete a run with everything in its folder; 409 while it is being written.",
        _delete,
        params=(Param("confirm", "the name of the run again", required=True),),
        gives={"type": "object", "properties": {"deleted": {"type": "string"}}, "required": ["deleted"]},
        audited="delete",
    ),
)
