"""Uptimes and reboots, watched processes in lists, prompts and recognition."""

from __future__ import annotations

import pytest
from tests.collector.sources.network_cli.conftest import expected

from soakwatch.sources.abc import WatchedProcess
from soakwatch.sources.platforms.cli_units import Length
from soakwatch.sources.platforms.parsed import Process
from soakwatch.sources.profiles import loading as platforms
from soakwatch.sources.transport.network_cli.cli_poller import SECOND, UptimeReading, life
from soakwatch.sources.transport.network_cli.cli_processes import WatchedProcesses
from soakwatch.sources.transport.network_cli.cli_source import ANY, recognised


@pytest.mark.parametrize(
    ("before_s", "passed_s", "now", "reported"),
    [
        (1000, 60, Length(1060, 1), False),
        (1000, 60, Length(1020, 60), False),  # whole minutes
        (86400, 3590, Length(86400, 3600), False),  # whole hours
        (1000, 600, Length(180, 60), True),
        (300, 900, Length(360, 60), True),  # it is higher than before, and yet too low
        (59, 61, Length(60, 60), False),
        (5, 2, Length(0, 60), False),  # less than a step shows nothing
    ],
)
def test_a_restart_is_reported_where_no_rounding_explains_it(
    before_s: float, passed_s: float, now: Length, *, reported: bool
) -> None:
    time_ns = 10**18
    before = UptimeReading(time_ns, Length(before_s, now.step))
    _, sample, events = life(before, now, time_ns + int(passed_s * SECOND), {"reboot_reason": "power"})
    assert sample.value == now.seconds
    assert [event.kind for event in events] == (["reboot"] if reported else [])
    if reported:
        assert events[0].detail["reboot_reason"] == "power"
        assert time_ns <= events[0].begin_ns <= time_ns + int(passed_s * SECOND)


def test_who_is_watched_keeps_its_series_over_a_restart() -> None:
    watched = WatchedProcesses([WatchedProcess("bgp", "name", "bgp"), WatchedProcess("file", "pidfile", "/run/x.pid")])
    samples, events, faults = watched.take("cpu", [Process("bgp", 7, 0.5), Process("init", 1)], 1, whole=True)
    readings = {(sample.metric, sample.object): sample.value for sample in samples}
    assert readings["process.up", "process=bgp,instance=0"] == 1
    assert readings["process.cpu.utilization", "process=bgp,instance=0"] == 0.5
    assert [fault.object for fault in faults] == ["process=file"]
    assert events == []
    samples, _, _ = watched.take("memory", [Process("bgp", 7, memory=4096)], 2, whole=True)
    assert [(sample.metric, sample.value) for sample in samples] == [("process.memory.usage", 4096)]
    samples, events, _ = watched.take("cpu", [Process("init", 1)], 3, whole=True)
    assert [event.kind for event in events] == ["process.exit"]
    assert ("process.up", 0) in [(sample.metric, sample.value) for sample in samples]
    _, events, _ = watched.take("cpu", [Process("bgp", 9, 0.1)], 4, whole=True)
    assert [(event.kind, event.object) for event in events] == [("process.restart", "process=bgp,instance=0")]


def test_a_list_of_the_busiest_says_nothing_of_who_is_not_in_it() -> None:
    watched = WatchedProcesses([WatchedProcess("ips", "name", "ipsengine")])
    watched.take("top", [Process("ipsengine", 7, 0.5)], 1, whole=False)
    samples, events, faults = watched.take("top", [Process("newcli", 8, 0.5)], 2, whole=False)
    assert samples == []
    assert events == []
    assert "only the busiest" in faults[0].text


@pytest.mark.parametrize(
    ("platform", "prompt", "host"),
    [(platform, *each) for platform in platforms.platform_names() for each in expected(platform).prompts.items()],
)
def test_prompts(platform: str, prompt: str, host: str) -> None:
    dialect = platforms.platform(platform).dialect
    match = dialect.prompts().fullmatch(prompt)
    assert match is not None
    assert match["host"] == host
    assert dialect.prompts(host).fullmatch(prompt)
    assert ANY.prompts().fullmatch(prompt)
    assert dialect.prompts().fullmatch("Last login: today from 192.0.2.1") is None


@pytest.mark.parametrize(
    ("server", "banner", "refusal", "driver"),
    [
        ("SSH-2.0-HUAWEI-1.5", "", "", "huawei-vrp"),
        ("SSH-2.0-Comware-7.1.070", "", "", "hpe-comware"),
        ("SSH-2.0-ROSSSH", "", "", "mikrotik-routeros"),
        ("SSH-2.0-Cisco-1.25", "", 'Line has invalid autocommand "exec sh"', "cisco-ios"),
        ("SSH-2.0-Cisco-2.0", "", "", "auto"),
        ("SSH-2.0-OpenSSH_8.0", "", "CLINFR0329  Invalid command:'exec sh'.", "checkpoint-gaia"),
        ("SSH-2.0-OpenSSH_7.5", "", "error: unknown command: exec", "juniper-junos"),
        ("SSH-2.0-OpenSSH_7.8", "", "% Invalid input (at token 0: 'exec')", "arista-eos"),
        ("SSH-2.0-OpenSSH_9.2", "", "This account is currently not available.", None),
    ],
)
def test_systems_are_recognised(server: str, banner: str, refusal: str, driver: str | None) -> None:
    assert recognised(server, banner, refusal) == driver


def test_a_command_is_found_by_its_name_with_and_without_its_platform() -> None:
    assert platforms.platform("cisco-asa").command("cisco-asa/show_version") is not None
    assert platforms.platform("cisco-asa").command("cisco-ios/show_version") is None
