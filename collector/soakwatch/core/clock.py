"""Time for a run: UTC that never steps, the zone that makes APScheduler follow it, and the grid of due times."""

from __future__ import annotations

import re
import time
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Protocol

from apscheduler.triggers.base import BaseTrigger

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - the zone is put on where it is used
_MICROSECOND_NS = 1000


class Clock(Protocol):
    """Where a run takes its time from; virtual in tests."""

    def now_ns(self) -> int:
        """Steady time: nanoseconds since 1970 UTC, never going back, never jumping with the wall clock."""
        ...

    def wall_ns(self) -> int:
        """What the machine's wall clock says now."""
        ...


class RunClock(Clock, Protocol):
    """A clock that the next monitor of a run can go on with."""

    @property
    def mark(self) -> str:
        """What tells another process how this clock goes, kept in the record; "" where that cannot be told."""
        ...


class SteadyClock:
    """The wall clock at the start of the run, carried on by the clock that counts through suspend and never steps.

    A resumed run goes on with the time of the run. ``mark`` is that of the clock before: as long as the machine has not
    been booted since, nothing that anybody does to the wall clock matters. Else ``offset_ns`` is what the wall clock
    was ahead of it, by steps that came before its monitor died, and ``not_before_ns`` keeps it in order if the wall
    clock was set back since then: time goes on from there, and the difference shows as ``monitor.clock.offset``.
    """

    def __init__(self, not_before_ns: int = 0, offset_ns: int = 0, mark: str = "") -> None:
        self._started = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        boot, _, ahead = mark.partition(" ")
        same = bool(boot) and boot == _boot_id() and re.fullmatch(r"\d{1,19}", ahead) is not None
        now_ns = int(ahead) + self._started if same else time.time_ns() - offset_ns
        self._anchor_ns = max(now_ns, not_before_ns)

    @property
    def mark(self) -> str:
        """The boot of the machine, and by how much this clock is ahead of the time since it, in nanoseconds."""
        boot = _boot_id()
        return f"{boot} {self._anchor_ns - self._started}" if boot else ""

    def now_ns(self) -> int:
        """Steady time in nanoseconds since 1970 UTC."""
        return self._anchor_ns + time.clock_gettime_ns(time.CLOCK_BOOTTIME) - self._started

    def wall_ns(self) -> int:
        """The wall clock, with its steps."""
        return time.time_ns()


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (OSError, UnicodeError):
        return ""


class SteadyZone(tzinfo):
    """UTC as ``clock`` tells it.

    APScheduler asks ``datetime.now(scheduler.timezone)`` whenever it decides what is due. In this zone the answer is
    the steady clock's, so a wall clock that is set an hour back does not stop the polls for an hour, one that is
    set forward does not fire a burst, and tests can run days in seconds. Due times carry the same zone object,
    so comparisons never convert.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def fromutc(self, _: datetime) -> datetime:
        """Now: the only question that the scheduler asks. Rounded down, so that nothing is due too early."""
        return datetime_at(self._clock.now_ns() // _MICROSECOND_NS * _MICROSECOND_NS, self)

    def utcoffset(self, _: datetime | None) -> timedelta:
        """No offset: the zone is UTC."""
        return timedelta(0)

    def dst(self, _: datetime | None) -> timedelta:
        """No daylight saving time."""
        return timedelta(0)

    def tzname(self, _: datetime | None) -> str:
        """A name that is not "local", which APScheduler refuses."""
        return "UTC"


def datetime_at(time_ns: int, zone: tzinfo) -> datetime:
    """The datetime of a time on the steady clock, rounded up to the microsecond (never early)."""
    return _EPOCH.replace(tzinfo=zone) + timedelta(microseconds=-(-time_ns // _MICROSECOND_NS))


def to_ns(moment: datetime) -> int:
    """Nanoseconds since 1970 of a datetime made by ``datetime_at``."""
    span = moment.replace(tzinfo=None) - _EPOCH
    return (span // timedelta(microseconds=1)) * _MICROSECOND_NS


class Grid(BaseTrigger):  # type: ignore[misc] # APScheduler publishes no types
    """Due times ``anchor + k * interval``: a fixed grid, whatever a poll takes and however late it ran."""

    def __init__(self, anchor_ns: int, interval_ns: int, zone: tzinfo) -> None:
        self._anchor_ns, self._interval_ns, self._zone = anchor_ns, interval_ns, zone

    def get_next_fire_time(self, previous: datetime | None, now: datetime) -> datetime:
        """The first due time after ``now``; what lies between was missed, and the wrapper says so. At the start it is
        the newest that has passed, which is kept late: the grid may have begun while the sources were opened."""
        slot = (to_ns(now) - self._anchor_ns) // self._interval_ns + (previous is not None)
        return datetime_at(self._anchor_ns + max(slot, 0) * self._interval_ns, self._zone)


def aligned(now_ns: int, interval_ns: int) -> int:
    """The first multiple of the interval (in UTC) not before ``now_ns``: sources with equal intervals line up.

    >>> aligned(12_300_000_000, 1_000_000_000)
    13000000000
    """
    return -(-now_ns // interval_ns) * interval_ns
