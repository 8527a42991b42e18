"""Throttled logging: a failing source is logged once, then ever less often, and once when it recovered."""

from __future__ import annotations

import logging

_log = logging.getLogger("soakwatch")
_PAUSES_S = (0.0, 60.0, 300.0, 1800.0, 3600.0)  # a 72 h outage is about 75 lines, not 259,200


class ThrottledLog:
    """Log lines of one source."""

    def __init__(self, who: str) -> None:
        self._who = who
        self._count = 0
        self._logged = 0
        self._next_ns = 0

    def failed(self, now_ns: int, sentence: str) -> None:
        """Counts a failure; logs it if the pause since the last line is over."""
        self._count += 1
        if self._count == 1 or now_ns >= self._next_ns:
            again = f" ({self._count} failures in a row)" if self._count > 1 else ""
            _log.warning("%s: %s%s", self._who, sentence, again)
            self._logged = min(self._logged + 1, len(_PAUSES_S) - 1)
            self._next_ns = now_ns + int(_PAUSES_S[self._logged] * 1e9)

    def well(self) -> None:
        """A success; logged if a failure preceded it."""
        if self._count:
            _log.warning("%s: recovered after %d failed polls", self._who, self._count)
        self._count = self._logged = self._next_ns = 0
