"""Time zones of plans, and the hour that a clock repeats in autumn."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import BeforeValidator, WithJsonSchema

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HALF_DAY = timedelta(hours=12)


def _zone_name(value: object) -> object:
    if isinstance(value, str):
        zone_of(value)
    return value


def zone_of(name: str | None) -> tzinfo | None:
    """The zone of a name; None for None. Raises ValueError."""
    if name is None:
        return None
    if name.upper() in {"UTC", "Z"}:
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"{name!r} is not a time zone: write one such as UTC or Europe/Berlin") from None


ZoneName = Annotated[str, BeforeValidator(_zone_name), WithJsonSchema({"type": "string"})]


def second_of(time_ns: int, zone: tzinfo) -> int:
    """If a clock in the zone shows the time at ``time_ns`` twice, the later moment (ns); else ``time_ns``.

    >>> from zoneinfo import ZoneInfo
    >>> first = 1792886400 * 10**9  # 2026-10-25 02:00 in Berlin, for the first time
    >>> (second_of(first, ZoneInfo("Europe/Berlin")) - first) // 10**9, second_of(0, ZoneInfo("Europe/Berlin"))
    (3600, 0)
    """
    local = (_EPOCH + timedelta(microseconds=time_ns // 1000)).astimezone(zone)
    early, late = local.replace(fold=0).utcoffset(), local.replace(fold=1).utcoffset()
    if early is None or late is None or not timedelta(0) < early - late < _HALF_DAY or local.fold:
        return time_ns
    return time_ns + round((early - late).total_seconds()) * 10**9
