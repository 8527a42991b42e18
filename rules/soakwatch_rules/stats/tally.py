"""Tally: what counters counted in any stretch, summed once for many queries."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from soakwatch_model.series import Floats, Series
from soakwatch_rules.stats.counted_amounts import Steps, steps


class Tally:
    """The counts of some counters (or rates) together; what a restart hid is neither counted nor covered.

    >>> from soakwatch_rules.signals import readings
    >>> sent = readings("load.tx.packets", np.arange(0.0, 500.0, 10.0), 1.0)
    >>> Tally([sent]).between(5 * 10**9, 10 * 10**9), Tally([]).between(0, 1)
    ((50.0, 5.0), (0.0, 0.0))
    """

    __slots__ = ("_parts",)

    def __init__(self, series: Iterable[Series]) -> None:
        self._parts = [_Part(samples, each) for samples in series if (each := steps(samples)).count.size]

    def counted(self, begin_ns: int, end_ns: int) -> float:
        """What was counted. Counts over an edge count by their share, as if counted evenly."""
        return sum((part.counted(begin_ns, end_ns) for part in self._parts), 0.0)

    def between(self, begin_ns: int, end_ns: int) -> tuple[float, float]:
        """What was counted, and the seconds of the stretch that the least complete counter covers."""
        least = min((part.covered(begin_ns, end_ns) for part in self._parts), default=0.0)
        return self.counted(begin_ns, end_ns), least


class _Part:
    """One counter: its sum at the readings beside which it moved, and, once asked for, the seconds covered until each.

    Most counters of a device rarely move: of three days each second they keep a few readings instead of 6 MB.
    """

    __slots__ = ("_count", "_index", "_samples", "_seen", "_zero_ns")

    def __init__(self, samples: Series, increments: Steps) -> None:
        self._samples = samples
        self._zero_ns = int(increments.begin_ns[0])
        amount = np.nan_to_num(increments.count, nan=0.0)  # what is unknown is NaN; nothing is infinite
        moved = amount != 0
        beside = np.concatenate([[True], moved | np.append(moved[1:], True)])
        self._index = _elapsed(increments)[beside]
        self._count = np.append(0.0, np.cumsum(amount))[beside]
        self._seen: tuple[Floats, Floats] | None = None

    def counted(self, begin_ns: int, end_ns: int) -> float:
        return _risen(self._index, self._count, begin_ns - self._zero_ns, end_ns - self._zero_ns)

    def covered(self, begin_ns: int, end_ns: int) -> float:
        if self._seen is None:
            increments = steps(self._samples)
            known = np.isfinite(increments.count)
            seen = np.append(0.0, np.cumsum(np.where(known, increments.seconds, 0.0)))
            self._seen = _elapsed(increments), seen
        return _risen(*self._seen, begin_ns - self._zero_ns, end_ns - self._zero_ns)


def _elapsed(increments: Steps) -> Floats:
    """The times of all readings in seconds since the first."""
    at_ns = np.append(increments.begin_ns[:1], increments.end_ns)
    return np.asarray((at_ns - at_ns[0]) * 1e-9, dtype=np.float64)


def _risen(index: Floats, total: Floats, begin_ns: int, end_ns: int) -> float:
    return float(np.diff(np.interp((begin_ns * 1e-9, end_ns * 1e-9), index, total))[0])
