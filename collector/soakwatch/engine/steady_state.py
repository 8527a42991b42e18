"""Whether the devices have settled: the condition ``until: settled``, instead of a fixed sleep."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import numpy as np

from soakwatch_model.metric import BY_NAME
from soakwatch_model.metric_queries import usual_in
from soakwatch_model.sample import Sample
from soakwatch_model.shown import CPU, MEMORY
from soakwatch_rules.stats.settled import MIN_SAMPLES, settled

STRETCH_NS = 60_000_000_000
TOLERANCE = 0.02
_CPU_FLOOR = 0.02  # two points
_FLOORS = {
    name: _CPU_FLOOR if topic == CPU else BY_NAME[name].quantum or 0.0
    for topic in (CPU, MEMORY)
    for name in usual_in(topic)
    if not BY_NAME[name].labels
}
"""The watched levels, and the drift of each, in its unit, that is always allowed."""
_MAX_READINGS = 600  # per level


class SteadyStateDetector:
    """The newest readings of the devices' CPU and memory.

    They have settled when each drifts by less than 2 % of itself (CPU: or 2 points) across the last minute, or across
    the last 12 readings if these take longer.
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[int, str, str], deque[tuple[int, float]]] = {}

    def take(self, source: int, samples: Iterable[Sample]) -> None:
        """Takes the readings of one poll."""
        for sample in samples:
            if sample.metric in _FLOORS:
                kept = self._kept.setdefault((source, sample.metric, sample.object), deque(maxlen=_MAX_READINGS))
                kept.append((sample.time_ns, float(sample.value)))

    def since(self, begin_ns: int) -> bool:
        """True if all have settled by readings from ``begin_ns`` on; False while there are too few or none."""
        return bool(self._kept) and all(
            _settled(_FLOORS[metric], kept, begin_ns) for (_, metric, _), kept in self._kept.items()
        )


def _settled(floor: float, kept: Iterable[tuple[int, float]], begin_ns: int) -> bool:
    readings = [reading for reading in kept if reading[0] >= begin_ns]
    if len(readings) < MIN_SAMPLES or readings[-1][0] - readings[0][0] < STRETCH_NS:
        return False
    from_ns = readings[-1][0] - STRETCH_NS
    first = min(len(readings) - MIN_SAMPLES, next(i for i, (when_ns, _) in enumerate(readings) if when_ns >= from_ns))
    time_ns, values = np.array(readings[first:]).T
    return settled((time_ns - time_ns[0]) * 1e-9, values, TOLERANCE, floor)
