"""The requests of a session on its connection: a step of a walk, a GET."""

from __future__ import annotations

from dataclasses import dataclass, field

from soakwatch.sources.transport.snmp.abc import ColumnWalk, Connection, Row, Value
from soakwatch.sources.transport.snmp.batches import Batch
from soakwatch.sources.transport.snmp.diagnosis import SYS_UPTIME


@dataclass(slots=True)
class Walk:
    """One column being read; it goes on after its last row if the connection was opened again to the same agent."""

    oid: str
    repetitions: int
    rows: dict[str, Value] = field(default_factory=dict)
    _connection: Connection | None = None
    _iterator: ColumnWalk | None = None

    async def step(self, connection: Connection, share_s: float) -> list[Row] | None:
        """The next rows."""
        if self._iterator is None or not (self._connection is connection or self._iterator.go_on(connection)):
            self._connection, self._iterator = connection, connection.column(self.oid, self.repetitions)
            self.rows.clear()
        self._connection = connection
        return await self._iterator.more(share_s)

    @property
    def inconclusive(self) -> bool:
        """Whether its end may have been an error."""
        return self._iterator is not None and self._iterator.inconclusive

    def take(self, more: list[Row]) -> str | None:
        """Keep some rows; an object that came before is given back."""
        for oid, value in more:
            if oid in self.rows:
                return oid
            self.rows[oid] = value
        return None


@dataclass(frozen=True, slots=True)
class Get:
    """One GET; brings the values, and whether an empty answer is sure to mean that nothing is there.

    Where the error-status is hidden, an empty answer is asked for again together with an object that every agent has.
    """

    batch: Batch

    async def __call__(self, connection: Connection, share_s: float) -> tuple[dict[str, Value], bool]:
        answer = await connection.get(self.batch, share_s)
        if answer or not connection.opaque:
            return answer, True
        return answer, SYS_UPTIME in await connection.get([*self.batch, SYS_UPTIME], share_s)
