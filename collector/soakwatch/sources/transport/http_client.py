"""The one set-up of an HTTP client (TLS, headers, timeout, no proxy, no redirect), and its failures in one sentence.

Sources, sinks, hooks and the client of the web API build their clients here, so that a timeout, an untrusted
certificate or a refused connection is reported in the same words by all of them.
"""

from __future__ import annotations

import enum
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict
from urllib.parse import urlsplit

import httpx

from soakwatch.core.errors import PlanError
from soakwatch.sources.transport.tls import verifying

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
"""Hosts to which a secret may go in the clear: it does not leave this machine."""
REQUEST_ERRORS = (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError)
"""What a request may raise; ``failure_of`` reads each of them."""

_MAX_CONNECTIONS = 2  # of a source: one that is kept, and one while that is found broken


class Cause(enum.Enum):
    """Why a request has no answer."""

    TIMEOUT = enum.auto()
    HOST_NAME = enum.auto()
    NO_ROUTE = enum.auto()
    REFUSED = enum.auto()
    CERTIFICATE = enum.auto()
    NOT_TLS = enum.auto()
    UNREACHABLE = enum.auto()
    BROKEN = enum.auto()


_REMEDIES = {
    Cause.HOST_NAME: "check the name, and the name service of this machine",
    Cause.REFUSED: "nothing listens on that port",
    Cause.CERTIFICATE: "set ca, or pin the certificate",
    Cause.NOT_TLS: "does the port serve plain HTTP?",
}


@dataclass(frozen=True, slots=True)
class HttpFailure:
    """A request without an answer: its cause, for the caller to choose what follows, and the sentence for people."""

    cause: Cause
    text: str


class _Options(TypedDict):
    """Keywords that both kinds of client take."""

    verify: ssl.SSLContext | bool
    headers: dict[str, str]
    timeout: float
    follow_redirects: bool
    trust_env: bool


def sync_client(
    headers: Mapping[str, str], timeout_s: float, *, owner: str, context: ssl.SSLContext | None = None
) -> httpx.Client:
    """A client for calls that may block; a context manager.

    ``context`` is that of TLS (see ``tls_context``; None for plain HTTP), ``owner`` says in an error whose headers
    these are. Raises PlanError for a header that HTTP cannot carry.
    """
    return httpx.Client(**_options(headers, timeout_s, owner, context))


def async_client(
    headers: Mapping[str, str],
    timeout_s: float,
    *,
    owner: str,
    context: ssl.SSLContext | None = None,
    auth: httpx.BasicAuth | None = None,
) -> httpx.AsyncClient:
    """A client for asyncio; an asynchronous context manager. Arguments and errors are those of ``sync_client``."""
    limits = httpx.Limits(max_connections=_MAX_CONNECTIONS)
    return httpx.AsyncClient(**_options(headers, timeout_s, owner, context), auth=auth, limits=limits)


def tls_context(url: str, ca: str | None) -> ssl.SSLContext | None:
    """The context that verifies the server of a URL, by a CA bundle where one is given; None for plain HTTP.

    Raises PlanError for a CA bundle that cannot be used.
    """
    return verifying(ca) if urlsplit(url).scheme == "https" else None


def failure_of(
    error: Exception, where: str, timeout_s: float, remedies: Mapping[Cause, str] | None = None
) -> HttpFailure:
    """A failed request as a cause and one sentence without a secret.

    ``error`` is one of REQUEST_ERRORS or a TimeoutError, ``where`` names the peer, ``remedies`` replaces what the
    sentence advises for a cause.

    >>> failure_of(httpx.ConnectError("[Errno 111] Connection refused"), "http://h:1", 5.0).text
    'http://h:1 refuses the connection: nothing listens on that port'
    """
    cause = _cause(error)
    match cause:
        case Cause.TIMEOUT:
            text = f"{where} did not answer within {timeout_s:g} s"
        case Cause.HOST_NAME:
            text = f"{where} has a host name that cannot be resolved"
        case Cause.NO_ROUTE:
            text = f"{where} cannot be reached: there is no route from this machine"
        case Cause.REFUSED:
            text = f"{where} refuses the connection"
        case Cause.CERTIFICATE:
            text = f"{where} presents a certificate that is not trusted"
        case Cause.NOT_TLS:
            text = f"{where} accepts the connection but does not speak TLS"
        case Cause.UNREACHABLE:
            text = f"{where} cannot be reached"
        case Cause.BROKEN:
            text = f"{where} {_breakage(error)}"
    remedy = (remedies or {}).get(cause, _REMEDIES.get(cause, ""))
    return HttpFailure(cause, f"{text}: {remedy}" if remedy else text)


def _options(headers: Mapping[str, str], timeout_s: float, owner: str, context: ssl.SSLContext | None) -> _Options:
    for text in (*headers, *headers.values()):
        if not (text.isascii() and text.isprintable()):
            raise PlanError(f"{owner} cannot be sent in an HTTP header: it has characters other than printable ASCII")
    return {
        "verify": True if context is None else context,
        "headers": dict(headers),
        "timeout": timeout_s,
        "follow_redirects": False,  # a secret must not follow to another host
        "trust_env": False,  # a proxy between would be measured with the device
    }


def _cause(error: Exception) -> Cause:
    if isinstance(error, httpx.TimeoutException | TimeoutError):
        return Cause.TIMEOUT
    if not isinstance(error, httpx.ConnectError):
        return Cause.BROKEN
    message = str(error).lower()
    if "name or service not known" in message or "name resolution" in message or "no address associated" in message:
        return Cause.HOST_NAME
    if "certificate" in message:
        return Cause.CERTIFICATE
    if "unreachable" in message and "network" in message:
        return Cause.NO_ROUTE
    if "ssl" in message or "tls" in message:
        return Cause.NOT_TLS
    if "refused" in message or "all connection attempts failed" in message:  # the second is asyncio's word for it
        return Cause.REFUSED
    return Cause.UNREACHABLE


def _breakage(error: Exception) -> str:
    """How an exchange ended too early."""
    message = str(error).lower()
    if isinstance(error, httpx.RemoteProtocolError):
        if "disconnected without sending" in message:
            return "closed the connection without an answer"
        if "without sending complete" in message:
            return "closed the connection in the middle of its answer"
        return "does not answer in HTTP"
    if isinstance(error, httpx.NetworkError):
        return "lost the connection"
    return f"could not be asked ({type(error).__name__})"
