"""Requests to an Open Traffic Generator's REST interface: JSON both ways, every failure one sentence.

The paths are those of the model since 0.13 (``/monitor/metrics``, ``/control/state``, ``/config``,
``/capabilities/version``; open-traffic-generator/models, artifacts/openapi.yaml).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import TypeAlias
from urllib.parse import urlsplit

import httpx

from soakwatch.core.errors import PlanError
from soakwatch.core.secrets import secret
from soakwatch.sources.abc import LoginRefusedError, SourceError
from soakwatch.sources.transport.http import LARGEST, PeerError, WebConfig, shown
from soakwatch.sources.transport.tls import pinned, unverified, verifying

Tree: TypeAlias = "Mapping[str, Tree] | list[Tree] | str | int | float | bool | None"

_LOOPBACK = {"127.0.0.1", "::1", "localhost"}
_REMEDY = "see that url is that of the controller's REST interface"


class RefusedError(SourceError):
    """It answered, and with an error: ``status`` is the one of HTTP."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class OtgApi:
    """One controller; the connection is kept and opened anew when it breaks."""

    def __init__(self, config: WebConfig, client: httpx.AsyncClient, wait_s: float) -> None:
        self._base = config.url.rstrip("/")
        self._user, self._client, self._wait_s = config.user, client, wait_s

    @property
    def where(self) -> str:
        """What errors call it."""
        return shown(self._base)

    async def call(self, method: str, path: str, body: Tree = None) -> Tree:
        """The answer's JSON; None for none. Raises PeerError, LoginRefusedError, and Refused for its errors."""
        where = f"{self.where}{path}"
        headers = {"accept": "application/json"}
        content = None
        if body is not None:
            headers["content-type"] = "application/json"
            content = json.dumps(body).encode()
        try:
            async with self._client.stream(method, f"{self._base}{path}", headers=headers, content=content) as response:
                held = bytearray()
                async for part in response.aiter_bytes():
                    held += part
                    if len(held) > LARGEST:
                        raise SourceError(f"{where} answers with more than {LARGEST >> 20} MiB: not read")
        except httpx.TimeoutException:
            raise PeerError(f"{where} did not answer within {self._wait_s:g} s") from None
        except httpx.ConnectError as error:
            raise PeerError(f"{self.where} {_unconnected(error)}") from None
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise PeerError(f"{where} broke off: {_plain(type(error).__name__)}") from None
        if response.status_code == 401 and self._user is not None:
            raise LoginRefusedError(f"{where} does not let {self._user} in: see user and password")
        if not 200 <= response.status_code < 300:
            raise RefusedError(response.status_code, f"{where} answers with status {response.status_code}{_told(held)}")
        if not held.strip():
            return None
        try:
            tree: Tree = json.loads(held)
        except (ValueError, RecursionError):
            raise PeerError(f"{where} does not answer with JSON: {_REMEDY}") from None
        return tree


async def otg_api(config: WebConfig, target: str, limit_s: float, stack: AsyncExitStack) -> OtgApi:
    """A client for a controller; ``limit_s`` is the timeout of its polls.

    Raises PlanError for keys that contradict each other, SourceError if a pinned server shows another certificate.
    """
    parts = urlsplit(config.url)
    secured = parts.scheme == "https"
    secrets = [
        name
        for name, value in (("token", config.token), ("password", config.password), ("headers", config.headers))
        if value
    ]
    if secrets and not secured and parts.hostname not in _LOOPBACK:
        raise PlanError(
            f"{target}: {secrets[0]} would cross the network in the clear: use https in {shown(config.url)}"
        )
    if secrets and not config.verify and config.pin is None:
        raise PlanError(f"{target}: {secrets[0]} would be sent to an unverified server: give pin, drop verify: false")
    if config.password is not None and config.user is None:
        raise PlanError(f"{target}: password needs user")
    wait_s = config.wait or 0.9 * limit_s
    context = None
    if secured and config.pin is not None:
        context = await pinned(parts.hostname or "", parts.port or 443, config.pin, wait_s)
    elif secured:
        context = verifying(config.ca) if config.verify else unverified()
    headers = {name: secret(reference).reveal() for name, reference in config.headers.items()}
    if config.token is not None:
        headers["authorization"] = f"Bearer {secret(config.token).reveal()}"
    auth = None
    if config.user is not None:
        auth = httpx.BasicAuth(config.user, secret(config.password).reveal() if config.password else "")
    try:
        client = httpx.AsyncClient(
            verify=True if context is None else context,
            headers=headers,
            auth=auth,
            timeout=wait_s,
            follow_redirects=False,
            limits=httpx.Limits(max_connections=2),
            trust_env=False,
        )
    except (ValueError, UnicodeError):
        raise PlanError(
            f"{target}: a secret of {shown(config.url)} holds other than ASCII: no header takes it"
        ) from None
    return OtgApi(config, await stack.enter_async_context(client), wait_s)


def _told(body: bytearray) -> str:
    """The first of the errors that the controller names."""
    try:
        tree = json.loads(body)
    except (ValueError, RecursionError):
        return f": {_REMEDY}"
    errors = tree.get("errors") if isinstance(tree, dict) else None
    first = errors[0] if isinstance(errors, list) and errors else None
    return f": {' '.join(first.split())[:200]}" if isinstance(first, str) else ""


def _unconnected(error: httpx.ConnectError) -> str:
    told = str(error).lower()
    if "certificate" in told:
        return "shows a certificate that is not trusted: give its pin, or ca"
    if "ssl" in told:
        return "accepts a connection and then does not speak TLS: is it http?"
    if "name" in told and ("known" in told or "resolution" in told):
        return "has a name that is not known: mend url"
    if "refused" in told or "all connection attempts failed" in told:
        return "refuses: nothing listens there; is the controller up, and the port right?"
    return "cannot be reached"


def _plain(name: str) -> str:
    return {"RemoteProtocolError": "it does not speak HTTP", "ReadError": "the connection was lost"}.get(name, name)
