"""Time of a run: UTC that never steps, a time zone by which APScheduler follows it, and the grid of due times."""

from __future__ import annotations

import re
import time
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Protocol

from apscheduler.triggers.base import BaseTrigger

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - users add their zone
_MICROSECOND_NS = 1000


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


class SteadyZone(tzinfo):
    """UTC by ``clock``.

    APScheduler calls ``datetime.now(scheduler.timezone)`` to decide what is due. This zone answers with the steady
    clock: setting the wall clock back an hour does not stop polls for an hour, setting it forward does not fire a
    burst, and tests run days in seconds. Due times carry the same zone object, so comparisons never convert.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def fromutc(self, _: datetime) -> datetime:
        """The steady time now, whatever is asked; rounded down, so that nothing runs early."""
        return datetime_at(self._clock.now_ns() // _MICROSECOND_NS * _MICROSECOND_NS, self)

    def utcoffset(self, _: datetime | None) -> timedelta:
        """No offset: the zone is UTC."""
        return timedelta(0)

    def dst(self, _: datetime | None) -> timedelta:
        """No daylight saving time."""
        return timedelta(0)

    def tzname(self, _: datetime | None) -> str:
        """Not "local", which APScheduler refuses."""
        return "UTC"


def datetime_at(time_ns: int, zone: tzinfo) -> datetime:
    """A steady time as datetime, rounded up to the microsecond (never early)."""
    return _EPOCH.replace(tzinfo=zone) + timedelta(microseconds=-(-time_ns // _MICROSECOND_NS))


def to_ns(moment: datetime) -> int:
    """The inverse of ``datetime_at``: ns since 1970."""
    span = moment.replace(tzinfo=None) - _EPOCH
    return (span // timedelta(microseconds=1)) * _MICROSECOND_NS


class Grid(BaseTrigger):  # type: ignore[misc] # APScheduler publishes no types
    """Due times ``anchor + k * interval``, however long a poll takes and however late it ran."""

    def __init__(self, anchor_ns: int, interval_ns: int, zone: tzinfo) -> None:
        self._anchor_ns, self._interval_ns, self._zone = anchor_ns, interval_ns, zone

    def get_next_fire_time(self, previous: datetime | None, now: datetime) -> datetime:
        """The first due time after ``now``; those skipped are recorded by the wrapper. The first call returns the
        newest due time that has passed: the grid may have begun while the sources were opened."""
        slot = (to_ns(now) - self._anchor_ns) // self._interval_ns + (previous is not None)
        return datetime_at(self._anchor_ns + max(slot, 0) * self._interval_ns, self._zone)


def aligned(now_ns: int, interval_ns: int) -> int:
    """The first multiple of the interval (in UTC) from ``now_ns`` on: sources of equal intervals are due together.

    >>> aligned(12_300_000_000, 1_000_000_000)
    13000000000
    """
    return -(-now_ns // interval_ns) * interval_ns
