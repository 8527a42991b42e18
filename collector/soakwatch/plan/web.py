"""Where a run answers over HTTP while it goes on, as a plan says it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from soakwatch.errors import PlanError
from soakwatch.plan.parts import Shape, Text
from soakwatch.plan.text import Document, Problem
from soakwatch.secret import SecretRef
from soakwatch.web.access import WebPlan, address


class WebShape(Shape):
    """The server of a run: on loopback, unless it is HTTPS."""

    listen: Annotated[
        Text | None, Field(description="HOST:PORT; default: 127.0.0.1:8720, or any free port", examples=["[::1]:8720"])
    ] = None
    token: Annotated[SecretRef | None, Field(description="token of clients; default: made, in the run's folder")] = None
    cert: Annotated[Text | None, Field(description="certificate (PEM): HTTPS, needed beyond loopback")] = None
    key: Annotated[Text | None, Field(description="the certificate's key (PEM)")] = None


def web_of(document: Document, shape: WebShape | bool) -> tuple[WebPlan | None, list[Problem]]:  # noqa: FBT001
    """The server that a plan asks for, None for ``web: false``; and what is wrong with it."""
    if shape is False:
        return None, []
    if shape is True:
        return WebPlan(), []
    made = WebPlan(shape.listen or "", shape.token, shape.cert, shape.key)
    try:
        address(made)
    except PlanError as error:
        return made, [document.problem(("web",), f"web: {error}")]
    return made, []
