"""What is due in a look: the slow files, programs and checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from soakwatch.sources.transport.ssh.asks import Asked
from soakwatch_agent.context import Periodic


@dataclass
class Turns:
    """Periods are those of the probes that read the files (see soakwatch_agent.probes): they must not lag behind."""

    slow: Periodic = field(default_factory=lambda: Periodic(10))
    cores: Periodic = field(default_factory=lambda: Periodic(2))
    limits: Periodic = field(default_factory=lambda: Periodic(60))
    faces: Periodic = field(default_factory=lambda: Periodic(60))
    clock: Periodic = field(default_factory=lambda: Periodic(60))
    asks: dict[str, Periodic] = field(default_factory=dict)

    def due_asks(self, asked: Sequence[Asked], present: frozenset[str], now_ns: int) -> tuple[Asked, ...]:
        """The programs that are asked now."""
        return tuple(
            each
            for each in asked
            if each.name in present and self.asks.setdefault(each.name, Periodic(each.ask.every_s)).due(now_ns)
        )
