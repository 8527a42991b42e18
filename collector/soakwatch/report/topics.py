"""Which metrics the overview shows, topic by topic, as the catalogue names them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from soakwatch.report.heat_cells import How
from soakwatch_model.metric import CATALOGUE, STATE
from soakwatch_model.metric_queries import drop_counters, turns_of
from soakwatch_model.shown import (
    CPU,
    DROPS,
    LATENCY,
    LOSS,
    MEMORY,
    MONITOR_CPU,
    MONITOR_LAG,
    MONITOR_MEMORY,
    PROCESS_CPU,
    PROCESS_MEMORY,
    QUEUES,
    SESSIONS,
    THROUGHPUT,
)


@dataclass(frozen=True, slots=True)
class Topic:
    """One panel. Of its ``choices`` (groups of metrics) the first is drawn of which the target has readings.

    ``how`` says how a heat map sums up a bin. In a ``calm`` topic zero is good news: only series that were ever above
    zero are drawn. ``limit`` names the metric that states the maximum.
    """

    title: str
    choices: tuple[tuple[str, ...], ...]
    how: How = "highest"
    calm: bool = False
    limit: str = ""

    @property
    def metrics(self) -> frozenset[str]:
        """All metrics that it may show."""
        return frozenset(metric for choice in self.choices for metric in choice)


TOPICS = (
    Topic(CPU, turns_of(CPU), how="mean"),
    Topic(PROCESS_CPU, turns_of(PROCESS_CPU), how="mean"),
    Topic(MEMORY, turns_of(MEMORY), limit="system.memory.limit"),
    Topic(PROCESS_MEMORY, turns_of(PROCESS_MEMORY)),
    Topic(DROPS, (drop_counters(),), calm=True),
    Topic(QUEUES, turns_of(QUEUES)),
    Topic(SESSIONS, turns_of(SESSIONS)),
    Topic(LATENCY, turns_of(LATENCY)),
    Topic(LOSS, turns_of(LOSS), calm=True),
    Topic(THROUGHPUT, turns_of(THROUGHPUT)),
    Topic(MONITOR_LAG, turns_of(MONITOR_LAG)),
    Topic(MONITOR_MEMORY, turns_of(MONITOR_MEMORY)),
    Topic(MONITOR_CPU, turns_of(MONITOR_CPU), how="mean"),
)
"""The standard panels in the order of the page; the monitor's own come last."""

_QUIET = frozenset(metric.name for metric in CATALOGUE if metric.kind == STATE)


def further(metrics: Collection[str], most: int) -> tuple[Topic, ...]:
    """Panels for a target that none of the topics fits, such as an imported file: its first metrics by name."""
    return tuple(Topic(name, ((name,),)) for name in sorted(set(metrics) - _QUIET)[:most])
