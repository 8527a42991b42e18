"""The queue of a lab server: submit plans, schedule them, cancel and move jobs; and who did what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from soakwatch.core.errors import PlanError
from soakwatch.lab.dispatcher import Dispatcher
from soakwatch.lab.job_files import job_folder, log_tail
from soakwatch.lab.lab import Lab
from soakwatch.lab.lab_model import Order
from soakwatch.runs.mark_event import moment
from soakwatch.web.endpoint import JSON, Endpoint, EndpointRequest, May, Param, Schema
from soakwatch.web.json_lab import (
    AUDIT_ENTRY,
    JOB,
    LABELS,
    PLAN,
    SCHEDULE,
    STATE,
    VALUES,
    audit_data,
    job_data,
    plan_data,
    schedule_data,
)
from soakwatch.web.lab_state import AUDIT, LabStates, one_job
from soakwatch.web.run_folder import RunFolder

_STATES = LabStates()
_MAX_AUDIT = 500
_LOG_BYTES = 64 * 1024
_HEADERS = {"cache-control": "no-store"}
_ORDER: Schema = {
    "plan": {"type": "string", "description": "path below the plans folder", "examples": ["fw/night.yaml"]},
    "labels": LABELS,
    "set": VALUES,
}


def lab_of(request: EndpointRequest) -> tuple[Lab, Dispatcher]:
    """The queue of the served folder. Raises HTTPException 404 if it has none."""
    runs = request.runs
    lab = runs.lab if isinstance(runs, RunFolder) else None
    if lab is None:
        raise HTTPException(404, "this server has no queue: start it with soakwatch serve --plans DIR")
    return lab


def _planned(answer: Callable[[EndpointRequest], Response]) -> Callable[[EndpointRequest], Response]:
    """An answer that tells what is wrong with a plan: the first problem as the error, and all of them."""

    def answered(request: EndpointRequest) -> Response:
        try:
            return answer(request)
        except PlanError as error:
            return JSONResponse({"error": str(error), "problems": list(error.problems)}, 400)

    return answered


def _state(request: EndpointRequest) -> Response:
    lab, dispatcher = lab_of(request)
    content, tag = _STATES.read(lab, dispatcher)
    headers = {"etag": tag, "cache-control": "no-cache"}
    if request.known == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=JSON, headers=headers)


def _plans(request: EndpointRequest) -> Response:
    lab, _ = lab_of(request)
    return JSONResponse({"plans": [plan_data(listed) for listed in lab.plans.listed()]}, headers=_HEADERS)


def _job(request: EndpointRequest) -> Response:
    lab, dispatcher = lab_of(request)
    return JSONResponse(one_job(lab, dispatcher, _number(request, "job")), headers=_HEADERS)


def _log(request: EndpointRequest) -> Response:
    lab, _ = lab_of(request)
    number = lab.job(_number(request, "job")).id
    text = log_tail(job_folder(lab.runs, number), _LOG_BYTES)
    return Response(text, media_type="text/plain; charset=utf-8", headers=_HEADERS)


def _submit(request: EndpointRequest) -> Response:
    lab, dispatcher = lab_of(request)
    given = _given(request, {"plan", "labels", "set"})
    job = lab.submit(_order(given), request.user, any_value=request.may >= May.ADMIN)
    return JSONResponse(one_job(lab, dispatcher, job.id), 201)


def _cancel(request: EndpointRequest) -> Response:
    lab, _ = lab_of(request)
    reason = _text(_given(request, {"reason"}), "reason")
    return JSONResponse(job_data(lab.cancel(_number(request, "job"), request.user, reason)))


def _resume(request: EndpointRequest) -> Response:
    lab, dispatcher = lab_of(request)
    _given(request, set())
    return JSONResponse(one_job(lab, dispatcher, lab.resume(_number(request, "job"), request.user).id), 201)


def _move(request: EndpointRequest) -> Response:
    lab, dispatcher = lab_of(request)
    job = lab.move(_number(request, "job"), _text(_given(request, {"to"}), "to"), request.user)
    return JSONResponse(one_job(lab, dispatcher, job.id))


def _schedule(request: EndpointRequest) -> Response:
    lab, _ = lab_of(request)
    given = _given(request, {"plan", "labels", "set", "cron", "zone", "at"})
    cron, at = _text(given, "cron"), _text(given, "at")
    if bool(cron) == bool(at):
        raise HTTPException(400, 'give either cron, such as "0 20 * * mon-fri", or at, a time with its zone')
    try:
        at_ns = moment(at) if at else None
    except ValueError as error:
        raise HTTPException(400, f"at: {error}") from None
    made = lab.schedule(
        _order(given),
        request.user,
        cron_text=cron,
        zone=_text(given, "zone"),
        at_ns=at_ns,
        any_value=request.may >= May.ADMIN,
    )
    return JSONResponse(schedule_data(made), 201)


def _enable(request: EndpointRequest) -> Response:
    return _enabled(request, on=True)


def _disable(request: EndpointRequest) -> Response:
    return _enabled(request, on=False)


def _enabled(request: EndpointRequest, *, on: bool) -> Response:
    lab, _ = lab_of(request)
    return JSONResponse(schedule_data(lab.enable(_number(request, "schedule"), request.user, on=on)))


def _start(request: EndpointRequest) -> Response:
    lab, dispatcher = lab_of(request)
    job = lab.start_now(_number(request, "schedule"), request.user)
    return JSONResponse(one_job(lab, dispatcher, job.id), 201)


def _remove(request: EndpointRequest) -> Response:
    lab, _ = lab_of(request)
    return JSONResponse(schedule_data(lab.remove(_number(request, "schedule"), request.user)))


def _audit(request: EndpointRequest) -> Response:
    lab, _ = lab_of(request)
    before = request.whole("before", 2**63 - 1, 1)
    limit = request.whole("limit", AUDIT, 1, _MAX_AUDIT)
    return JSONResponse({"audit": [audit_data(entry) for entry in lab.store.audit(limit, before)]}, headers=_HEADERS)


def _number(request: EndpointRequest, name: str) -> int:
    text = request.path[name].removeprefix("s" if name == "schedule" else "")
    if not (text.isascii() and text.isdecimal() and len(text) < 16):
        raise HTTPException(404, f"{name} is a number, such as {'s3' if name == 'schedule' else '17'}")
    return int(text)


def _given(request: EndpointRequest, known: set[str]) -> Mapping[str, object]:
    """The body. Raises HTTPException 400 for a key that is none."""
    given = request.json()
    if unknown := sorted(set(given) - known):
        raise HTTPException(400, f"unknown key {unknown[0][:40]!r}: send {', '.join(sorted(known)) or '{}'}")
    return given


def _text(given: Mapping[str, object], key: str) -> str:
    value = given.get(key, "")
    if not isinstance(value, str) or len(value) > 1000:
        raise HTTPException(400, f"{key} is a text of 1000 characters at most")
    return " ".join(value.split())


def _order(given: Mapping[str, object]) -> Order:
    plan, labels, values = given.get("plan"), given.get("labels", {}), given.get("set", [])
    if not isinstance(plan, str) or not plan:
        raise HTTPException(400, "plan is missing: name a plan of GET /api/lab/plans")
    if not isinstance(labels, dict) or not all(isinstance(text, str) for text in labels.values()):
        raise HTTPException(400, 'labels are texts by name, such as {"release": "7.2"}')
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise HTTPException(400, 'set is a list of texts, such as ["duration=2h"]')
    return Order(plan, cast("dict[str, str]", labels), tuple(cast("list[str]", values)))


def _body(properties: Schema, *required: str) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


_SCHEDULED: Schema = {
    **_ORDER,
    "cron": {"type": "string", "description": "minute hour day month weekday", "examples": ["0 20 * * mon-fri"]},
    "zone": {
        "type": "string",
        "description": "time zone of cron; default: the server's",
        "examples": ["Europe/Vienna"],
    },
    "at": {"type": "string", "description": "or once: ISO 8601 with a zone", "examples": ["2026-11-30T20:00:00+01:00"]},
}
_NOTHING = _body({})
_AS_SCHEDULE = {"description": "the schedule", **SCHEDULE}

ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/lab",
        May.VIEW,
        "The queue, what goes on, schedules, and the end of the audit.",
        _state,
        gives=STATE,
    ),
    Endpoint(
        "GET",
        "/api/lab/plans",
        May.VIEW,
        "The plans and campaigns that may be submitted.",
        _plans,
        gives={"type": "object", "properties": {"plans": {"type": "array", "items": PLAN}}, "required": ["plans"]},
    ),
    Endpoint(
        "POST",
        "/api/lab/jobs",
        May.ACT,
        "Queue a plan now. 400 if it cannot be run; problems lists all that is wrong with it.",
        _planned(_submit),
        sends=_body(_ORDER, "plan"),
        gives=JOB,
        status=201,
    ),
    Endpoint("GET", "/api/lab/jobs/{job}", May.VIEW, "A job.", _job, gives=JOB),
    Endpoint(
        "GET", "/api/lab/jobs/{job}/log", May.VIEW, "The last 64 KiB that a job printed.", _log, media="text/plain"
    ),
    Endpoint(
        "POST",
        "/api/lab/jobs/{job}/cancel",
        May.ACT,
        "Take a job out of the queue, or end it if it runs: it is judged by what it has. Asked again a minute later,"
        " what still runs is killed. 409 if it is over, or was asked less than a minute ago.",
        _cancel,
        sends=_body({"reason": {"type": "string"}}),
        gives=JOB,
    ),
    Endpoint(
        "POST",
        "/api/lab/jobs/{job}/resume",
        May.ACT,
        "Queue a job that goes on with one that was broken off. 409 if it was not.",
        _planned(_resume),
        sends=_NOTHING,
        gives=JOB,
        status=201,
    ),
    Endpoint(
        "POST",
        "/api/lab/jobs/{job}/move",
        May.ACT,
        "Move a job that waits. 409 if it does not wait.",
        _move,
        sends=_body({"to": {"enum": ["up", "down", "top"]}}, "to"),
        gives=JOB,
    ),
    Endpoint(
        "POST",
        "/api/lab/schedules",
        May.ACT,
        "Queue a plan again and again by cron, or once at a time.",
        _planned(_schedule),
        sends=_body(_SCHEDULED, "plan"),
        gives=SCHEDULE,
        status=201,
    ),
    Endpoint(
        "POST",
        "/api/lab/schedules/{schedule}/enable",
        May.ACT,
        "Enable a schedule again.",
        _enable,
        sends=_NOTHING,
        gives=_AS_SCHEDULE,
    ),
    Endpoint(
        "POST",
        "/api/lab/schedules/{schedule}/disable",
        May.ACT,
        "Disable a schedule: it queues nothing until it is enabled again.",
        _disable,
        sends=_NOTHING,
        gives=_AS_SCHEDULE,
    ),
    Endpoint(
        "POST",
        "/api/lab/schedules/{schedule}/start",
        May.ACT,
        "Queue the plan of a schedule now, besides its times.",
        _planned(_start),
        sends=_NOTHING,
        gives=JOB,
        status=201,
    ),
    Endpoint(
        "DELETE",
        "/api/lab/schedules/{schedule}",
        May.ACT,
        "Remove a schedule; jobs that it queued stay.",
        _remove,
        gives=_AS_SCHEDULE,
    ),
    Endpoint(
        "GET",
        "/api/lab/audit",
        May.VIEW,
        "Who did what, the newest first.",
        _audit,
        params=(
            Param("before", "id of the oldest known entry", "whole"),
            Param("limit", f"how many, {_MAX_AUDIT} at most", "whole"),
        ),
        gives={
            "type": "object",
            "properties": {"audit": {"type": "array", "items": AUDIT_ENTRY}},
            "required": ["audit"],
        },
    ),
)
