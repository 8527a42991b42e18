"""Neighbours and sessions over a command line: what is sampled, what is left out, and what is gone."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import pytest
from tests.collector.sources.network_cli.conftest import Clock, output, with_poller
from tests.collector.sources.network_cli.test_cli_parsers import EXPECTED, parse, read, results_of
from tests.collector.sources.network_cli.test_cli_session import ios, values

from soakwatch.sources.abc import Identifies, Poller, SourceError
from soakwatch.sources.platforms.parsed import Parsed

UP, UPTIME, PREFIXES = "network.session.up", "network.session.uptime", "network.session.prefixes"
NORTH = "protocol=bgp,peer=198.18.1.2,context=default"


@pytest.mark.parametrize("platform", list(EXPECTED))
def test_nothing_is_listed_that_the_device_does_not_list(platform: str) -> None:
    for name, wanted in EXPECTED[platform].lists.items():
        assert results_of(parse(platform, name)) == pytest.approx(wanted), name


def test_a_list_that_hangs_is_missing_and_nobody_on_it_is_lost(tmp_path: Path) -> None:
    """All else answers. The fault names the protocol, each time that it hangs anew; no session is read as down."""
    device = ios()
    device.answers["show bgp all summary"] = output("cisco-ios", "show_bgp_summary")
    found: list[list[tuple[str, str]]] = []

    async def work(poller: Poller, clock: Clock) -> None:
        for hangs in (False, True, False, True):
            device.silent = {"show bgp all summary"} if hangs else set()
            answer = await poller.poll(clock.now)
            clock.sleep(61)
            readings = values(answer)
            assert ("system.cpu.utilization", "") in readings
            assert readings.get((UP, NORTH)) == (None if hangs else 1)
            found.append([(fault.metric, fault.object) for fault in answer.faults if fault.object.startswith("proto")])

    commands = ("show_processes_cpu", "show_bgp_summary")
    asyncio.run(with_poller(device, tmp_path, work, os="cisco-ios", commands=commands))
    assert found == [[], [(UP, "protocol=bgp")], [], [(UP, "protocol=bgp")]]


def test_a_list_that_hangs_before_anything_was_answered_is_missing_once_something_is(tmp_path: Path) -> None:
    """The poll that hung brings nothing, so the next one that brings something says which list was not read."""
    device = ios()
    device.answers["show bgp all summary"] = output("cisco-ios", "show_bgp_summary")

    async def work(poller: Poller, clock: Clock) -> None:
        first = await poller.poll(clock.now)
        assert values(first)[UP, NORTH] == 1
        clock.sleep(58)
        await poller.poll(clock.now)  # the memory, which is due again after the list
        device.silent = {"show bgp all summary"}
        for _ in range(2):  # asked again at once, for the device may be down; then the others get their turn
            clock.sleep(2)
            with pytest.raises(SourceError, match="after 'show bgp all summary'"):
                await poller.poll(clock.now)
        clock.sleep(10)
        after = await poller.poll(clock.now)
        assert ("system.memory.usage", "") in values(after)
        assert (UP, NORTH) not in values(after)
        assert (UP, "protocol=bgp") in [(fault.metric, fault.object) for fault in after.faults]
        device.silent = set()
        clock.sleep(600)
        last = await poller.poll(clock.now)
        assert values(last)[UP, NORTH] == 1
        assert not [fault for fault in last.faults if fault.object.startswith("protocol=")]

    commands = ("show_bgp_summary", "show_processes_memory")
    asyncio.run(with_poller(device, tmp_path, work, os="cisco-ios", commands=commands))


@pytest.mark.parametrize(
    ("parsed", "words"),
    [
        (parse("cisco-ios", "show_bgp_summary"), "administratively down"),
        (parse("cisco-ios", "show_ospf_neighbor"), "at two-way"),
        (parse("cisco-nxos", "show_bgp_summary"), "administratively down"),
        (parse("arista-eos", "show_ip_bgp_summary"), "administratively down"),
        (parse("juniper-junos", "show_bfd_session"), "administratively down"),
        (parse("nokia-timos", "show_router_bgp_summary"), "administratively down"),
        (parse("huawei-vrp", "display_bgp_peer"), "administratively down"),
        (parse("cisco-iosxr", "show_bfd_session"), "administratively down"),
    ],
)
def test_what_somebody_shut_down_is_no_failure(parsed: Parsed, words: str) -> None:
    assert list(parsed.unsampled.values()) == [words]
    assert not {value.object for value in parsed.values} & set(parsed.unsampled)


@pytest.mark.parametrize(
    "parser",
    [
        partial(read, "cisco-ios", "show_bgp_summary"),
        partial(read, "cisco-ios", "show_ospf_neighbor"),
        partial(read, "cisco-ios", "show_isis_neighbors"),
        partial(read, "cisco-ios", "show_bfd_neighbors"),
        partial(read, "cisco-iosxr", "show_bfd_session"),
        partial(read, "cisco-ios", "show_etherchannel"),
        partial(read, "cisco-iosxr", "show_bundle"),
        partial(read, "cisco-ios", "show_crypto_session"),
        partial(read, "arista-eos", "show_ip_bgp_summary"),
        partial(read, "cisco-nxos", "show_ospf_neighbors"),
        partial(read, "juniper-junos", "show_bgp_summary"),
        partial(read, "nokia-timos", "show_router_bgp_summary"),
        partial(read, "nokia-timos", "show_router_ospf_neighbor"),
        partial(read, "nokia-timos", "show_router_bfd_session"),
        partial(read, "huawei-vrp", "display_ospf_peer"),
        partial(read, "hpe-comware", "display_isis_peer"),
        partial(read, "huawei-vrp", "display_bgp_peer"),
        partial(read, "huawei-vrp", "display_isis_peer"),
        partial(read, "huawei-vrp", "display_bfd_session"),
        partial(read, "hpe-comware", "display_bgp_peer"),
        partial(read, "hpe-comware", "display_bfd_session"),
        partial(read, "nokia-timos", "show_router_isis_adjacency"),
    ],
)
def test_an_answer_in_other_words_is_counted_and_an_empty_one_is_not(parser: object) -> None:
    assert callable(parser)
    assert parser("Some neighbours are fine, others are not").strange > 0
    assert parser("").strange == 0
    assert parser("").values == ()


def test_a_lost_neighbour_that_is_struck_off_the_list_is_down_and_one_that_was_shut_is_not(tmp_path: Path) -> None:
    device = ios()
    table = output("cisco-ios", "show_bgp_summary")
    device.answers["show bgp all summary"] = table
    device.answers["show ip ospf neighbor detail"] = output("cisco-ios", "show_ospf_neighbor")
    ospf = "protocol=ospf,peer=198.18.2.7,context=default"
    seen: list[dict[tuple[str, str], float]] = []
    notes: list[str] = []

    async def polls(poller: Poller, clock: Clock) -> None:
        async def look() -> None:
            seen.append(values(await poller.poll(clock.now)))
            clock.sleep(61)

        await look()
        device.answers["show ip ospf neighbor detail"] = ""
        await look()
        device.answers["show bgp all summary"] = table.replace("3w2d           40", "00:00:09 Idle (Admin)")
        await look()
        device.answers["show bgp all summary"] = table.replace("198.18.1.2", "what is this")
        await look()
        assert isinstance(poller, Identifies)
        notes.extend(poller.facts().notes)

    asyncio.run(with_poller(device, tmp_path, polls, os="cisco-ios"))
    first, lost, shut, strange = seen
    assert (first[UP, NORTH], first[UPTIME, NORTH], first[PREFIXES, f"{NORTH},family=ipv4 unicast"]) == (1, 1987200, 40)
    assert (first[UP, ospf], lost[UP, ospf], strange[UP, ospf]) == (1, 0, 0)
    assert (UPTIME, ospf) not in lost
    assert (lost[UP, NORTH], (UP, NORTH) in shut, (UP, NORTH) in strange) == (1, False, False)
    assert any("is not sampled" in note or "are not sampled" in note for note in notes)


def test_neighbours_are_asked_once_a_minute_and_a_refusal_is_no_fault(tmp_path: Path) -> None:
    device = ios()
    device.answers["show bgp all summary"] = output("cisco-ios", "show_bgp_summary")
    faults: list[str] = []

    async def polls(poller: Poller, clock: Clock) -> None:
        for _ in range(30):
            answer = await poller.poll(clock.now)
            faults.extend(fault.text for fault in answer.faults)
            clock.sleep(3)

    asyncio.run(with_poller(device, tmp_path, polls, os="cisco-ios"))
    assert device.typed.count("show bgp all summary") == 2
    assert device.typed.count("show standby brief") == 1
    assert not [text for text in faults if "standby" in text or "bgp" in text]


def test_a_time_of_the_device_becomes_how_long_ago_it_was(tmp_path: Path) -> None:
    device = ios()
    device.version = "OpenSSH_7.8"
    device.answers = {"show ip bgp summary vrf all | json": output("arista-eos", "show_ip_bgp_summary")}
    device.unpage = ("terminal length 0", "terminal width 32767")
    got: list[dict[tuple[str, str], float]] = []

    async def polls(poller: Poller, clock: Clock) -> None:
        clock.sleep(3600.5)
        got.append(values(await poller.poll(clock.now)))

    asyncio.run(with_poller(device, tmp_path, polls, os="arista-eos", commands=("show_ip_bgp_summary",)))
    assert got[0][UPTIME, NORTH] == pytest.approx(3600)
