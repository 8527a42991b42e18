"""When a run of a plan begins: ``start: 2026-11-27T20:00:00Z``, or in the notation of cron ``start: 0 20 * * mon-fri``.

A time of cron is the next one each time that the plan is run; one run is made. Its zone may stand behind it
(``0 20 * * mon-fri Europe/Vienna``), else it is that of this machine.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

from soakwatch.core.cron import CronError, check_cron, local_zone, next_time
from soakwatch.core.validation import shown

_EXAMPLE = "write date, time and zone, such as 2026-11-27T20:00:00Z, or cron, such as '0 20 * * mon-fri Europe/Vienna'"
_CRON = re.compile(r"(@[a-z]+|\S+(?:\s+\S+){4})(?:\s+(\S+))?")


@dataclass(frozen=True, slots=True)
class Start:
    """A planned start: a moment (UTC), or a time of cron with its zone ("" for that of this machine)."""

    moment: datetime | None = None
    cron: str = ""
    zone: str = ""

    def next(self, now: datetime) -> datetime:
        """The moment, which may have passed, or the next one that cron names."""
        if self.moment is not None:
            return self.moment
        found = next_time(self.cron, self.zone or local_zone(), round(now.timestamp() * 1e9))
        assert found is not None, "it was checked when the plan was read"
        return datetime.fromtimestamp(found // 10**9, UTC)

    def next_ns(self, now_ns: int) -> int:
        """The same in nanoseconds since 1970."""
        return round(self.next(datetime.fromtimestamp(now_ns * 1e-9, UTC)).timestamp() * 1e9)

    def seconds_until(self, now_s: float) -> float:
        """Seconds from ``now_s`` (since 1970) to the start; below 0 if it has passed."""
        return self.next(datetime.fromtimestamp(now_s, UTC)).timestamp() - now_s

    def words(self, now: datetime) -> str:
        """The start in words."""
        when = f"{self.next(now):%Y-%m-%d %H:%M:%S} UTC"
        if self.moment is not None:
            return when
        zone = self.zone or f"{local_zone()}, the zone of this machine"
        return f"{when}, the next time of {self.cron!r} in {zone}"


def _start(value: object) -> Start:
    if isinstance(value, Start):
        return value
    if not isinstance(value, str):
        raise ValueError(f"expected a time, found {shown(value)}: {_EXAMPLE}")
    text = value.strip()
    if (match := _CRON.fullmatch(text)) is not None:
        cron, zone = " ".join(match[1].split()), match[2] or ""
        try:
            check_cron(cron, zone or local_zone())
        except CronError as error:
            raise ValueError(str(error)) from None
        return Start(cron=cron, zone=zone)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{value!r} is neither an ISO 8601 time nor one of cron: {_EXAMPLE}") from None
    if moment.tzinfo is None:
        raise ValueError(f"{value!r} has no zone: append Z for UTC, or an offset such as +02:00")
    try:
        return Start(moment.astimezone(UTC))
    except OverflowError:
        raise ValueError(f"{value!r} is outside the calendar: {_EXAMPLE}") from None


PlannedStart = Annotated[
    Start,
    BeforeValidator(_start),
    WithJsonSchema({"type": "string", "examples": ["2026-11-27T20:00:00Z", "0 20 * * mon-fri Europe/Vienna"]}),
]
"""The key ``start`` of a plan."""
