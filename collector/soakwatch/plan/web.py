"""Where a run answers over HTTP while it is running, as a plan says it."""

from __future__ import annotations

import ipaddress
from typing import Annotated

from pydantic import Field, PlainValidator

from soakwatch.core.errors import PlanError
from soakwatch.core.secrets import SecretRef
from soakwatch.core.validation import read_part
from soakwatch.core.yaml import Plain
from soakwatch.plan.parts import PlanModel, Text

PORT = 8720
"""Where a run listens by default; if that port is taken, on any free one."""


class WebPlan(PlanModel):
    """The server of a run: on loopback, unless it is HTTPS.

    ``listen`` is HOST:PORT; None is loopback, ``PORT`` or any free one. ``token`` refers to a secret (``env:NAME``,
    ``file:PATH``); without it one is made. ``cert`` and ``key`` are PEM files. ``names`` are further names that a
    request may ask for, such as that of a proxy.
    """

    listen: Annotated[
        Text | None, Field(description="HOST:PORT; default: 127.0.0.1:8720, or any free port", examples=["[::1]:8720"])
    ] = None
    token: Annotated[SecretRef | None, Field(description="token of clients; default: made, in the run's folder")] = None
    cert: Annotated[Text | None, Field(description="certificate (PEM): HTTPS, needed beyond loopback")] = None
    key: Annotated[Text | None, Field(description="the certificate's key (PEM)")] = None
    names: Annotated[
        tuple[Text, ...],
        Field(description="further names that it is asked under; default: its address, those of its certificate"),
    ] = ()


DEFAULT_WEB = WebPlan()
"""What a run does by default: loopback, the usual port or any free one, a token of its own."""


def _served(given: Plain) -> WebPlan | None:
    if isinstance(given, bool):
        return DEFAULT_WEB if given else None
    plan = read_part(WebPlan, given, "web")
    try:
        address(plan)
    except PlanError as error:
        raise ValueError(str(error)) from None
    return plan


Web = Annotated[WebPlan | None, PlainValidator(_served, json_schema_input_type=WebPlan | bool)]


def address(plan: WebPlan) -> tuple[str, int]:
    """Host and port to listen on; port 0 is any free one.

    Raises PlanError for an invalid address, and for one beyond loopback without TLS.
    """
    if bool(plan.cert) != bool(plan.key):
        raise PlanError("TLS needs both cert and key: name two PEM files")
    listen = plan.listen or f"127.0.0.1:{PORT}"
    host, colon, port = listen.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (colon and host and port.isascii() and port.isdecimal() and len(port) < 6 and int(port) < 65536):
        raise PlanError(f"{listen[:80]!r} is not an address: write HOST:PORT, such as 127.0.0.1:{PORT}")
    if host == "localhost":
        host = "127.0.0.1"
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        raise PlanError(f"{host[:80]!r} is not an IP address: write one, such as 127.0.0.1:{PORT}") from None
    if not loopback and not plan.cert:
        raise PlanError(f"{listen} is reachable from other machines: give cert and key, or listen on 127.0.0.1")
    return host, int(port)
