"""Posts a finding as JSON: TLS verified, retried if the server fails briefly, its address never shown."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

import httpx

from soakwatch.core.errors import PlanError
from soakwatch.core.secrets import secret
from soakwatch.engine.hooks.trigger import HookFailedError
from soakwatch.plan.hook import WebhookPlan, is_web_address
from soakwatch.sources.transport.http_client import REQUEST_ERRORS, Cause, async_client, failure_of
from soakwatch.sources.transport.tls import verifying
from soakwatch_model.tree import Tree

TIMEOUT_S = 10.0
PAUSES_S = (1.0, 4.0)
"""Pauses between tries: there is one more try than pauses."""
_RETRIED_STATUS = frozenset({408, 425, 429})


def address_of(planned: WebhookPlan) -> str:
    """The address. Raises PlanError if its secret is missing or no address; the sentence quotes nothing of it."""
    if not planned.url.startswith(("env:", "file:")):
        return planned.url
    address = secret(planned.url).reveal()
    if not is_web_address(address):
        raise PlanError(f"the secret {planned.url} does not hold an address such as https://HOST/PATH")
    return address


async def post(planned: WebhookPlan, document: Mapping[str, Tree], pauses_s: Sequence[float] = PAUSES_S) -> None:
    """Posts it in at most ``len(pauses_s) + 1`` tries. Raises HookFailedError."""
    try:
        address = await asyncio.to_thread(address_of, planned)
        where = _shown(address)
        headers = {name: secret(reference).reveal() for name, reference in planned.headers.items()}
        headers = {"content-type": "application/json", "user-agent": "soakwatch", **headers}
        context = await asyncio.to_thread(verifying, planned.ca)
        client = async_client(headers, TIMEOUT_S, owner=f"a secret for {where}", context=context)
    except PlanError as error:
        raise HookFailedError(str(error)) from None
    content = json.dumps(document, allow_nan=False).encode()
    async with client:
        for pause_s in (*pauses_s, None):
            trouble, again = await _try(client, address, content, where)
            if not trouble:
                return
            if not again or pause_s is None:
                raise HookFailedError(trouble)
            await asyncio.sleep(pause_s)


async def _try(client: httpx.AsyncClient, address: str, content: bytes, where: str) -> tuple[str, bool]:
    """What went wrong, or ""; and whether a retry may succeed."""
    try:
        async with asyncio.timeout(TIMEOUT_S), client.stream("POST", address, content=content) as response:
            status = response.status_code  # the body is not read
    except (TimeoutError, ValueError, *REQUEST_ERRORS) as error:
        failure = failure_of(error, where, TIMEOUT_S, {Cause.CERTIFICATE: "set ca"})
        return failure.text, failure.cause is not Cause.CERTIFICATE
    if 200 <= status < 300:
        return "", False
    return f"{where} answers with the status {status}", status >= 500 or status in _RETRIED_STATUS


def _shown(address: str) -> str:
    """An address for sentences, without its path: the path of a webhook is its password."""
    parts = urlsplit(address)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}{'' if parts.port is None else f':{parts.port}'}"
