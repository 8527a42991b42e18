"""The due times of one source, and which of them were missed."""

from __future__ import annotations

from soakwatch.sources.abc import Timing
from soakwatch_model.sample import NOTHING, Poll, PollOutcome


class PollGrid:
    """Due times ``anchor_ns + k * interval_ns`` of a source, each polled or lost exactly once.

    ``busy_until_ns`` is when the last poll ended: earlier due times were overrun, later ones missed by a late monitor.
    """

    def __init__(self, source: int, when: Timing) -> None:
        self._source, self._when = source, when
        self._last = -1  # k of the newest due time accounted for
        self.busy_until_ns = when.anchor_ns - 1

    def due_ns(self, time_ns: int) -> int:
        """The last due time not after ``time_ns``."""
        return self._due_ns(self._number(time_ns))

    def next_ns(self, time_ns: int) -> int:
        """The first due time after ``time_ns``."""
        return self._due_ns(self._number(time_ns) + 1)

    def advance(self, now_ns: int) -> tuple[int | None, list[Poll]]:
        """The due time to poll at ``now_ns`` (None if that was done), and the lost polls before it."""
        number = self._number(now_ns)
        if number <= self._last:
            return None, []
        lost = self._lost_before(number)
        self._last = number
        return self._due_ns(number), lost

    def close(self, end_ns: int) -> list[Poll]:
        """At the end of a run: the due times before ``end_ns`` that were never polled."""
        after = self._number(end_ns - 1) + 1
        lost = self._lost_before(after)
        self._last = max(self._last, after - 1)
        return lost

    def _number(self, time_ns: int) -> int:
        return (time_ns - self._when.anchor_ns) // self._when.interval_ns

    def _due_ns(self, number: int) -> int:
        return self._when.anchor_ns + number * self._when.interval_ns

    def _lost_before(self, number: int) -> list[Poll]:
        return [self._lost(self._due_ns(between)) for between in range(self._last + 1, number)]

    def _lost(self, due_ns: int) -> Poll:
        overrun = due_ns <= self.busy_until_ns  # equal: it was still running when this one was due
        outcome = PollOutcome.OVERRUN if overrun else PollOutcome.MISSED
        reason = "previous poll still running" if overrun else "the monitor was late"
        return Poll(self._source, due_ns, due_ns, 0, outcome, reason, NOTHING)
