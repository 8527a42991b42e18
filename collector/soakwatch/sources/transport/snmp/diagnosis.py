"""Why does an agent not answer? A few plain requests of our own, made once when polls begin to fail.

SNMP agents drop what they do not accept without a word (RFC 1157 section 4.1, RFC 3414 section 3.2), so a lost poll
says nothing. A closed port, an SNMPv3 discovery and a request without privacy tell the causes apart. They do not tell
a community that is wrong from one that may not read from this address.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from typing import cast

from soakwatch.sources.transport.snmp import ber
from soakwatch.sources.transport.snmp.access import Access
from soakwatch.sources.transport.snmp.errors import REPORTS, Kind, SnmpPollError, refused
from soakwatch.sources.transport.snmp.message import (
    REPORT,
    Engine,
    Message,
    community_message,
    localised_key,
    parse_message,
    request,
    user_message,
)

SYS_UPTIME = "1.3.6.1.2.1.1.3.0"
_NOBODY = Engine(b"", 0, 0)
_AFTER_DISCOVERY_S = 0.15  # an agent that answered a discovery needs no longer than this for a GET, beside its way
_AFTER_NONSENSE_S = 0.3
_MAX_WAITING = 64  # datagrams that are kept unread


async def discover(access: Access, timeout_s: float) -> Engine | None:
    """The agent's SNMPv3 engine by an unauthenticated discovery (RFC 3414 section 4); None if nothing answers.

    Raises SnmpPollError if the port is closed, or the answer is not SNMP.
    """
    async with asyncio.timeout(timeout_s + 1), _Socket.open(access) as endpoint:
        message = await endpoint.ask(_discovery(endpoint.number), timeout_s)
    return message.engine if message is not None else None


async def diagnose(access: Access, timeout_s: float, timeout_limit_s: float) -> SnmpPollError:
    """What is wrong with this access. ``timeout_limit_s`` is how long a poll's request waits: later is too late."""
    try:
        if access.version == "3":
            return await _diagnose_user(access, timeout_s, timeout_limit_s)
        return await _diagnose_community(access, timeout_s, timeout_limit_s)
    except SnmpPollError as failure:
        return failure


async def _diagnose_community(access: Access, timeout_s: float, timeout_limit_s: float) -> SnmpPollError:
    version = 0 if access.version == "1" else 1
    began = time.monotonic()
    async with _Socket.open(access) as endpoint, _Socket.open(access) as other:
        asked = asyncio.create_task(
            endpoint.ask(
                community_message(version, access.community, request((SYS_UPTIME,), endpoint.number)), timeout_s
            )
        )
        seen = asyncio.create_task(other.ask(_discovery(other.number), timeout_s))
        try:
            await asyncio.wait((asked, seen), return_when=asyncio.FIRST_COMPLETED)
            if not asked.done() and seen.exception() is None and seen.result() is not None:
                await asyncio.wait((asked,), timeout=_AFTER_DISCOVERY_S + 2 * (time.monotonic() - began))
            if asked.done() or seen.exception() is not None or seen.result() is None:
                message = await asked
                if message is not None:
                    return _answered(access, message, time.monotonic() - began, timeout_limit_s)
            if await seen is not None:
                return SnmpPollError(Kind.COMMUNITY, access.where)
        finally:
            for task in (asked, seen):
                task.cancel()
            await asyncio.gather(asked, seen, return_exceptions=True)
    return SnmpPollError(Kind.SILENT, access.where)


async def _diagnose_user(access: Access, timeout_s: float, timeout_limit_s: float) -> SnmpPollError:
    engine = await discover(access, timeout_s)
    if engine is None:
        return SnmpPollError(Kind.SILENT, access.where)
    key = await asyncio.to_thread(_key, access, engine)
    for _ in range(2):
        began = time.monotonic()
        async with _Socket.open(access) as endpoint:
            pdu = request((SYS_UPTIME,), endpoint.number)
            message = await endpoint.ask(
                user_message(endpoint.number, engine, access.user, pdu, key, access.auth_protocol), timeout_s
            )
        if message is None or message.pdu is None:
            return SnmpPollError(Kind.NO_ANSWER, access.where, seconds=timeout_s)
        if message.pdu.tag != REPORT:
            if access.priv:
                return SnmpPollError(Kind.PRIV_KEY, access.where)
            return _answered(access, message, time.monotonic() - began, timeout_limit_s)
        kind = REPORTS.get(message.pdu.binds[0][0]) if message.pdu.binds else None
        if kind is Kind.TIME_WINDOW and message.engine is not None:
            engine = message.engine  # a discovery need not tell the time: now we know it
            continue
        return SnmpPollError(kind or Kind.STATUS, access.where, detail="an unknown report")
    return SnmpPollError(Kind.TIME_WINDOW, access.where)


