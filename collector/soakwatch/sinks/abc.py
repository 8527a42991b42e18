"""The seam between the feed of a record (feed.py) and a sink: what a sink is given, and what it may answer.

A package ``sinks/NAME``, or a module that an entry point of the group ``soakwatch.sinks`` names, holds

* its docstring, whose first line is shown by ``soakwatch sinks``,
* ``Config``, a subclass of ``soakwatch.plan.sink.SinkConfig`` with the keys that a plan gives it,
* ``destination(config) -> Destination``: where that is; nothing is opened yet.

A sink is given lines of InfluxDB's line protocol: readings, polls, phases, events, findings and the verdict, in the
measurements that docs/influxdb-grafana.md lists. The cursor, the order, retries, backlog and lag are the feed's. A
sink runs in a process of its own, so it may block; it must take the same lines again without harm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from soakwatch.sinks.block import Block


@dataclass(frozen=True, slots=True)
class RefusedLine:
    """A line that the sink will never take, and why."""

    line: bytes
    reason: str


class SinkUnavailableError(Exception):
    """A write did not work now and may work later. ``after_s`` is what the server asks to wait, if it does, ``slow``
    that it did not answer in time, and ``wrong`` that somebody has to correct the configuration first."""

    def __init__(self, reason: str, after_s: float | None = None, *, slow: bool = False, wrong: bool = False) -> None:
        super().__init__(reason)
        self.after_s, self.slow, self.wrong = after_s, slow, wrong


class Sink(Protocol):
    """An open sink; not for two threads at once."""

    @property
    def to(self) -> Destination:
        """Where it writes."""
        ...

    @property
    def written(self) -> int:
        """Lines that were written."""
        ...

    @property
    def refused(self) -> int:
        """Lines that were refused for good."""
        ...

    @property
    def connections(self) -> int:
        """How many connections were made until now: another one may mean that the server was started again, and lost
        what it had acknowledged last. A sink without connections says 1."""
        ...

    @property
    def size(self) -> int:
        """At most how many lines the next block should have."""
        ...

    def write(self, lines: Block) -> None:
        """Write all lines. Raises SinkUnavailableError: the same lines are given again."""
        ...

    def try_out(self) -> None:
        """Check whether lines would be taken, without writing one. Raises SinkUnavailableError."""
        ...

    def close(self) -> None:
        """Release what is open."""
        ...


class Destination(Protocol):
    """Where a sink writes."""

    @property
    def where(self) -> str:
        """The address, and what else tells it from others, without a secret: it is shown, and names the cursor."""
        ...

    @property
    def secrets(self) -> tuple[str, ...]:
        """References (``env:NAME``, ``file:PATH``) that must be there before a run begins."""
        ...

    @property
    def replay_s(self) -> float:
        """How many seconds before a broken connection are sent again; 0: none."""
        ...

    @property
    def grain_ns(self) -> int:
        """What the times of samples are cut to; 1: nothing is cut."""
        ...

    def open(self, refuse: Callable[[RefusedLine], None], timeout_s: float | None = None) -> Sink:
        """Open it; ``refuse`` takes each line that is refused for good, ``timeout_s`` bounds an answer.

        Raises PlanError for what must be corrected first.
        """
        ...
