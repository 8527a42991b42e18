"""How a metric is shown: the topic of its panel, and the figures that people ask of it."""

from __future__ import annotations

from dataclasses import dataclass

CPU, PROCESS_CPU = "CPU", "CPU per process"
MEMORY, PROCESS_MEMORY = "Memory", "Memory per process"
DROPS, QUEUES, SESSIONS = "Drops and errors", "Queue depth", "Sessions"
LATENCY, LOSS, THROUGHPUT = "Latency", "Loss", "Throughput"
MONITOR_LAG, MONITOR_MEMORY, MONITOR_CPU = "How late the monitor was", "Memory of the monitor", "CPU of the monitor"


@dataclass(frozen=True)
class Shown:
    """Where the pages show a metric: under which ``topic``, and at which ``turn``.

    A target may report a topic in several ways: the first turn of which it has readings is drawn, all metrics of that
    turn together. ``usual``: one of the ways that may stand for the topic where little room is.
    """

    topic: str
    turn: int = 1
    usual: bool = False


@dataclass(frozen=True)
class Figures:
    """What people ask of a metric: its ``place`` among the standard figures, the lowest first, and their expressions.

    Without an expression it is the metric by itself.
    """

    place: int
    expressions: tuple[str, ...] = ()
