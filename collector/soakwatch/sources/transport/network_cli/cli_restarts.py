"""The uptime of a device as its command line shows it: its restarts, and why."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from soakwatch.sources.platforms.cli_units import Length
from soakwatch_model.event import Event
from soakwatch_model.sample import Sample

SECOND = 1_000_000_000
_DRIFT_S = 5.0
_CRASH = re.compile(
    r"(?i:crash|panic|watchdog|bus error|address error|segv|exception|software[- ]forced|core ?dump|assert|unexpected"
    r"|fault|heartbeat|abnormal|hap reset|out of memory)"
)


@dataclass(frozen=True, slots=True)
class UptimeReading:
    """An uptime, and when it was read."""

    time_ns: int
    up: Length


def life(
    before: UptimeReading | None, up: Length, time_ns: int, facts: Mapping[str, str]
) -> tuple[UptimeReading, Sample, list[Event]]:
    """The new state, the uptime's sample, and ``reboot`` (and ``device.crash``) if the device restarted since.

    Uptimes are cut down to their step (IOS shows minutes, an ASA after a day hours), so a restart is reported only
    where no rounding explains it: one within a step of the previous poll is not seen. Its start is computed from the
    uptime.
    """
    now = UptimeReading(time_ns, up)
    sample = Sample("system.uptime", "", up.seconds, time_ns)
    if before is None:
        return now, sample, []
    passed_s = (time_ns - before.time_ns) / SECOND
    fell = up.seconds + up.step <= before.up.seconds
    late = up.seconds + up.step + _DRIFT_S + passed_s / 100 <= before.up.seconds + passed_s
    if not (fell or late):
        return now, sample, []
    begin_ns = max(before.time_ns, time_ns - int((up.seconds + up.step) * SECOND))
    reason = facts.get("reboot_reason", "")
    detail = {"evidence": "the uptime restarted", "uptime_s": f"{up.seconds:g}"}
    if reason:
        detail["reboot_reason"] = reason
    return now, sample, [Event("reboot", "", "", begin_ns, time_ns, detail), *crash_of(reason, begin_ns)]


def crash_of(reason: str, begin_ns: int) -> list[Event]:
    """``device.crash`` if the reason of a reboot is one."""
    return [Event("device.crash", "", "", begin_ns, None, {"reason": reason})] if _CRASH.search(reason) else []
