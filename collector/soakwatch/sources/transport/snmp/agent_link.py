"""The connections to one agent, and which of the two libraries opens them.

``engine`` of the plan opens the connection for everything. Beside gufo-snmp there is one of pysnmp, once something is
to be read that gufo-snmp cannot: answers of more than 4080 bytes, and errors that encryption hides from it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from soakwatch.sources.transport.snmp.snmp_access import Access, resolve
from soakwatch.sources.transport.snmp.snmp_connection import Connection, Counters
from soakwatch.sources.transport.snmp.snmp_errors import FailureKind, SnmpPollError

if TYPE_CHECKING:
    from soakwatch.sources.transport.snmp.pysnmp_connection import PysnmpConnection

STALE_S = 120.0  # the time window is 150 s (RFC 3414 section 2.2.3)
_RESYNC = frozenset({FailureKind.TIME_WINDOW, FailureKind.ENGINE_ID, FailureKind.AUTH_KEY})
_MAX_CHANGES = 8


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """How to ask: ``share_s`` is the longest wait for one answer.

    A request takes ``retries`` + 1 times that at most; where answers are known to come sooner it is repeated sooner and
    more often within that time.
    """

    engine: Literal["gufo", "pysnmp"] = "gufo"
    share_s: float = 1.0
    retries: int = 1
    repetitions: int = 20
    objects: int = 40


@dataclass(slots=True)
class AgentLink:
    """The connections, opened when they are needed, and whether the agent answers on them."""

    access: Access
    options: SessionOptions
    counters: Counters = field(default_factory=Counters)
    answered_at: float | None = None
    streak: int = 0  # requests in a row that were not answered
    engine_id: bytes = b""
    engine_changes: deque[tuple[bytes, bytes]] = field(default_factory=lambda: deque(maxlen=_MAX_CHANGES))
    _replaced: bool = False  # the agent's engine ID is not the first any more
    _first: Connection | None = None
    _second: PysnmpConnection | None = None
    _numeric: Access | None = None

    async def ready(self, share_s: float, now_s: float, *, second: bool = False) -> Connection:
        """A connection, with what it knows of the agent's clock fresh enough (RFC 3414 section 2.2.3)."""
        if second:
            return await self.second(share_s)
        if self._first is None:
            self._first = await self._open(share_s)
        elif self.access.version == "3" and self.answered_at is not None and now_s - self.answered_at > STALE_S:
            await self._first.refresh(share_s)
        return self._first

    async def second(self, share_s: float) -> PysnmpConnection:
        """The connection of pysnmp beside that of gufo-snmp, for what only pysnmp can read."""
        if self._second is None:
            self._second = await self._open_pysnmp(await self.numeric(share_s))
        return self._second

    async def _open(self, share_s: float) -> Connection:
        from soakwatch.sources.transport.snmp.gufo_connection import discover, open_gufo

        access = await self.numeric(share_s)
        if self.options.engine == "gufo":
            connection = await open_gufo(access, share_s, self.counters)
            self._seen(connection.engine_id)
            return connection
        if access.version == "3":
            self._seen(await discover(access, share_s))
        return await self._open_pysnmp(access)

    async def _open_pysnmp(self, access: Access) -> PysnmpConnection:
        from soakwatch.sources.transport.snmp.pysnmp_connection import open_pysnmp

        return await open_pysnmp(access, self.options.share_s, self.counters, self.engine_id, changed=self._replaced)

    def _seen(self, engine_id: bytes) -> None:
        if self.engine_id and engine_id and engine_id != self.engine_id:
            self.engine_changes.append((self.engine_id, engine_id))
            self._replaced = True
        self.engine_id = engine_id or self.engine_id

    async def numeric(self, timeout_s: float) -> Access:
        """The access with a numeric address; a name is looked up again whenever the line is opened after a failure."""
        if self._numeric is None:
            self._numeric = replace(self.access, address=await resolve(self.access, timeout_s))
        return self._numeric

    def answered(self, now_s: float) -> None:
        """The agent answered a request."""
        self.answered_at, self.streak = now_s, 0

    def failed(self, failure: SnmpPollError) -> None:
        """A request failed; the connections are opened anew where that may help."""
        if failure.kind in {FailureKind.NO_ANSWER, FailureKind.REFUSED, FailureKind.ADDRESS}:
            self.streak += 1
        if failure.kind in _RESYNC or (
            failure.kind is not FailureKind.NO_ANSWER and self.streak and self.streak % 2 == 0
        ):
            self.drop()

    def drop(self) -> None:
        """Closes the connections."""
        for connection in (self._first, self._second):
            if connection is not None:
                connection.close()
        self._first = self._second = None
        self._numeric = None
