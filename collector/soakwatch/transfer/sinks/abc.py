"""The interface between the feed of a record (feed.py) and a sink.

A package ``sinks/NAME``, or a module that an entry point of the group ``soakwatch.sinks`` names, has

* a docstring, whose first line ``soakwatch sinks`` shows,
* ``Config``, a subclass of ``soakwatch.plan.sink_plan.SinkConfig`` with the keys that a plan gives it,
* ``destination(config) -> Destination``, which opens nothing yet.

A sink is given lines of InfluxDB's line protocol: readings, polls, phases, events, findings and the verdict, in the
measurements that docs/influxdb-grafana.md lists. Cursor, order, retries, backlog and lag are the feed's. A sink runs in
a process of its own, so it may block; writing the same lines twice must do no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from soakwatch.transfer.sinks.block import Block


@dataclass(frozen=True, slots=True)
class RefusedLine:
    """A line that the sink refuses for good, and why."""

    line: bytes
    reason: str


class SinkUnavailableError(Exception):
    """A write failed and may succeed later. ``after_s`` is the wait that the server asks for, ``slow``: it did not
    answer in time, ``wrong``: somebody must correct the configuration first."""

    def __init__(self, reason: str, after_s: float | None = None, *, slow: bool = False, wrong: bool = False) -> None:
        super().__init__(reason)
        self.after_s, self.slow, self.wrong = after_s, slow, wrong


class Sink(Protocol):
    """An open sink; not thread-safe."""

    @property
    def to(self) -> Destination:
        """Where it writes."""
        ...

    @property
    def written(self) -> int:
        """Number of lines written."""
        ...

    @property
    def refused(self) -> int:
        """Number of lines refused for good."""
        ...

    @property
    def connections(self) -> int:
        """Number of connections made so far. A new one may mean that the server restarted and lost what it acknowledged
        last. A sink without connections returns 1."""
        ...

    @property
    def size(self) -> int:
        """Maximum number of lines in the next block."""
        ...

    def write(self, lines: Block) -> None:
        """Write all lines. After SinkUnavailableError the same lines are given again."""
        ...

    def try_out(self) -> None:
        """Check whether lines would be accepted, without writing any. Raises SinkUnavailableError."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class Recalls(Protocol):
    """A sink whose lines depend on what was sent before it was opened."""

    def recall(self, lines: Iterable[bytes]) -> None:
        """Take note of lines that were sent (``earlier_falls``), and send nothing. Called once, before any write."""
        ...


class Destination(Protocol):
    """Where a sink writes."""

    @property
    def where(self) -> str:
        """The address and what distinguishes it, without secrets: it is displayed, and the cursor is stored under
        it."""
        ...

    @property
    def secrets(self) -> tuple[str, ...]:
        """References (``env:NAME``, ``file:PATH``) that must resolve before a run begins."""
        ...

    @property
    def replay_s(self) -> float:
        """How many seconds before a broken connection are sent again; 0 for none."""
        ...

    @property
    def grain_ns(self) -> int:
        """Sample times are rounded down to multiples of this; 1 keeps them."""
        ...

    def open(self, refuse: Callable[[RefusedLine], None], timeout_s: float | None = None) -> Sink:
        """Open it; ``refuse`` takes each line that is refused for good, ``timeout_s`` limits the wait for an answer.

        Raises PlanError for a configuration that must be corrected first.
        """
        ...
