"""Interface to an SNMP library: one agent, one request at a time, values as the profiles read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from gufo.snmp._fast import GetIter

SYS_UPTIME = "1.3.6.1.2.1.1.3.0"
"""An object that every agent has."""
Value = int | float | bytes | str
"""All whole numbers are int, OCTET STRING and Opaque are bytes, OBJECT IDENTIFIER and IpAddress are text; float is for
the rare agent that sends an ASN.1 REAL."""
Row = tuple[str, Value]


@dataclass(slots=True)
class Counters:
    """What a session did so far: requests sent, those without an answer, answers after their time, bad datagrams."""

    requests: int = 0
    unanswered: int = 0
    late: int = 0
    malformed: int = 0


class Connection(Protocol):
    """A connection to one agent. Not safe for concurrent use: its session holds a lock."""

    @property
    def engine_id(self) -> bytes:
        """The SNMPv3 engine ID that was discovered; empty in other versions."""
        ...

    @property
    def opaque(self) -> bool:
        """True where the library hides error-status: an answer without objects may then be an error."""
        ...

    async def get(self, oids: Sequence[str], timeout_s: float) -> dict[str, Value]:
        """One GET; objects that the agent does not have are absent. Raises SnmpPollError."""
        ...

    async def more(self, walk: Walk, timeout_s: float) -> list[Row]:
        """The next rows of a walk, by one GETBULK (v1: GETNEXT); says in ``walk`` if they are the last.

        Raises SnmpPollError; the step may be tried again then.
        """
        ...

    async def refresh(self, timeout_s: float) -> None:
        """Learn engine ID, boots and time (SNMPv3; nothing in other versions). Raises SnmpPollError."""
        ...

    def close(self) -> None:
        """Closes the socket."""
        ...


@dataclass(slots=True)
class Walk:
    """One column being read, ``repetitions`` rows at a time.

    It goes on after its last row where the connection was opened again to the same agent, and begins anew at another.
    """

    oid: str
    repetitions: int
    rows: dict[str, Value] = field(default_factory=dict)
    over: bool = False
    inconclusive: bool = False  # it ended with an answer that may have been an error (``Connection.opaque``)
    place: GetIter | None = None  # where gufo-snmp stands in it
    _begun: tuple[type, bytes] | None = None  # the library and the agent's engine ID

    @property
    def last(self) -> str:
        """The object after which it goes on."""
        return next(reversed(self.rows), self.oid)

    async def step(self, connection: Connection, timeout_s: float) -> list[Row]:
        """The next rows. Raises SnmpPollError."""
        begun = (type(connection), connection.engine_id)
        if begun != self._begun:
            self._begun, self.place = begun, None
            self.rows.clear()
        return await connection.more(self, timeout_s)

    def take(self, more: list[Row]) -> str | None:
        """Keep some rows; an object that came before is given back."""
        for oid, value in more:
            if oid in self.rows:
                return oid
            self.rows[oid] = value
        return None


async def get(batch: Sequence[str], connection: Connection, timeout_s: float) -> tuple[dict[str, Value], bool]:
    """One GET; brings the values, and whether an empty answer is sure to mean that nothing is there.

    Where the error-status is hidden, an empty answer is asked for again together with an object that every agent has.
    """
    answer = await connection.get(batch, timeout_s)
    if answer or not connection.opaque:
        return answer, True
    return answer, SYS_UPTIME in await connection.get([*batch, SYS_UPTIME], timeout_s)
