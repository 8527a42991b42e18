"""How a metric is shown: the topic of its panel, and its standard figures."""

from __future__ import annotations

from dataclasses import dataclass

CPU, PROCESS_CPU = "CPU", "CPU per process"
MEMORY, PROCESS_MEMORY = "Memory", "Memory per process"
DROPS, QUEUES, SESSIONS = "Drops and errors", "Queue depth", "Sessions"
LATENCY, LOSS, THROUGHPUT = "Latency", "Loss", "Throughput"
MONITOR_LAG, MONITOR_MEMORY, MONITOR_CPU = "How late the monitor was", "Memory of the monitor", "CPU of the monitor"


@dataclass(frozen=True)
class Shown:
    """Where pages show a metric: under which ``topic``, and at which ``turn``.

    A target may report a topic in several ways: all metrics of the first turn with readings are drawn. ``usual``: it
    may represent the topic where space is short.
    """

    topic: str
    turn: int = 1
    usual: bool = False


@dataclass(frozen=True)
class Figures:
    """A metric's standard figures: its ``place`` among all (lowest first), and their expressions.

    Without an expression it is the metric itself.
    """

    place: int
    expressions: tuple[str, ...] = ()
