"""How long an answer of an agent takes, how often one is lost, and when a request is to be sent again. Arithmetic only.

The time to wait is that of RFC 6298: the smoothed round trip and four times its variation. A repeat is a request of its
own, so each answer is told apart, and its time counts also after losses.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

FLOOR_S = 0.05  # an agent that is busy for a moment shall not be asked twice ...
_HASTE = 6  # ... nor sooner than after this part of the time for an answer: with long intervals there is no hurry
WINDOW_S = 30.0
_MAX_KEPT = 2000
_LOSSY = 0.05
_MIN_LOST = 3  # one or two lost datagrams are no lossy path
_GONE = 12  # requests in a row without an answer: no path that loses half of them does that
_MAX_LATE = 10  # answers that came while one request waited for its own
_MAX_QUICK = 6  # repeats of one request beyond those of the plan


@dataclass(frozen=True, slots=True)
class Losses:
    """What became of the requests of some time: so many were ``sent``, and so many of them ``lost``."""

    sent: int = 0
    lost: int = 0

    @property
    def share(self) -> float:
        """The share that was lost, 0 of none."""
        return self.lost / self.sent if self.sent else 0.0


@dataclass(slots=True)
class RoundTrips:
    """The round trips to one agent. Times are seconds of one steady clock."""

    _mean_s: float | None = None
    _deviation_s: float = 0.0
    _sent: deque[tuple[float, bool]] = field(default_factory=lambda: deque(maxlen=_MAX_KEPT))  # when, and if lost
    _late: deque[float] = field(default_factory=lambda: deque(maxlen=_MAX_KEPT))
    _late_total: int = 0
    answered_s: float | None = None

    @property
    def wait_s(self) -> float | None:
        """How long an answer takes at most as a rule; None until one was measured."""
        return None if self._mean_s is None else self._mean_s + 4 * self._deviation_s

    def answered(self, now_s: float, took_s: float) -> None:
        """An answer came (RFC 6298 section 2).

        >>> trips = RoundTrips()
        >>> trips.answered(1.0, 0.1)
        >>> round(trips.wait_s or 0, 3)
        0.3
        """
        if self._mean_s is None:
            self._mean_s, self._deviation_s = took_s, took_s / 2
        else:
            self._deviation_s += (abs(self._mean_s - took_s) - self._deviation_s) / 4
            self._mean_s += (took_s - self._mean_s) / 8
        self.answered_s = now_s
        self._sent.append((now_s, False))

    def lost(self, now_s: float) -> None:
        """No answer came in time."""
        self._sent.append((now_s, True))

    def late(self, total: int, now_s: float) -> None:
        """So many answers have come after their time by now: those requests were not lost."""
        if total > self._late_total:
            self._late.extend([now_s] * min(_MAX_LATE, total - self._late_total))
            self._late_total = total

    def waits(self, share_s: float, repeats: int) -> Iterator[float]:
        """How long to wait for the answers to a request and its repeats, one after the other.

        At most ``repeats + 1`` times ``share_s`` together. What is known of the round trip is used to repeat early,
        each time after twice as long; the last one waits for all of ``share_s``, for the agent may have become slow.

        >>> trips = RoundTrips()
        >>> list(trips.waits(0.4, 1))
        [0.4, 0.4]
        >>> trips.answered(0.0, 0.01)
        >>> [round(wait_s, 3) for wait_s in trips.waits(0.4, 1)]
        [0.067, 0.133, 0.2, 0.4]
        >>> list(trips.waits(0.4, 0))
        [0.4]
        """
        floor_s = max(FLOOR_S, share_s / _HASTE)
        left_s, wait_s, count = share_s * repeats, max(floor_s, self.wait_s or share_s), 0
        while left_s > 1e-6:
            wait_s = min(wait_s, share_s, left_s) if count < _MAX_QUICK + repeats else left_s
            wait_s = left_s if left_s - wait_s < floor_s * (1 - 1e-6) and wait_s < share_s else wait_s
            yield wait_s
            left_s, wait_s, count = left_s - wait_s, wait_s * 2, count + 1
        yield share_s

    def losses(self, now_s: float, since_s: float | None = None) -> Losses:
        """What became of the requests since a time, or in the last ``WINDOW_S``; answers that came late are no loss."""
        begin_s = now_s - WINDOW_S if since_s is None else since_s
        seen = [lost for when_s, lost in self._sent if when_s >= begin_s]
        late = sum(when_s >= begin_s for when_s in self._late)
        return Losses(len(seen), max(0, sum(seen) - late))

    def lossy(self, now_s: float, least: int = _MIN_LOST) -> bool:
        """Whether requests, so many at ``least``, get lost between others that are answered.

        What was lost since the last answer says nothing: the agent may be gone, and is after some more.

        >>> trips = RoundTrips()
        >>> for second in range(8):
        ...     (trips.lost if second % 2 else trips.answered)(second, *([] if second % 2 else [0.01]))
        >>> trips.lossy(8.0), trips.lossy(60.0)
        (True, False)
        """
        if self.answered_s is None or now_s - self.answered_s > WINDOW_S:
            return False
        seen = [(when_s, lost) for when_s, lost in self._sent if when_s >= now_s - WINDOW_S]
        last = max((index for index, (_, lost) in enumerate(seen) if not lost), default=-1)
        if len(seen) - last > _GONE:
            return False
        seen = seen[: last + 1]
        late = sum(when_s >= now_s - WINDOW_S for when_s in self._late)
        count = max(0, sum(lost for _, lost in seen) - late)
        return count >= least and count >= _LOSSY * len(seen)
