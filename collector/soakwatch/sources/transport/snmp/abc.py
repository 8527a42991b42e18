"""Interfaces to an SNMP library: one agent, one request at a time, values as the profiles read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

Value = int | float | bytes | str
"""All whole numbers are int, OCTET STRING and Opaque are bytes, OBJECT IDENTIFIER and IpAddress are text; float is for
the rare agent that sends an ASN.1 REAL."""
Row = tuple[str, Value]


@dataclass(slots=True)
class Counters:
    """What a session did so far: requests sent, those without an answer, answers after their time, answers
    that came again, bad datagrams, connections opened."""

    requests: int = 0
    unanswered: int = 0
    late: int = 0
    twice: int = 0
    malformed: int = 0
    rebuilt: int = 0


class ColumnWalk(Protocol):
    """A walk over the rows below one object, one answer at a time; a step that failed may be tried again."""

    async def more(self, timeout_s: float) -> list[Row] | None:
        """The next rows, or None at the end. Raises SnmpPollError."""
        ...

    def go_on(self, connection: Connection) -> bool:
        """Whether it can go on after its last row on this connection, which it does from now on if it can."""
        ...

    @property
    def inconclusive(self) -> bool:
        """True if it ended with an answer that may have been an error (see ``Line.opaque``)."""
        ...


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

    def column(self, oid: str, repetitions: int) -> ColumnWalk:
        """The rows below an object; ``repetitions`` are asked for at once where the version can."""
        ...

    async def refresh(self, timeout_s: float) -> None:
        """Learn engine ID, boots and time (SNMPv3; nothing in other versions). Raises SnmpPollError."""
        ...

    def close(self) -> None:
        """Closes the socket."""
        ...
