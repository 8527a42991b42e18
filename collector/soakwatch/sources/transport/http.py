"""How a source reaches a URL: client, TLS, secrets, limits; every failure as one sentence without a secret."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Annotated
from urllib.parse import urlsplit

import httpx
from pydantic import AfterValidator, Field

from soakwatch.core.errors import PlanError
from soakwatch.core.secrets import SecretRef, secret
from soakwatch.core.units import Seconds
from soakwatch.sources.abc import SourceConfig, SourceError
from soakwatch.sources.transport.http_client import LOOPBACK, REQUEST_ERRORS, Cause, async_client, failure_of
from soakwatch.sources.transport.tls import Pin, pinned, unverified, verifying

MAX_BODY_BYTES = 8 * 2**20
"""Bytes of a body that are read at most."""


def _url(text: str) -> str:
    try:
        parts = urlsplit(text)
        good = parts.scheme in {"http", "https"} and bool(parts.hostname)
        parts.port  # noqa: B018 - a port that cannot be raises
    except ValueError:
        good = False
    if not good:
        raise ValueError("this is not the address of a page: write http://HOST:PORT/PATH or https://…")
    if parts.username is not None:
        raise ValueError("this address contains a name or a password: use the keys user and password")
    return text


class WebConfig(SourceConfig):
    """Keys of every source that asks a URL."""

    url: Annotated[str, AfterValidator(_url), Field(description="address of the page")]
    wait: Annotated[
        Seconds | None,
        Field(default=None, gt=0, le=600, description="later answers fail; default: 0.9 of the poll's timeout"),
    ]
    headers: Annotated[
        dict[str, SecretRef],
        Field(default_factory=dict, description="headers with secret values, such as {X-Token: env:TOKEN}"),
    ]
    token: Annotated[SecretRef | None, Field(default=None, description="bearer token")]
    user: Annotated[str | None, Field(default=None, description="name for basic authentication")]
    password: Annotated[SecretRef | None, Field(default=None, description="password for basic authentication")]
    verify: Annotated[bool, Field(default=True, description="verify the certificate and its name")]
    ca: Annotated[str | None, Field(default=None, description="CA bundle (PEM); default: the system's")]
    pin: Annotated[
        Pin | None,
        Field(default=None, description="SHA-256 of the server's certificate: trust this one and no other"),
    ]


@dataclass(frozen=True, slots=True)
class Page:
    """An answer: status, headers with names in lower case, and the body."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)

    @property
    def text(self) -> str:
        """The body as UTF-8; bytes that are none become U+FFFD."""
        return self.body.decode("utf-8", "replace")


class PeerError(SourceError):
    """The peer refused, hung up or was silent: it is not there. (What this machine could not try is SourceError.)"""


class TooLargeError(SourceError):
    """The body is larger than is read."""


class WebAccess:
    """One client of one URL; connections are kept and opened anew when they break."""

    def __init__(
        self, config: WebConfig, client: httpx.AsyncClient, wait_s: float, remedies: Mapping[Cause, str]
    ) -> None:
        self._url, self._client, self._wait_s, self._remedies = config.url, client, wait_s, remedies

    async def get(self, accept: str = "*/*") -> Page:
        """The page. Raises PeerError; SourceError for an unknown name, TooLargeError for a body that is too large."""
        return await self.request("GET", headers={"accept": accept})

    async def request(
        self, method: str, path: str = "", headers: Mapping[str, str] | None = None, content: bytes | None = None
    ) -> Page:
        """The answer to one request; ``path`` is appended to the URL of the plan. Raises as ``get`` does."""
        url = f"{self._url.rstrip('/')}{path}" if path else self._url
        try:
            async with self._client.stream(method, url, headers=headers, content=content) as response:
                body = bytearray()
                async for part in response.aiter_bytes():
                    body += part
                    if len(body) > MAX_BODY_BYTES:
                        raise TooLargeError(f"{shown(url)} answers with more than {MAX_BODY_BYTES >> 20} MiB: not read")
                names = {name.lower(): value for name, value in response.headers.items()}
                return Page(response.status_code, names, bytes(body))
        except REQUEST_ERRORS as error:
            # A connection that cannot be made concerns the address in the plan, whatever was to be asked there.
            where = shown(self._url.rstrip("/") if path and isinstance(error, httpx.ConnectError) else url)
            failure = failure_of(error, where, self._wait_s, self._remedies)
            ours = failure.cause in {Cause.HOST_NAME, Cause.NO_ROUTE}
            raise (SourceError if ours else PeerError)(failure.text) from None


async def web_access(
    config: WebConfig,
    target: str,
    limit_s: float,
    stack: AsyncExitStack,
    remedies: Mapping[Cause, str] | None = None,
) -> WebAccess:
    """A client for the URL of a source; ``limit_s`` is the timeout of its polls, ``remedies`` see ``failure_of``.

    Raises PlanError for keys that contradict each other, SourceError if a pinned server shows another certificate.
    """
    parts = urlsplit(config.url)
    secured = parts.scheme == "https"
    secrets = [
        name
        for name, value in (("token", config.token), ("password", config.password), ("headers", config.headers))
        if value
    ]
    if secrets and not secured and parts.hostname not in LOOPBACK:
        raise PlanError(
            f"{target}: {secrets[0]} would cross the network in the clear: use https in {shown(config.url)}"
        )
    if secrets and not config.verify and config.pin is None:
        raise PlanError(
            f"{target}: {secrets[0]} would be sent to an unverified server: remove verify: false, or add pin"
        )
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
    owner = f"{target}: a secret of {shown(config.url)}"
    client = async_client(headers, wait_s, owner=owner, context=context, auth=auth)
    return WebAccess(config, await stack.enter_async_context(client), wait_s, remedies or {})


def shown(url: str) -> str:
    """A URL as errors name it: without its query, which may hold a secret.

    >>> shown("http://h:9100/metrics?token=abc")
    'http://h:9100/metrics'
    """
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
