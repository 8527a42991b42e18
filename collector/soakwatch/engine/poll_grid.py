"""When one source is polled: its due times, which of them were missed, and how long a failing one is left alone."""

from __future__ import annotations

from soakwatch.sources.abc import Timing
from soakwatch_model.sample import NOTHING, Poll, PollOutcome

FAILURES_BEFORE_SLOWING = 3
MAX_HOLD_S = 15.0  # so much is missed at most after the device is back
REFUSED_HOLDS_S = (60.0, 300.0, 900.0, 1800.0)
"""Pauses after refused logins: many systems lock an account after three to five tries within minutes."""


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


class BackOff:
    """The back-off of one source that is polled every ``interval_ns``: less often after several failures, much later
    after a refused login."""

    def __init__(self, interval_ns: int) -> None:
        self._interval_ns = interval_ns
        self._failures = 0
        self._refusals = 0  # refused logins since the last that worked
        self._login_hold_s = 0.0  # the pause of a login that this poll was refused
        self._until_ns = 0

    def holds(self, now_ns: int) -> bool:
        """True while the source must not be polled."""
        return now_ns < self._until_ns

    def answered(self) -> None:
        """A poll succeeded: the source is polled at every due time again."""
        self._failures = self._refusals = 0

    def responded(self) -> None:
        """A poll failed but the source responds: the next due time is polled all the same."""
        self._failures = 0

    def login_refused(self) -> float:
        """A login was refused by the poll that ``failed`` reports next; returns the seconds without another try."""
        self._login_hold_s = REFUSED_HOLDS_S[min(self._refusals, len(REFUSED_HOLDS_S) - 1)]
        self._refusals += 1
        return self._login_hold_s

    def failed(self, due_ns: int) -> None:
        """The poll due at ``due_ns`` failed: skip the next ones, if necessary, until a time on the grid."""
        self._failures += 1
        login_hold_s, self._login_hold_s = self._login_hold_s, 0.0
        if login_hold_s:
            self._until_ns = due_ns + round(login_hold_s * 1e9)
        elif self._failures >= FAILURES_BEFORE_SLOWING:
            doubled = self._interval_ns * 2 ** min(self._failures - FAILURES_BEFORE_SLOWING, 20)
            longest = max(1, int(MAX_HOLD_S * 1e9) // self._interval_ns) * self._interval_ns
            self._until_ns = due_ns + min(doubled, longest)  # from the due time: from now, one more would be skipped
