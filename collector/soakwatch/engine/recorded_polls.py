"""Polls that are in the record already, from before the monitor was restarted.

A source that polls by itself keeps its polls until they are acknowledged, and they are acknowledged some seconds after
they were recorded. A monitor that dies in between finds them again when its run is resumed; no sample counts twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import numpy as np
from numpy.typing import NDArray

_SAME = 20
"""Two polls that lie closer together than this part of the interval are one: the clock of the source was measured anew
in between, and no source polls so often by itself."""

Read = Callable[[], Awaitable[NDArray[np.int64]]]


class RecordedPolls:
    """When the answered polls of one source began that were made before ``before_ns``; ``read`` brings them, sorted.

    They are read when the first such poll is handed in: most sources of a resumed run never hand in one.
    """

    def __init__(self, read: Read, before_ns: int, interval_ns: int) -> None:
        self._read, self._before_ns, self._near_ns = read, before_ns, interval_ns // _SAME
        self._began_ns: NDArray[np.int64] | None = None

    async def learn(self, first_ns: int) -> None:
        """Read them, if a poll that began at ``first_ns`` may be one of them."""
        if self._began_ns is None and first_ns < self._before_ns:
            self._began_ns = await self._read()

    def holds(self, start_ns: int) -> bool:
        """Whether the poll that began then is one of them, as far as they were read."""
        if self._began_ns is None or start_ns >= self._before_ns:
            return False
        low, high = np.searchsorted(self._began_ns, [start_ns - self._near_ns, start_ns + self._near_ns])
        return bool(low < high)
