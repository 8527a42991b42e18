"""Times in the notation of cron, as cron reads them; the arithmetic of the calendar is APScheduler's."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from soakwatch.core.errors import SoakwatchError

if TYPE_CHECKING:
    from apscheduler.triggers.cron import CronTrigger

_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_SHORT = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
}
_EXAMPLE = "write minute hour day month weekday, such as '0 20 * * mon-fri'"
_UTC = frozenset({"UTC", "Etc/UTC"})
"""Names that need no data of time zones, which a small machine does not have."""
_RANGE = re.compile(r"(\*|[a-z0-9]+)(?:-([a-z0-9]+))?(?:/(\d+))?")


class CronError(SoakwatchError):
    """No time in the notation of cron, in one sentence with the remedy."""


def check_cron(text: str, zone: str) -> None:
    """Raises CronError if this is no schedule, or one that never comes."""
    if next_time(text, zone, 0) is None:
        raise CronError(f"the schedule {text!r} never comes: there is no such day")


def next_time(text: str, zone: str, after_ns: int) -> int | None:
    """The first time (UTC ns) behind ``after_ns`` at which a schedule comes; None if it never does. Raises CronError.

    >>> friday = round(datetime(2026, 11, 27, 20, tzinfo=UTC).timestamp()) * 10**9
    >>> [next_time(text, "UTC", friday) - friday for text in ("0 20 * * mon-fri", "0 20 * * 1-5")]
    [259200000000000, 259200000000000]
    """
    trigger = _trigger(text, zone)
    begin = datetime.fromtimestamp(after_ns // 10**9, UTC) + timedelta(seconds=1)
    found: datetime | None = trigger.get_next_fire_time(None, begin)
    return None if found is None else round(found.timestamp()) * 10**9


def zone_of(name: str) -> tzinfo:
    """A time zone by its name. Raises CronError."""
    if name in _UTC:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        if not available_timezones():
            raise CronError(
                f"this machine knows no time zones, so {name[:60]!r} cannot be used: install tzdata there, or write UTC"
            ) from None
        raise CronError(f"{name[:60]!r} is not a time zone: write one such as Europe/Vienna, or UTC") from None


def local_zone() -> str:
    """The name of this machine's time zone, UTC if it has none."""
    from tzlocal import get_localzone_name

    try:
        name = get_localzone_name() or "UTC"
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError, LookupError):
        return "UTC"
    return name


def _trigger(text: str, zone: str) -> CronTrigger:
    from apscheduler.triggers.cron import CronTrigger  # a plan without cron does not load it

    words = _SHORT.get(text.strip().lower(), text).lower().split()
    if len(words) != 5:
        raise CronError(f"{text[:80]!r} is not a schedule: {_EXAMPLE}")
    minute, hour, day, month, weekday = words
    if day != "*" and weekday != "*":
        raise CronError(
            f"{text[:80]!r} names days of the month and of the week, which programs read in different ways: leave one"
            " of them as *, and make two schedules if both are meant"
        )
    try:
        return CronTrigger(
            minute=minute, hour=hour, day=day, month=month, day_of_week=_weekdays(weekday), timezone=zone_of(zone)
        )
    except ValueError as error:
        raise CronError(f"{text[:80]!r} is not a schedule ({str(error)[:120]}): {_EXAMPLE}") from None


def _weekdays(text: str) -> str:
    """Days of the week as names: to APScheduler 0 is Monday, to cron Sunday, and 7 too.

    >>> _weekdays("1-5"), _weekdays("sat,0"), _weekdays("fri-mon"), _weekdays("*")
    ('mon,tue,wed,thu,fri', 'sat,sun', 'fri,sat,sun,mon', '*')
    """
    if text == "*":
        return text
    days: list[str] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part)
        if match is None:
            raise ValueError(f"no day of the week: {part[:20]}")
        first, last, step = match.groups()
        begin = 0 if first == "*" else _weekday(first)
        end = 6 if first == "*" else begin if last is None and step is None else _weekday(last or "sat")
        end += 7 * (end < begin)
        if int(step or 1) < 1:
            raise ValueError(f"no step: {part[:20]}")
        days += [_DAYS[day % 7] for day in range(begin, end + 1, int(step or 1))]
    return ",".join(dict.fromkeys(days))


def _weekday(text: str) -> int:
    if text in _DAYS:
        return _DAYS.index(text)
    if text.isdecimal() and int(text) <= 7:
        return int(text)
    raise ValueError(f"no day of the week: {text[:20]}")
