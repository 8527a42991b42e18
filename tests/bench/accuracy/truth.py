"""What is wrong with a sick night, and which findings may name it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.bench.accuracy.night import Night

Stated = dict[tuple[str, str], float]
"""The smallest growth that the findings of ``growth`` state on the healthy night, per hour, by metric and object."""

LOST = (
    "loss",
    "drops",
    "hang",
    "overload_loss",
    "periodic_pause",
    "performance_decline",
    "step_change",
    "gap",
    "event_impact",
    "generator_health",
)
DEAD = (*LOST, "coverage", "reboot", "process_restart", "management_isolation")


@dataclass(frozen=True, slots=True, order=True)
class Size:
    """How much is wrong: ``value`` in ``unit``, comparable within the ``family``, so that sizes make a curve."""

    family: str
    value: float
    unit: str

    def __str__(self) -> str:
        return f"{self.value:g} {self.unit}"


@dataclass(frozen=True, slots=True)
class Truth:
    """What is wrong: ``gross`` faults have to fail. ``rules`` may name it; with ``metrics`` and ``objects`` the finding
    has to be about one of these (a metric by its first letters). ``small``: within what the rules allow by default, so
    it is reported and not scored. ``size``: how much is wrong, None for what is wrong or not."""

    kind: str
    gross: bool
    rules: tuple[str, ...]
    metrics: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()
    small: bool = False
    size: Size | None = None

    def named_by(self, rule: str, metric: str, name: str) -> bool:
        """Whether a finding is about the fault."""
        return (
            rule in self.rules
            and (not self.metrics or metric.startswith(self.metrics))
            and (not self.objects or name in self.objects)
        )


Fault = Callable[[Night, Stated], Truth | None]
"""Does something to a night in place; None where the night has nothing to which it could be done."""
