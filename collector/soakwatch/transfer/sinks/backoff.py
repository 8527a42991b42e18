"""Pauses between retries: doubling, with jitter, up to 30 s."""

from __future__ import annotations

import random

from soakwatch.transfer.sinks.abc import SinkUnavailableError

MAX_PAUSE_S = 30.0
_FIRST_PAUSE_S = 0.5


class Backoff:
    """The pauses of one feed; ``seed`` sets its jitter, so that many collectors do not come back at once."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)  # noqa: S311 - so that many collectors do not come back at once
        self._next_s = _FIRST_PAUSE_S

    def next_s(self, error: SinkUnavailableError) -> float:
        """Seconds until the next try."""
        pause_s = self._next_s * self._random.uniform(0.5, 1.0)
        self._next_s = min(MAX_PAUSE_S, self._next_s * 2)
        return max(pause_s, error.after_s or 0.0)

    def reset(self) -> None:
        """Restart from the shortest pause, after a successful write."""
        self._next_s = _FIRST_PAUSE_S
