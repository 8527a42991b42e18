"""Which names a server is asked under. A page of another site whose name was made to lead here (DNS rebinding) asks
under that name, and is refused before anything else is looked at; so nobody sees a redirect that repeats it."""

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
    """The names of a server, in lower case. One that listens on every address is also asked under any IP address, for
    no name can be made to lead to it there."""

    names: frozenset[str]
    every_address: bool

    def allow(self, host: str) -> bool:
        """Whether a request with this Host header is meant for the server; its port does not matter (tunnels).

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
    """The names of a listening socket: its address, those that were ``given``, and those of its certificate (PEM).

    A socket beyond loopback is also asked under the name of this machine.
    """
    address = ipaddress.ip_address(listener.getsockname()[0].partition("%")[0])
    names = {str(address), *given, *_certified(cert)}
    if not address.is_loopback:
        names |= {socket.gethostname(), socket.getfqdn()}
    return Names(frozenset(name.lower() for name in names), address.is_unspecified)


def _certified(cert: str | None) -> set[str]:
    """The names that a certificate is made out for; none where it cannot be read."""
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
    """An application behind its guards: a foreign Host is refused, and every answer gets ``headers`` that it lacks."""

    def __init__(self, app: ASGIApp, names: Names, headers: Mapping[str, str]) -> None:
        self._app, self._names = app, names
        self._headers = [(name.encode(), value.encode()) for name, value in headers.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, as ASGI has it."""

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
