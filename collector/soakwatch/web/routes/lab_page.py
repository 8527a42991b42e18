"""The page of the queue: what goes on, what waits, schedules, and who did what."""

from __future__ import annotations

from starlette.responses import Response

from soakwatch.core import cron
from soakwatch.web.endpoint import Endpoint, EndpointRequest, May
from soakwatch.web.rendering import page
from soakwatch.web.routes.lab import lab_of


def _page(request: EndpointRequest) -> Response:
    lab, _ = lab_of(request)
    return page(
        "lab.html.jinja",
        plans=str(lab.plans.path) if lab.runs_plans else "",
        acting=lab.runs_plans and request.may >= May.ACT,
        admin=request.may >= May.ADMIN,
        user=request.user.name,
        role=request.user.role,
        zone=cron.local_zone(),
    )


ENDPOINTS = (Endpoint("GET", "/lab", May.VIEW, "The page of the queue and its schedules.", _page, media="text/html"),)
