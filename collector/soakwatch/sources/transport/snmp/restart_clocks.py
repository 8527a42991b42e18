"""Did the device restart, or only its agent, or did a clock wrap? Decided from two readings of its clocks.

sysUpTime is the agent's clock, hrSystemUptime the host's (RFC 3418, RFC 2790); both count hundredths of a second in 32
bits and wrap after 497 days. snmpEngineBoots counts the starts of the SNMP engine, snmpEngineTime the seconds since
(RFC 3414). A host that restarts takes its agent with it, so a host's clock that falls while the agent's runs on is
a clock that jumps, not a reboot.

What it gets wrong: where a device has no clock of its host, a restart of the agent alone looks like a reboot
(``ClockChange.sure`` is False); a device that stood still (a suspended machine) for longer than it had been up looks as
if it had restarted.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

JITTER_S = 1.0  # clocks that are read by two agents, or rounded, step back by less
DRIFT = 0.02  # clocks of devices go wrong by less than this share of the time between two polls
SLACK_S = 5.0
WRAP_SLACK_S = 60.0
_BOTH_S = 3600.0  # two clocks of one engine that differ by less started together


class Course(Enum):
    """How a clock went between two polls."""

    UNKNOWN = "unknown"
    RAN_ON = "ran on"
    WRAPPED = "wrapped"
    RESTARTED = "restarted"


@dataclass(frozen=True, slots=True)
class ClockReading:
    """One clock: its ticks, what one of them is in seconds, and at how many bits it wraps."""

    ticks: int
    unit_s: float = 0.01
    bits: int = 32

    @property
    def seconds(self) -> float:
        """The clock's reading in seconds."""
        return self.ticks * self.unit_s

    @property
    def period_s(self) -> float:
        """After how many seconds it wraps."""
        return 2.0**self.bits * self.unit_s


@dataclass(frozen=True, slots=True)
class ClockReadings:
    """All clocks at one time; None is what the device does not have."""

    time_ns: int
    host: ClockReading | None = None
    agent: ClockReading | None = None
    boots: int | None = None
    engine_s: int | None = None
    engine_id: bytes = b""


@dataclass(frozen=True, slots=True)
class ClockChange:
    """What happened between two polls.

    ``kind`` is ``reboot``, ``snmp.agent.restart`` or empty; ``evidence`` says by which clocks; ``sure`` is False where
    a restart of the agent alone would look the same. ``engine_changed`` and ``rolled_back`` are independent of it.
    """

    kind: str
    evidence: str
    sure: bool
    host: Course
    agent: Course
    engine_changed: bool
    rolled_back: bool

    @property
    def restarted(self) -> bool:
        """Whether indexes and counters from before mean nothing any more."""
        return bool(self.kind or self.engine_changed or self.rolled_back)


def course(before: ClockReading | None, after: ClockReading | None, elapsed_s: float) -> Course:
    """How one clock went.

    >>> course(ClockReading(500_000), ClockReading(501_000), 10.0)
    <Course.RAN_ON: 'ran on'>
    >>> course(ClockReading(500_000), ClockReading(300), 10.0)
    <Course.RESTARTED: 'restarted'>
    >>> course(ClockReading(2**32 - 500), ClockReading(500), 10.0)
    <Course.WRAPPED: 'wrapped'>
    """
    if before is None or after is None:
        return Course.UNKNOWN
    if after.seconds < before.seconds - JITTER_S:
        due_s = before.seconds + elapsed_s - before.period_s
        wrapped = abs(after.seconds - due_s) <= WRAP_SLACK_S + DRIFT * elapsed_s
        return Course.WRAPPED if wrapped else Course.RESTARTED
    shortest_s = elapsed_s * (1 - DRIFT) - SLACK_S
    return Course.RESTARTED if after.seconds < shortest_s else Course.RAN_ON


def compare(before: ClockReadings, after: ClockReadings) -> ClockChange:
    """What happened between two polls."""
    elapsed_s = (after.time_ns - before.time_ns) * 1e-9
    host = course(before.host, after.host, elapsed_s)
    agent = course(before.agent, after.agent, elapsed_s)
    engine_changed = bool(before.engine_id and after.engine_id and before.engine_id != after.engine_id)
    starts = None if before.boots is None or after.boots is None or engine_changed else after.boots - before.boots
    engine = course(_seconds(before.engine_s), _seconds(after.engine_s), elapsed_s)
    rolled_back = starts is not None and starts < 0
    kind, evidence, sure = _kind(host, agent, engine, starts or 0)
    if kind:
        evidence = "; ".join([evidence, *_details(before, after, starts)])
    return ClockChange(kind, evidence, sure, host, agent, engine_changed, rolled_back)


def _kind(host: Course, agent: Course, engine: Course, starts: int) -> tuple[str, str, bool]:
    ran_on = {Course.RAN_ON, Course.WRAPPED}
    if host is Course.RESTARTED and agent not in ran_on:
        return "reboot", "the host's clock restarted", True
    if agent is Course.RESTARTED:
        if host in ran_on:
            return "snmp.agent.restart", "the agent's clock restarted while the host's ran on", True
        return "reboot", "the agent's clock restarted, and the host's is not known", False
    if starts > 0 or engine is Course.RESTARTED:
        return "snmp.agent.restart", "the SNMP engine restarted", True
    return "", "", True


def _details(before: ClockReadings, after: ClockReadings, starts: int | None) -> list[str]:
    details = []
    if before.agent and after.agent:
        details.append(f"sysUpTime {before.agent.seconds:.0f} s -> {after.agent.seconds:.0f} s")
    if before.host and after.host:
        details.append(f"host {before.host.seconds:.0f} s -> {after.host.seconds:.0f} s")
    if starts:
        details.append(f"snmpEngineBoots {before.boots} -> {after.boots}")
    return details


def began_ns(before: ClockReadings, after: ClockReadings, uptime_s: float) -> int:
    """When it restarted: as long ago as the new clock says, but after the previous poll."""
    return min(max(before.time_ns, after.time_ns - round(uptime_s * 1e9)), after.time_ns)


def wraps_at_first(readings: ClockReadings) -> tuple[int, int]:
    """How often the clocks of host and agent had wrapped before the first poll, as far as snmpEngineTime tells.

    snmpEngineTime counts seconds and does not wrap for 68 years; the host cannot be younger than its agent.

    >>> wraps_at_first(ClockReadings(0, ClockReading(100), ClockReading(200), 1, 42949675))
    (1, 1)
    >>> wraps_at_first(ClockReadings(0, ClockReading(100_000), ClockReading(90_000), 1, 900))
    (0, 0)
    """
    of_agent = 0
    if readings.agent is not None and readings.engine_s is not None:
        times = round((readings.engine_s - readings.agent.seconds) / readings.agent.period_s)
        if times > 0 and abs(readings.engine_s - readings.agent.seconds - times * readings.agent.period_s) < _BOTH_S:
            of_agent = times
    of_host = 0
    if readings.host is not None and readings.agent is not None and of_agent:
        agent_s = readings.agent.seconds + of_agent * readings.agent.period_s
        while readings.host.seconds + of_host * readings.host.period_s < agent_s - _BOTH_S:
            of_host += 1
    return of_host, of_agent


def _seconds(value: int | None) -> ClockReading | None:
    return None if value is None else ClockReading(value, 1.0, 31)
