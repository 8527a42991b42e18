"""What a session does with its line while it holds it: a step of a walk, a GET."""

from __future__ import annotations

from dataclasses import dataclass, field

from soakwatch.sources.transport.snmp.abc import Column, Line, Row, Value
from soakwatch.sources.transport.snmp.batches import Batch
from soakwatch.sources.transport.snmp.diagnosis import SYS_UPTIME


@dataclass(slots=True)
class Walk:
    """One column being read; it begins anew if the line was opened anew."""

    oid: str
    repetitions: int
    rows: dict[str, Value] = field(default_factory=dict)
    _line: Line | None = None
    _place: Column | None = None

    async def step(self, line: Line, share_s: float) -> list[Row] | None:
        """The next rows."""
        if self._place is None or self._line is not line:
            self._line, self._place = line, line.column(self.oid, self.repetitions)
            self.rows.clear()
        return await self._place.more(share_s)

    @property
    def doubtful(self) -> bool:
        """Whether its end may have been an error."""
        return self._place is not None and self._place.doubtful

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

    async def __call__(self, line: Line, share_s: float) -> tuple[dict[str, Value], bool]:
        answer = await line.get(self.batch, share_s)
        if answer or not line.opaque:
            return answer, True
        return answer, SYS_UPTIME in await line.get([*self.batch, SYS_UPTIME], share_s)
