"""How long a failing source is left alone: slower after several failures, and much slower after a refused login."""

from __future__ import annotations

FAILURES_BEFORE_SLOWING = 3
MAX_HOLD_S = 15.0  # what a device that is back again loses on top of its outage
REFUSED_HOLDS_S = (60.0, 300.0, 900.0, 1800.0)
"""How long a refused login is left alone: many systems lock an account after three to five tries in some minutes."""


class BackOff:
    """The back-off of one source that is due every ``interval_ns``."""

    def __init__(self, interval_ns: int) -> None:
        self._interval_ns = interval_ns
        self._failures = 0
        self._refusals = 0  # logins refused since one worked
        self._login_hold_s = 0.0  # how long the last refused login bids to wait
        self._until_ns = 0

    def holds(self, now_ns: int) -> bool:
        """Whether the source is left alone now."""
        return now_ns < self._until_ns

    def answered(self) -> None:
        """A poll was answered: the source is asked at every due time again."""
        self._failures = self._refusals = 0

    def heard(self) -> None:
        """A poll failed although its source is there: it is asked at the next due time all the same."""
        self._failures = 0

    def login_refused(self) -> float:
        """A login was refused, by the poll that ``failed`` counts next; for how many seconds none is tried."""
        self._login_hold_s = REFUSED_HOLDS_S[min(self._refusals, len(REFUSED_HOLDS_S) - 1)]
        self._refusals += 1
        return self._login_hold_s

    def failed(self, due_ns: int) -> None:
        """The poll of a due time failed: hold the next ones back where that is due, counted from the grid."""
        self._failures += 1
        login_hold_s, self._login_hold_s = self._login_hold_s, 0.0
        if login_hold_s:
            self._until_ns = due_ns + round(login_hold_s * 1e9)
        elif self._failures >= FAILURES_BEFORE_SLOWING:
            doubled = self._interval_ns * 2 ** min(self._failures - FAILURES_BEFORE_SLOWING, 20)
            longest = max(1, int(MAX_HOLD_S * 1e9) // self._interval_ns) * self._interval_ns
            self._until_ns = due_ns + min(doubled, longest)  # from the grid, or the due time then is held back too
