"""Tally: what counters counted in any stretch, summed once for many queries."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from soakwatch_model.series import Series
from soakwatch_rules.stats.counted_amounts import steps


class Tally:
    """The counts of some counters (or rates) together; what a restart hid is neither counted nor covered.

    >>> from soakwatch_rules.signals import readings
    >>> sent = readings("load.tx.packets", np.arange(0.0, 500.0, 10.0), 1.0)
    >>> Tally([sent]).between(5 * 10**9, 10 * 10**9), Tally([]).between(0, 1)
    ((50.0, 5.0), (0.0, 0.0))
    """

    __slots__ = ("_parts",)

    def __init__(self, series: Iterable[Series]) -> None:
        self._parts = []
        for samples in series:
            increments = steps(samples)
            if increments.count.size:
                known = np.isfinite(increments.count)
                at_ns = np.append(increments.begin_ns[:1], increments.end_ns)
                count = np.append(0.0, np.cumsum(np.where(known, increments.count, 0.0)))
                seen = np.append(0.0, np.cumsum(np.where(known, increments.seconds, 0.0)))
                self._parts.append((int(at_ns[0]), (at_ns - at_ns[0]) * 1e-9, count, seen))

    def between(self, begin_ns: int, end_ns: int) -> tuple[float, float]:
        """What was counted, and the seconds of the stretch that the least complete counter covers.

        Counts over an edge count by their share, as if counted evenly.
        """
        total, least = 0.0, None
        for zero_ns, index, count, seen in self._parts:
            edges = ((begin_ns - zero_ns) * 1e-9, (end_ns - zero_ns) * 1e-9)
            total += float(np.diff(np.interp(edges, index, count))[0])
            here = float(np.diff(np.interp(edges, index, seen))[0])
            least = here if least is None else min(least, here)
        return total, least or 0.0
