"""One source at a place that it may share with others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from soakwatch.sources.receivers.claim import SenderFilter
from soakwatch.sources.receivers.desk import Arrived, MessageQueue


@dataclass(slots=True, eq=False)
class Member:
    """Whose messages a source takes, and the desk that they are put on; times are those of its own clock."""

    target: str
    claim: SenderFilter
    desk: MessageQueue
    now_ns: Callable[[], int]
    connections: int = 64

    def put(self, address: str, port: int, data: bytes) -> None:
        """Put down one message."""
        self.desk.put(Arrived(self.now_ns(), address, port, data))
