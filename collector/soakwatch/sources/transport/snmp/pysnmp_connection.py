"""SNMP over pysnmp: the second engine. It knows contexts and reports every error; it costs 20 to 60 times the CPU."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence

from pyasn1.type import univ
from pysnmp.error import PySnmpError
from pysnmp.hlapi.v3arch import asyncio as hlapi
from pysnmp.proto import errind, rfc1902, rfc1905
from pysnmp.proto.error import ProtocolError

from soakwatch.sources.transport.snmp.engines import AUTH, PRIV, engines, key_of
from soakwatch.sources.transport.snmp.snmp_access import Access
from soakwatch.sources.transport.snmp.snmp_connection import Counters, Row, Value, Walk
from soakwatch.sources.transport.snmp.snmp_errors import FailureKind, SnmpPollError, refused

_INDICATIONS: tuple[tuple[type[errind.ErrorIndication], FailureKind], ...] = (
    (errind.UnknownUserName, FailureKind.USER),
    (errind.UnknownSecurityName, FailureKind.USER),
    (errind.WrongDigest, FailureKind.AUTH_KEY),
    (errind.AuthenticationFailure, FailureKind.AUTH_KEY),
    (errind.DecryptionError, FailureKind.PRIV_KEY),
    (errind.UnsupportedSecurityLevel, FailureKind.LEVEL),
    (errind.NotInTimeWindow, FailureKind.TIME_WINDOW),
    (errind.UnknownEngineID, FailureKind.ENGINE_ID),
)
_BUSY_S = 0.01  # as in gufo_connection
_MISSING = (rfc1905.NoSuchObject, rfc1905.NoSuchInstance, rfc1905.EndOfMibView)


class PysnmpConnection:
    """One agent asked through a shared engine; made by ``open_pysnmp``."""

    def __init__(
        self,
        access: Access,
        target: hlapi.UdpTransportTarget | hlapi.Udp6TransportTarget,
        key: Hashable,
        counters: Counters,
        engine_id: bytes,
    ) -> None:
        self.where, self._target, self._key, self._counters = access.where, target, key, counters
        self._v1 = access.version == "1"
        self._as = _credentials(access)
        self._context = hlapi.ContextData(contextName=access.context.encode())
        self._engines = engines()
        self._engine = self._engines.take(key)
        self.engine_id = engine_id
        self.opaque = False  # pysnmp tells every error-status
        self._closed = False

    async def get(self, oids: Sequence[str], timeout_s: float) -> dict[str, Value]:
        """One GET; objects that the agent does not have are absent."""
        wanted = list(oids)
        rows = await self._ask(lambda: self._command(hlapi.get_cmd, wanted), timeout_s)
        asked = set(wanted)
        return {oid: value for oid, value in rows if oid in asked and value is not None}

    async def more(self, walk: Walk, timeout_s: float) -> list[Row]:
        """The next rows."""
        rows: list[Row] = []
        for name, value in await self.following(walk.last, walk.repetitions, timeout_s):
            if value is None or not name.startswith(walk.oid + "."):
                walk.over = True
                break
            rows.append((name, value))
        walk.over = walk.over or not rows
        return rows

    async def refresh(self, timeout_s: float) -> None:
        """Nothing: pysnmp keeps the agent's clock itself."""

    def close(self) -> None:
        """Give the engine back."""
        if not self._closed:
            self._closed = True
            self._engines.give_back(self._key)

    async def following(self, oid: str, repetitions: int, timeout_s: float) -> list[tuple[str, Value | None]]:
        """What comes after an object, by GETBULK or (v1) GETNEXT."""
        return await self._ask(lambda: self._following(oid, repetitions), timeout_s)

    async def _following(self, oid: str, repetitions: int) -> _Answer:
        if not self._v1:
            return await self._command(hlapi.bulk_cmd, [oid], 0, repetitions)
        failure, status, index, rows = await self._command(hlapi.next_cmd, [oid])
        return (failure, 0, 0, []) if status == 2 else (failure, status, index, rows)  # noSuchName ends a v1 table

    async def _command(self, command: Callable[..., Awaitable[_Answer]], oids: list[str], *numbers: int) -> _Answer:
        binds = [hlapi.ObjectType(hlapi.ObjectIdentity(oid)) for oid in oids]
        return await command(self._engine, self._as, self._target, self._context, *numbers, *binds, lookupMib=False)

    async def _ask(self, command: Callable[[], Awaitable[_Answer]], timeout_s: float) -> list[tuple[str, Value | None]]:
        self._counters.requests += 1
        try:
            failure, status, index, rows = await _within(timeout_s, command())
        except TimeoutError:
            self._counters.unanswered += 1
            raise SnmpPollError(FailureKind.NO_ANSWER, self.where, seconds=timeout_s) from None
        except (PySnmpError, ProtocolError) as error:
            raise SnmpPollError(FailureKind.MALFORMED, self.where, detail=type(error).__name__) from None
        if failure is not None and failure:
            raise self._failure_of(failure, timeout_s)
        if int(status):
            raise refused(self.where, int(status), int(index))
        return [(str(name), _value(value)) for name, value in rows]

    def _failure_of(self, failure: errind.ErrorIndication, timeout_s: float) -> SnmpPollError:
        if isinstance(failure, errind.RequestTimedOut):
            self._counters.unanswered += 1
            return SnmpPollError(FailureKind.NO_ANSWER, self.where, seconds=timeout_s)
        for kind in (kind for cls, kind in _INDICATIONS if isinstance(failure, cls)):
            return SnmpPollError(kind, self.where)
        return SnmpPollError(FailureKind.MALFORMED, self.where, detail=str(failure)[:80])


