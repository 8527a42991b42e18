"""Time of a run: UTC that never steps, and the grid of due times."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Protocol


class Clock(Protocol):
    """The source of a run's time; virtual in tests."""

    def now_ns(self) -> int:
        """Steady time: nanoseconds since 1970 UTC; never goes back or jumps with the wall clock."""
        ...

    def wall_ns(self) -> int:
        """The machine's wall clock now, UTC ns."""
        ...


class RunClock(Clock, Protocol):
    """A clock that a resumed run can continue."""

    @property
    def mark(self) -> str:
        """Lets another process continue this clock, stored in the record; "" if that is impossible."""
        ...


class SteadyClock:
    """The wall clock at the start of the run, carried on by CLOCK_BOOTTIME, which never steps and counts suspend.

    A resumed run continues the time of the run. With the ``mark`` of the former clock and no reboot since, changes of
    the wall clock do not matter. Else ``offset_ns`` is by how much steps had put the wall clock ahead before the
    monitor died, and time starts from ``not_before_ns`` at least, if the wall clock was set back since; the difference
    shows as ``monitor.clock.offset``.
    """

    def __init__(self, not_before_ns: int = 0, offset_ns: int = 0, mark: str = "") -> None:
        self._started = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        boot, _, ahead = mark.partition(" ")
        same = bool(boot) and boot == _boot_id() and re.fullmatch(r"\d{1,19}", ahead) is not None
        now_ns = int(ahead) + self._started if same else time.time_ns() - offset_ns
        self._anchor_ns = max(now_ns, not_before_ns)

    @property
    def mark(self) -> str:
        """The boot id, and by how much this clock is ahead of the time since boot, ns."""
        boot = _boot_id()
        return f"{boot} {self._anchor_ns - self._started}" if boot else ""

    def now_ns(self) -> int:
        """Steady time, ns since 1970 UTC."""
        return self._anchor_ns + time.clock_gettime_ns(time.CLOCK_BOOTTIME) - self._started

    def wall_ns(self) -> int:
        """The wall clock, with its steps, UTC ns."""
        return time.time_ns()


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (OSError, UnicodeError):
        return ""


def aligned(now_ns: int, interval_ns: int) -> int:
    """The first multiple of the interval (in UTC) from ``now_ns`` on: sources of equal intervals are due together.

    >>> aligned(12_300_000_000, 1_000_000_000)
    13000000000
    """
    return -(-now_ns // interval_ns) * interval_ns
