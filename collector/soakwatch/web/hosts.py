"""Checks the Host header against the server's names.

It stops DNS rebinding, in which another site's name resolves to this server: such a request has a foreign Host and is
refused first, so no redirect repeats that name.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MISDIRECTED = 421
_REFUSAL = (
    "the Host header does not name this server: use its address, or allow the name (`soakwatch serve --name NAME`;"
    " names under web in a plan)"
)


@dataclass(frozen=True, slots=True)
class Names:
    """The names of a server, in lower case. One that listens on every address also accepts any IP address as its name,
    since no rebound name is an IP address."""

    names: frozenset[str]
    every_address: bool

    def allow(self, host: str) -> bool:
        """Whether a Host header names the server; its port is ignored (tunnels).

        >>> names = Names(frozenset({"soak.lab", "*.test"}), every_address=False)
        >>> [names.allow(host) for host in ("localhost:9000", "[::1]:1", "127.9.9.9", "soak.lab", "A.test", "b.a.test")]
        [True, True, True, True, True, False]
        >>> [names.allow(host) for host in ("", "evil.example", "192.0.2.7", "localhost.evil.example", "x@soak.lab")]
        [False, False, False, False, False]
        """
        name = host.rpartition("]")[0].removeprefix("[") if host.startswith("[") else host.partition(":")[0]
        name = name.lower().rstrip(".")
        if name == "localhost" or name in self.names:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return "*" not in name and f"*.{name.partition('.')[2]}" in self.names
        return address.is_loopback or self.every_address


def names_of(listener: socket.socket, given: Collection[str], cert: str | None) -> Names:
    """The names of a listening socket: its address, the ``given`` ones, and those of its certificate (PEM).

    Beyond loopback also the name of this machine.
    """
    address = ipaddress.ip_address(listener.getsockname()[0].partition("%")[0])
    names = {str(address), *given, *_certified(cert)}
    if not address.is_loopback:
        names |= {socket.gethostname(), socket.getfqdn()}
    return Names(frozenset(name.lower() for name in names), address.is_unspecified)


def _certified(cert: str | None) -> set[str]:
    """The names in a certificate; none if it cannot be read."""
    if cert is None:
        return set()
    from cryptography import x509

    try:
        certificate = x509.load_pem_x509_certificate(Path(cert).read_bytes())
        known = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (OSError, ValueError, x509.ExtensionNotFound):
        return set()
    return {*known.get_values_for_type(x509.DNSName), *map(str, known.get_values_for_type(x509.IPAddress))}


class Guarded:
    """Refuses a foreign Host, and adds missing ``headers`` to every answer."""

    def __init__(self, app: ASGIApp, names: Names, headers: Mapping[str, str]) -> None:
        self._app, self._names = app, names
        self._headers = [(name.encode(), value.encode()) for name, value in headers.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one ASGI request."""

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = {name.lower() for name, _ in message.get("headers", ())}
                added = [(name, value) for name, value in self._headers if name not in own]
                message = {**message, "headers": [*message.get("headers", ()), *added]}
            await send(message)

        hosts = [value.decode("latin-1") for name, value in scope.get("headers", ()) if name == b"host"]
        if scope["type"] == "http" and not (len(hosts) == 1 and self._names.allow(hosts[0])):
            refusal = JSONResponse({"error": _REFUSAL}, MISDIRECTED, {"connection": "close"})
            await refusal(scope, receive, guarded)
            return
        await self._app(scope, receive, guarded)