async def _within(timeout_s: float, command: Awaitable[_Answer]) -> _Answer:
    """The answer. Raises TimeoutError after the time, and as much more as this process was too busy to see it."""
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(command)
    try:
        end_s = loop.time() + timeout_s
        done, _ = await asyncio.wait((task,), timeout=timeout_s)
        if not done and (late_s := loop.time() - end_s) > _BUSY_S:
            done, _ = await asyncio.wait((task,), timeout=min(late_s, timeout_s))
        if not done:
            raise TimeoutError
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def open_pysnmp(
    access: Access, timeout_s: float, counters: Counters, engine_id: bytes, *, changed: bool
) -> PysnmpConnection:
    """A line through the shared engine, or through one of its own if the agent's engine ID has ``changed``.

    No request on it waits longer than ``timeout_s``.
    """
    kind = hlapi.Udp6TransportTarget if ":" in access.address else hlapi.UdpTransportTarget
    try:
        target = await kind.create((access.address, access.port), timeout=timeout_s, retries=0)
    except PySnmpError:
        raise SnmpPollError(FailureKind.ADDRESS, access.where, detail="no numeric address") from None
    return PysnmpConnection(access, target, key_of(access, engine_id if changed else None), counters, engine_id)


def _credentials(access: Access) -> hlapi.CommunityData | hlapi.UsmUserData:
    if access.version != "3":
        return hlapi.CommunityData(access.community, mpModel=0 if access.version == "1" else 1)
    return hlapi.UsmUserData(
        access.user,
        access.auth or None,
        access.priv or None,
        authProtocol=AUTH[access.auth_protocol] if access.auth else None,
        privProtocol=PRIV[access.priv_protocol] if access.priv else None,
    )


def _value(value: object) -> Value | None:
    """The value as gufo-snmp gives it; None for what the agent does not have."""
    if isinstance(value, _MISSING) or value is None or isinstance(value, rfc1905.UnSpecified):
        return None
    if isinstance(value, rfc1902.IpAddress):
        return ".".join(str(byte) for byte in bytes(value))
    if isinstance(value, univ.ObjectIdentifier):
        return str(value)
    if isinstance(value, univ.OctetString):
        return bytes(value)
    try:
        return int(value)  # type: ignore[call-overload, no-any-return]
    except (TypeError, ValueError):
        return None


_Answer = tuple[errind.ErrorIndication | None, int, int, Sequence[tuple[object, object]]]
