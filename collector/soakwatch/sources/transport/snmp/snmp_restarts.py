"""One device's uptimes, poll by poll: as samples, and its restarts as events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from soakwatch.sources.profiles.profile_model import Clocks, Ticker
from soakwatch.sources.transport.snmp.restart_clocks import (
    ClockChange,
    ClockReading,
    ClockReadings,
    Course,
    began_ns,
    compare,
    wraps_at_first,
)
from soakwatch.sources.transport.snmp.snmp_connection import Value
from soakwatch_model.event import Event
from soakwatch_model.sample import Sample

ENGINE_ID = "1.3.6.1.6.3.10.2.1.1.0"


def clock_oids(clocks: Clocks) -> tuple[str, ...]:
    """The objects of all clocks, for the first poll."""
    tickers = (*clocks.agent, *clocks.host, *clocks.engine)
    return tuple(dict.fromkeys((*(ticker.oid for ticker in tickers), *clocks.boots, ENGINE_ID)))


def clock_readings(clocks: Clocks, time_ns: int, values: Mapping[str, Value]) -> ClockReadings:
    """The clocks in an answer; what is not a whole number counts as missing."""
    boots = next((number for oid in clocks.boots if (number := _whole(values.get(oid))) is not None), None)
    engine = _clock(clocks.engine, values)
    engine_id = values.get(ENGINE_ID)
    return ClockReadings(
        time_ns,
        _clock(clocks.host, values),
        _clock(clocks.agent, values),
        boots,
        None if engine is None else int(engine.seconds),
        engine_id if isinstance(engine_id, bytes) else b"",
    )


@dataclass(slots=True)
class Life:
    """What is kept from poll to poll."""

    last: ClockReadings | None = None
    oids: tuple[str, ...] = ()  # of the clocks that are there; none: not known, ask for all
    host_wraps: int = 0
    agent_wraps: int = 0

    def take(self, readings: ClockReadings, oids: tuple[str, ...] = ()) -> tuple[ClockChange | None, tuple[Event, ...]]:
        """Takes the readings of a poll, which these objects gave; returns what changed since the previous one, and its
        events. What is not there is not asked for again, until the device began anew: v1 answers it with an error."""
        before, self.last = self.last, readings
        self.oids = self.oids or oids
        if before is None:
            self.host_wraps, self.agent_wraps = wraps_at_first(readings)
            return None, ()
        change = compare(before, readings)
        if change.restarted:
            self.oids = ()
        self.host_wraps = _wraps(self.host_wraps, change.host)
        self.agent_wraps = _wraps(self.agent_wraps, change.agent)
        return change, _events(before, readings, change)

    @property
    def host_s(self) -> float | None:
        """How long the host is up, with its wraps; None if the device does not report it."""
        return _unwrapped(self.last.host if self.last else None, self.host_wraps)

    @property
    def agent_s(self) -> float | None:
        """How long the agent is up, with its wraps; None if the device does not report it."""
        return _unwrapped(self.last.agent if self.last else None, self.agent_wraps)

    def samples(self) -> tuple[Sample, ...]:
        """The uptimes now. Without a clock of the host the agent's is used for the device."""
        if self.last is None:
            return ()
        at_ns, host_s, agent_s = self.last.time_ns, self.host_s, self.agent_s
        samples = []
        if (uptime_s := host_s if host_s is not None else agent_s) is not None:
            samples.append(Sample("system.uptime", "", uptime_s, at_ns))
        if agent_s is not None:
            samples.append(Sample("system.agent.uptime", "", agent_s, at_ns))
        if self.last.boots is not None:
            samples.append(Sample("system.agent.boots", "", self.last.boots, at_ns))
        return tuple(samples)


def engine_event(before: bytes, after: bytes, begin_ns: int, end_ns: int) -> Event:
    """The agent's engine has another ID: it lost its memory, or it is another device."""
    detail = {"before": before.hex(), "after": after.hex()}
    return Event("snmp.engine.changed", "", "", begin_ns, end_ns, detail)


def _events(before: ClockReadings, after: ClockReadings, change: ClockChange) -> tuple[Event, ...]:
    events = []
    if change.kind:
        clock = after.host if change.kind == "reboot" and after.host is not None else after.agent
        uptime_s = clock.seconds if clock is not None else 0.0
        detail = {"evidence": change.evidence}
        if not change.sure:
            detail["doubt"] = (
                "the device does not report its host's uptime: a restart of the agent alone looks the same"
            )
        events.append(Event(change.kind, "", "", began_ns(before, after, uptime_s), after.time_ns, detail))
    if change.engine_changed:
        events.append(engine_event(before.engine_id, after.engine_id, before.time_ns, after.time_ns))
    if change.rolled_back:
        detail = {"before": str(before.boots), "after": str(after.boots)}
        events.append(Event("snmp.engine.rollback", "", "", before.time_ns, after.time_ns, detail))
    return tuple(events)


def _wraps(number: int, went: Course) -> int:
    if went is Course.RESTARTED:
        return 0
    return number + (went is Course.WRAPPED)


def _unwrapped(clock: ClockReading | None, wraps: int) -> float | None:
    return None if clock is None else round(clock.seconds + wraps * clock.period_s, 3)


def _clock(tickers: Sequence[Ticker], values: Mapping[str, Value]) -> ClockReading | None:
    for ticker in tickers:
        number = _whole(values.get(ticker.oid))
        if number is not None:
            return ClockReading(number, ticker.unit_s, ticker.bits)
    return None


def _whole(value: Value | None) -> int | None:
    return value if isinstance(value, int) and value >= 0 else None