def _answered(access: Access, message: Message, took_s: float, timeout_limit_s: float) -> SnmpPollError:
    if message.pdu is not None and message.pdu.status:
        return refused(access.where, message.pdu.status, message.pdu.index)
    if took_s > timeout_limit_s:
        return SnmpPollError(Kind.LATE, access.where, detail=f"{took_s:.2g} s")
    return SnmpPollError(Kind.FLAKY, access.where)


def _key(access: Access, engine: Engine) -> bytes:
    return localised_key(access.auth_protocol, access.auth, engine.engine_id) if access.auth else b""


def _discovery(number: int) -> bytes:
    return user_message(number, _NOBODY, "", request((), number))


class _Socket(asyncio.DatagramProtocol):
    """One connected UDP socket that waits for the answer to its number."""

    def __init__(self, where: str) -> None:
        self.number = secrets.randbelow(2**31 - 2) + 1
        self._where = where
        self._heard: asyncio.Queue[bytes | OSError] = asyncio.Queue(_MAX_WAITING)
        self._transport: asyncio.DatagramTransport | None = None

    @classmethod
    def open(cls, access: Access) -> _Open:
        """A socket to an agent, for ``async with``."""
        return _Open(cls(access.where), access)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keeps the socket's transport."""
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:  # noqa: ARG002
        """Keeps a datagram; too many are dropped."""
        if not self._heard.full():
            self._heard.put_nowait(data)

    def error_received(self, exc: Exception) -> None:
        """The kernel reports that the peer cannot be reached."""
        if isinstance(exc, OSError) and not self._heard.full():
            self._heard.put_nowait(exc)

    def close(self) -> None:
        """Closes the socket."""
        if self._transport is not None:
            self._transport.close()

    async def ask(self, datagram: bytes, timeout_s: float) -> Message | None:
        """Send, and wait for the answer with our number; None if none came."""
        assert self._transport is not None
        self._transport.sendto(datagram)
        loop = asyncio.get_running_loop()
        bad = ""
        try:
            async with asyncio.timeout(timeout_s) as limit:
                while True:
                    data = await self._heard.get()
                    if isinstance(data, ConnectionRefusedError):
                        raise SnmpPollError(Kind.REFUSED, self._where)
                    if isinstance(data, OSError):
                        raise SnmpPollError(Kind.ADDRESS, self._where, detail=data.strerror or "unreachable")
                    try:
                        message = parse_message(data)
                    except ber.MalformedError as error:
                        if not bad:  # what answers nonsense at once will hardly answer well much later
                            limit.reschedule(min(limit.when() or 0.0, loop.time() + _AFTER_NONSENSE_S))
                        bad = str(error)
                        continue
                    if message.message_id == self.number:
                        return message
        except TimeoutError:
            if bad:
                raise SnmpPollError(Kind.MALFORMED, self._where, detail=bad) from None
            return None


class _Open:
    """Opens and closes the socket of an endpoint."""

    def __init__(self, endpoint: _Socket, access: Access) -> None:
        self._ear, self._access = endpoint, access

    async def __aenter__(self) -> _Socket:
        loop = asyncio.get_running_loop()
        try:
            await loop.create_datagram_endpoint(
                lambda: self._ear, remote_addr=(self._access.address, self._access.port)
            )
        except OSError as error:
            detail = error.strerror or "it cannot be reached"
            raise SnmpPollError(Kind.ADDRESS, self._access.where, detail=detail) from None
        return self._ear

    async def __aexit__(self, *_: object) -> None:
        self._ear.close()
