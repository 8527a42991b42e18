"""Deletes a run: shows what would be lost, then deletes when confirmed by name."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from soakwatch.runs.delete_run import delete, loss_of, refusal
from soakwatch.web.endpoint import Endpoint, May, Param, Question
from soakwatch.web.json_runs import LOSS, loss_data
from soakwatch.web.run_folder import RunFolder


def _runs(question: Question) -> RunFolder:
    """The folder of runs. Raises HTTPException 404 on the server of a single run, which deletes nothing."""
    if not isinstance(question.runs, RunFolder):
        raise HTTPException(404, "this server serves one run only: use soakwatch serve to delete runs of a folder")
    return question.runs


def _loss(question: Question) -> Response:
    runs = _runs(question)
    return JSONResponse(loss_data(loss_of(question.folder, runs.summaries.overview().summaries)))


def _delete(question: Question) -> Response:
    _runs(question)
    name = question.folder.name
    if question.path["run"] != name or question.text("confirm") != name:
        raise HTTPException(400, f"nothing was deleted: confirm must be the name of the run's folder, {name}")
    if why := refusal(question.folder):
        raise HTTPException(409, why)
    delete(question.folder)
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
        May.ACT,
        "Delete a run with everything in its folder; 409 while it is being written.",
        _delete,
        params=(Param("confirm", "the name of the run again", required=True),),
        gives={"type": "object", "properties": {"deleted": {"type": "string"}}, "required": ["deleted"]},
    ),
)
