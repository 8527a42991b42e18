"""The storm limit of a hook: at most N triggers in a time; the rest is counted."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from time import monotonic


class StormLimit:
    """At most ``count`` triggers in any ``seconds``."""

    def __init__(self, count: int, seconds: float, clock: Callable[[], float] = monotonic) -> None:
        self._count, self._seconds, self._clock = count, seconds, clock
        self._taken: deque[float] = deque()
        self._held: Counter[str] = Counter()

    def take(self, rule: str) -> bool:
        """True if one more may pass now; else counts it under its rule."""
        if self.opens_in() > 0:
            self._held[rule] += 1
            return False
        self._taken.append(self._clock())
        return True

    def opens_in(self) -> float:
        """Seconds until one more may pass; 0 if it may now."""
        now = self._clock()
        while self._taken and now - self._taken[0] >= self._seconds:
            self._taken.popleft()
        return 0.0 if len(self._taken) < self._count else self._taken[0] + self._seconds - now

    @property
    def holds(self) -> bool:
        """True if findings were held back."""
        return bool(self._held)

    def release(self) -> Mapping[str, int]:
        """Findings held back by rule since the last release; reporting them counts as one trigger."""
        held, self._held = dict(sorted(self._held.items())), Counter()
        self._taken.append(self._clock())
        return held
