"""Polls already recorded before the monitor was restarted.

A source that polls by itself keeps its polls until they are acknowledged, seconds after they were recorded. If the
monitor dies in between, the resumed run gets them again; this prevents counting samples twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import numpy as np
from numpy.typing import NDArray

_SAME = 20
"""Polls less than 1/20 of the interval apart are the same one: the offset of the source's clock was measured anew in
between."""

Read = Callable[[], Awaitable[NDArray[np.int64]]]


class RecordedPolls:
    """Start times of a source's answered polls before ``before_ns``; ``read`` returns them sorted.

    They are read only when a backfilled poll from before it comes: most sources never bring one.
    """

    def __init__(self, read: Read, before_ns: int, interval_ns: int) -> None:
        self._read, self._before_ns, self._near_ns = read, before_ns, interval_ns // _SAME
        self._began_ns: NDArray[np.int64] | None = None

    async def learn(self, first_ns: int) -> None:
        """Reads them if a poll that began at ``first_ns`` may be among them."""
        if self._began_ns is None and first_ns < self._before_ns:
            self._began_ns = await self._read()

    def holds(self, start_ns: int) -> bool:
        """True if the poll that began at ``start_ns`` is one of them, as far as they were read."""
        if self._began_ns is None or start_ns >= self._before_ns:
            return False
        low, high = np.searchsorted(self._began_ns, [start_ns - self._near_ns, start_ns + self._near_ns])
        return bool(low < high)
