"""When a failing source is polled again: less often after several failures, much later after a refused login."""

from __future__ import annotations

FAILURES_BEFORE_SLOWING = 3
MAX_HOLD_S = 15.0  # so much is missed at most after the device is back
REFUSED_HOLDS_S = (60.0, 300.0, 900.0, 1800.0)
"""Pauses after refused logins: many systems lock an account after three to five tries within minutes."""


class BackOff:
    """The back-off of one source that is polled every ``interval_ns``."""

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
