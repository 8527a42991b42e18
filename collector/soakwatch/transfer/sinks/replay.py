"""Resends after a broken connection, since a database that died may have lost what it had acknowledged.

VictoriaMetrics keeps the last seconds in memory (a SIGKILL lost 5 s), as does any server that does not sync its
write-ahead log when the power fails. Resending changes nothing, so a feed goes back to its position ``window_s`` before
the break. If a server restarts between two requests, only the new connection shows it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping

REPLAY_S = 30.0

Read = Mapping[int, int]
"""How far each source of a record was read."""
_APART_S = 1.0  # between two remembered positions
_SHORTEST_S = 1.0


class Replay:
    """Remembers what was acknowledged when, for ``window_s`` seconds (0: never goes back); ``now`` in seconds.

    So that a connection that breaks again and again does not stop all progress, each break goes back half as far as the
    previous one, until the connection has held for ``window_s``.
    """

    def __init__(self, read: Read, window_s: float = REPLAY_S, now: Callable[[], float] = time.monotonic) -> None:
        self._now, self._whole_s, self._window_s = now, window_s, window_s
        self._known: deque[tuple[float, Read]] = deque([(now() - window_s, dict(read))])
        self._connections: int | None = None
        self._taken_at = self._began_at = now()
        self._broken_at: float | None = None

    def taken(self, connections: int) -> None:
        """Lines were accepted; ``connections`` is the number made so far."""
        now = self._now()
        if self._connections is not None and connections > self._connections:
            self._broken_at = self._taken_at if self._broken_at is None else self._broken_at
            self._began_at = now
        elif now - self._began_at >= self._whole_s:
            self._window_s = self._whole_s
        self._connections, self._taken_at = connections, now

    def slow(self, connections: int) -> None:
        """An answer timed out: that closes the connection but is no sign of lost data."""
        if self._connections is not None:
            self._connections = connections + 1

    def acknowledged(self, read: Read) -> None:
        """All lines up to this position were accepted."""
        if self._broken_at is not None:  # keep the positions before the break
            return
        now = self._now()
        if now - self._known[-1][0] >= _APART_S:
            self._known.append((now, dict(read)))
        while len(self._known) > 1 and self._known[1][0] <= now - self._whole_s:
            self._known.popleft()

    def back(self, read: Read) -> Read | None:
        """The position to go back to from ``read``, once after each break; None for none."""
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
