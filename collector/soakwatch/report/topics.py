"""Which metrics the overview shows, topic by topic, as the catalogue names them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from soakwatch.report.heat_cells import How
from soakwatch_model.metric import CATALOGUE, COUNTER, STATE, UP

_LOST = frozenset({"{packet}", "{datagram}", "{segment}", "{error}"})
_OWN = ("monitor.", "source.", "load.", "reach.", "recorder.")


@dataclass(frozen=True, slots=True)
class Topic:
    """One panel: the first of ``choices`` of which the target has readings is drawn, all its metrics together.

    ``how`` says what a heat map shows of each bin; of a topic that is ``calm`` (zero is good news) only what was ever
    above zero is drawn. ``limit`` names the metric that states the most there can be.
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


DROPS = tuple(
    metric.name
    for metric in CATALOGUE
    if metric.kind == COUNTER and metric.growth == UP and metric.unit in _LOST and not metric.name.startswith(_OWN)
)
"""Counters of what was lost or damaged on its way through a target: all that may only grow for the worse."""

TOPICS = (
    Topic(
        "CPU",
        (
            ("system.cpu.utilization", "system.cpu.core.utilization"),
            ("system.cpu.module.utilization",),
            ("system.cpu.module.average",),
            ("load.cpu.utilization",),
        ),
        how="mean",
    ),
    Topic("CPU per process", (("process.cpu.utilization",),), how="mean"),
    Topic(
        "Memory",
        (
            ("system.memory.usage",),
            ("system.memory.utilization",),
            ("system.memory.pool.usage",),
            ("system.memory.pool.utilization",),
        ),
        limit="system.memory.limit",
    ),
    Topic("Memory per process", (("process.memory.usage",), ("process.memory.pss",))),
    Topic("Drops and errors", (DROPS,), calm=True),
    Topic("Queue depth", (("queue.depth",), ("queue.usage",))),
    Topic("Sessions", (("system.sessions",), ("system.conntrack.count",), ("system.sessions.utilization",))),
    Topic("Latency", (("load.latency",), ("load.flow.latency",), ("reach.round_trip",))),
    Topic(
        "Loss",
        (
            ("load.loss",),
            ("load.failure.rate",),
            ("load.failures",),
            ("load.lost.packets",),
            ("load.flow.loss",),
            ("reach.lost",),
        ),
        calm=True,
    ),
    Topic(
        "Throughput",
        (
            ("load.tx.bit.rate", "load.rx.bit.rate"),
            ("load.tx.packet.rate", "load.rx.packet.rate"),
            ("load.request.rate", "load.offered.rate"),
            ("load.tx.packets", "load.rx.packets"),
            ("load.requests",),
            ("system.network.io",),
            ("system.network.packets",),
        ),
    ),
    Topic("How late the monitor was", (("monitor.loop.lag", "monitor.sink.lag"),)),
    Topic("Memory of the monitor", (("monitor.memory.usage",),)),
    Topic("CPU of the monitor", (("monitor.cpu.time",),), how="mean"),
)
"""The standard panels in the order of the page; the monitor's own come last."""

_QUIET = frozenset(metric.name for metric in CATALOGUE if metric.kind == STATE)


def further(metrics: Collection[str], most: int) -> tuple[Topic, ...]:
    """Panels for a target that none of the topics fits, such as an imported file: its first metrics by name."""
    return tuple(Topic(name, ((name,),)) for name in sorted(set(metrics) - _QUIET)[:most])
