"""Limits connections so that a few idle strangers cannot lock out clients with a token.

A connection occupies a place until it ends. If all are occupied, a new one replaces one that has not shown a token: of
the address with most of those, the oldest. A connection that showed a token is never replaced.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterable
from http import HTTPStatus

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from soakwatch.web.auth import GUARDS
from soakwatch.web.endpoint import PROVED

MAX_CONNECTIONS = 128
MAX_HEAD_BYTES = 16 * 1024
HEAD_S = 5.0
"""Maximum duration of a TLS handshake, and then of receiving the first request's head."""
CHECK_EVERY_S = 15.0
_MAX_CHECKS_WHILE_BUSY = 4  # an answer that is not fetched for this many checks is dropped


class Connection(H11Protocol):
    """Closes a connection whose request head is late or too large, or that is idle.

    uvicorn alone waits for ever for the end of a request's head, and for a client that does not read.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        self.proved, self.since_s = False, time.monotonic()
        if len(self.connections) >= MAX_CONNECTIONS and not _make_room(self.connections):
            self.transport = transport
            transport.abort()
            return
        super().connection_made(transport)
        self.app_state = {**self.app_state, PROVED: self._prove}
        self._seen: object = self.cycle
        self._idle_checks = 0
        self._next = self.loop.call_later(HEAD_S, self._check_head)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.flow is not None:  # a connection that was accepted
            self._next.cancel()
            super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's words are not a sentence
        """Refuse what is not HTTP, or has too large a head."""
        unread, _ = self.conn.trailing_data
        status, words = HTTPStatus.BAD_REQUEST, "this is no HTTP request"
        if len(unread) >= MAX_HEAD_BYTES:
            status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            words = f"the head of the request is larger than {MAX_HEAD_BYTES // 1024} KiB"
        body = json.dumps({"error": words})
        fields = {**GUARDS, "content-type": "application/json", "content-length": f"{len(body)}", "connection": "close"}
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self.transport.write(f"HTTP/1.1 {status.value} {status.phrase}\r\n{head}\r\n{body}".encode())
        self.transport.close()

    @property
    def is_busy(self) -> bool:
        """Whether one of its requests is being answered."""
        cycle: object = self.cycle  # None before the first request, whatever its type says
        return isinstance(cycle, RequestResponseCycle) and not cycle.response_complete

    def _prove(self) -> None:
        self.proved = True

    def _check_head(self) -> None:
        if self.cycle is None:
            self.transport.abort()
            return
        self._seen = self.cycle
        self._next = self.loop.call_later(CHECK_EVERY_S, self._check)

    def _check(self) -> None:
        self._idle_checks = self._idle_checks + 1 if self.cycle is self._seen else 0
        if self._idle_checks > (_MAX_CHECKS_WHILE_BUSY if self.is_busy else 0):
            self.transport.abort()
            return
        self._seen = self.cycle
        self._next = self.loop.call_later(CHECK_EVERY_S, self._check)


class Loop(asyncio.SelectorEventLoop):
    """An event loop with a short TLS handshake timeout: asyncio's is a minute."""

    async def create_server(self, *args: object, **options: object) -> asyncio.Server:
        """As asyncio's, with a handshake timeout of ``HEAD_S``."""
        if options.get("ssl") is not None:
            options["ssl_handshake_timeout"] = HEAD_S
        return await super().create_server(*args, **options)  # type: ignore[call-overload,no-any-return]


def _make_room(connections: Iterable[asyncio.Protocol]) -> bool:
    """Close the oldest connection without a token, of the address with most of them; False if there is none."""
    strangers = [one for one in connections if isinstance(one, Connection) and not one.proved and not one.is_busy]
    if not strangers:
        return False
    held = Counter(_address(one) for one in strangers)
    victim = max(strangers, key=lambda one: (held[_address(one)], -one.since_s))
    victim.transport.abort()
    victim.connections.discard(victim)  # asyncio calls connection_lost a little later
    return True


def _address(connection: Connection) -> str:
    return connection.client[0] if connection.client else ""
