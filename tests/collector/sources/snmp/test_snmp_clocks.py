"""Reboot, restart of the agent, wrap after 497 days, new engine: each is what it is, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soakwatch.sources.transport.snmp.restart_clocks import ClockReading, ClockReadings, compare
from soakwatch.sources.transport.snmp.snmp_restarts import Life

S = 10**9
WRAP = 2**32
DAY = 86_400


def read(
    at_s: float,
    host: int | None,
    agent: int | None,
    boots: int | None = 3,
    engine_s: int | None = None,
    engine_id: bytes = b"one",
) -> ClockReadings:
    """One reading of the clocks; host and agent in hundredths of a second."""
    clocks = [None if ticks is None else ClockReading(ticks) for ticks in (host, agent)]
    return ClockReadings(round(at_s * S), clocks[0], clocks[1], boots, engine_s, engine_id)


CASES = {
    "all runs on": (read(0, 900_000, 500_000, 3, 5_000), read(10, 901_000, 501_000, 3, 5_010), ""),
    "the agent was started again": (read(0, 900_000, 500_000), read(10, 901_000, 300, 4), "snmp.agent.restart"),
    "the agent was started again, without memory": (
        read(0, 900_000, 500_000, 3, 5_000),
        read(10, 901_000, 300, 1, 3),
        "snmp.agent.restart",
    ),
    "the device rebooted": (read(0, 900_000, 500_000), read(60, 4_000, 1_000, 4), "reboot"),
    "the device rebooted in a long gap": (read(0, 4_000, 3_000), read(3600, 100_000, 99_000, 4), "reboot"),
    "only sysUpTime, began anew": (read(0, None, 500_000, None), read(10, None, 300, None), "reboot"),
    "only sysUpTime, ran on": (read(0, None, 500_000, None), read(10, None, 501_000, None), ""),
    "sysUpTime wrapped": (read(0, None, WRAP - 500, None), read(10, None, 500, None), ""),
    "both wrapped": (read(0, WRAP - 500, WRAP - 700), read(10, 500, 300), ""),
    "the host's clock wrapped": (read(0, WRAP - 500, 1000), read(10, 500, 2000), ""),
    "a reboot just before a wrap would be": (read(0, None, WRAP - 90_000, None), read(10, None, 500, None), "reboot"),
    "a restart while the host's clock wraps": (
        read(0, WRAP - 500, 80_000),
        read(10, 500, 200, 4),
        "snmp.agent.restart",
    ),
    "the engine began anew without sysUpTime": (read(0, None, None, 3), read(10, None, None, 4), "snmp.agent.restart"),
    "snmpEngineTime fell": (read(0, 900_000, None, 3, 5000), read(10, 901_000, None, 3, 4), "snmp.agent.restart"),
    "the host's clock jumps back, the agent's runs on": (read(0, 900_000, 500_000), read(10, 100, 501_000), ""),
    "a clock that is renewed every 30 s": (read(0, 900_000, 500_000), read(29, 900_000, 500_000), ""),
    "a clock that is rounded": (read(0, 900_099, 500_099), read(0.2, 900_000, 500_000), ""),
    "nothing is known": (read(0, None, None, None), read(10, None, None, None), ""),
    "the host's clock came": (read(0, None, 500_000), read(10, 900_000, 501_000), ""),
}


@pytest.mark.parametrize("name", CASES)
def test_what_happened(name: str) -> None:
    """A table of lives."""
    before, after, kind = CASES[name]
    assert compare(before, after).kind == kind


def test_a_reboot_is_certain_only_if_the_host_reports_its_own_uptime() -> None:
    """Else a restart of the agent looks the same, and the event says so."""
    assert compare(*CASES["the device rebooted"][:2]).sure
    assert not compare(*CASES["only sysUpTime, began anew"][:2]).sure
    life = Life()
    life.take(CASES["only sysUpTime, began anew"][0])
    _, (event,) = life.take(CASES["only sysUpTime, began anew"][1])
    assert "looks the same" in event.detail["doubt"]
    assert (event.begin_ns, event.end_ns) == (7 * S, 10 * S)  # up for 3 s at the 10th second


def test_a_new_engine_id_and_boots_that_fall_are_events_of_their_own() -> None:
    """With or without a restart."""
    life = Life()
    life.take(read(0, 900_000, 500_000, 7, 100, b"one"))
    _, events = life.take(read(10, 901_000, 501_000, 6, 110, b"one"))
    assert [event.kind for event in events] == ["snmp.engine.rollback"]
    _, events = life.take(read(20, 902_000, 100, 1, 1, b"two"))
    assert [event.kind for event in events] == ["snmp.agent.restart", "snmp.engine.changed"]
    assert events[1].detail == {"before": b"one".hex(), "after": b"two".hex()}


def test_the_uptime_goes_on_over_its_wrap() -> None:
    """Samples are of a device that is up for 500 days; after a reboot they begin at zero again."""
    life = Life()
    life.take(read(0, None, WRAP - 100, None))
    life.take(read(2, None, 100, None))
    uptime = {sample.metric: sample.value for sample in life.samples()}
    assert uptime["system.uptime"] == pytest.approx(WRAP / 100 + 1)
    life.take(read(100, None, 50, None))
    assert {sample.metric: sample.value for sample in life.samples()}["system.uptime"] == 0.5


def test_wraps_before_the_run_are_known_by_the_engine_time() -> None:
    """A device that is up for 1000 days is not 6 days old."""
    life = Life()
    ticks = 1000 * DAY * 100 % WRAP
    life.take(read(0, ticks, ticks, 1, 1000 * DAY))
    assert {sample.value for sample in life.samples() if "uptime" in sample.metric} == {1000.0 * DAY}


def test_without_a_clock_of_the_host_the_agents_stands_for_the_device() -> None:
    """And without any there is no sample, never a zero."""
    life = Life()
    life.take(read(0, None, 500, None))
    assert [sample.metric for sample in life.samples()] == ["system.uptime", "system.agent.uptime"]
    life = Life()
    life.take(read(0, None, None, None))
    assert life.samples() == ()


@settings(max_examples=300, derandomize=True, deadline=None)
@given(
    begin_s=st.integers(0, 3 * 497 * DAY),
    gaps=st.lists(st.integers(1, 4 * DAY), min_size=1, max_size=40),
    ahead_s=st.integers(0, 400 * DAY),
)
def test_a_device_that_runs_on_never_reboots(begin_s: int, gaps: list[int], ahead_s: int) -> None:
    """Whatever the time between the polls and wherever the clocks wrap."""
    life, time_s = Life(), 0
    for gap in [0, *gaps]:
        time_s += gap
        agent_s = begin_s + time_s
        _, events = life.take(read(time_s, (agent_s + ahead_s) * 100 % WRAP, agent_s * 100 % WRAP, 5, agent_s))
        assert events == ()
        assert life.agent_s == pytest.approx(agent_s)
