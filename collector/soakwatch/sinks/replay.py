"""Going back after a connection broke: a database may have lost what it had acknowledged when its process died.

VictoriaMetrics keeps the last seconds in memory (a SIGKILL lost 5 s), and so does any server whose write-ahead log is
not synced when the power goes. To send the same again changes nothing, so a feed goes back to where it stood so many
seconds before the break. A server that is restarted between two requests is noticed by the new connection alone.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping

REPLAY_S = 30.0

Read = Mapping[int, int]
"""How far each source of a record was read."""
_APART_S = 1.0  # between two places that are remembered
_SHORTEST_S = 1.0


class Replay:
    """Remembers what was acknowledged when, for ``window_s`` seconds (0: never goes back); ``now`` in seconds.

    A line that breaks again and again must not keep a feed for ever where it is: each break goes back by half as much
    as the one before, until the connection has held for ``window_s``.
    """

    def __init__(self, read: Read, window_s: float = REPLAY_S, now: Callable[[], float] = time.monotonic) -> None:
        self._now, self._whole_s, self._window_s = now, window_s, window_s
        self._known: deque[tuple[float, Read]] = deque([(now() - window_s, dict(read))])
        self._connections: int | None = None
        self._taken_at = self._began_at = now()
        self._broken_at: float | None = None

    def taken(self, connections: int) -> None:
        """Lines were taken; so many connections were made until now."""
        now = self._now()
        if self._connections is not None and connections > self._connections:
            self._broken_at = self._taken_at if self._broken_at is None else self._broken_at
            self._began_at = now
        elif now - self._began_at >= self._whole_s:
            self._window_s = self._whole_s
        self._connections, self._taken_at = connections, now

    def slow(self, connections: int) -> None:
        """An answer did not come in time: that costs the connection, but is no sign of a loss."""
        if self._connections is not None:
            self._connections = connections + 1

    def acknowledged(self, read: Read) -> None:
        """All lines up to here were taken."""
        if self._broken_at is not None:  # what was known before the break is needed
            return
        now = self._now()
        if now - self._known[-1][0] >= _APART_S:
            self._known.append((now, dict(read)))
        while len(self._known) > 1 and self._known[1][0] <= now - self._whole_s:
            self._known.popleft()

    def back(self, read: Read) -> Read | None:
        """Where to go back to from ``read``, once after each break; None: nowhere."""
        broken_at, self._broken_at = self._broken_at, None
        if broken_at is None:
            return None
        window_s, self._window_s = self._window_s, self._window_s / 2
        if window_s < _SHORTEST_S:
            self.acknowledged(read)
            return None
        while len(self._known) > 1 and self._known[-1][0] > broken_at - window_s:
            self._known.pop()
        return self._known[-1][1]
