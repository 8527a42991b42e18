"""One trap receiver, many devices: who gets what, who may say what, and what cannot be shared."""

from __future__ import annotations

import asyncio
import socket
import sys
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.collector.sources.receivers.gathering import MAX_WAIT_S, Gathered, Sender, gather
from tests.collector.sources.receivers.shared import (
    LINK_DOWN,
    ONE,
    OTHER,
    STRANGER,
    gather_all,
    link_down,
    named,
    sent_from,
    site_of,
    stacks,
)

from soakwatch.core.errors import PlanError
from soakwatch.engine.plan_check import check_sources
from soakwatch.plan import plan_from_text
from soakwatch.record import RecordView
from soakwatch.sources.pollers.traps import Config, TrapPoller, start
from soakwatch.sources.receivers import sender_filter
from soakwatch.sources.receivers.listener import listeners
from soakwatch_testing.ports import free_port

COLD_START, IF_NAME = ".1.3.6.1.6.3.1.1.5.1", ".1.3.6.1.2.1.31.1.1.1.1.3"
SECRETS = {
    "ONE_C": "first",
    "OTHER_C": "second",
    "KEY_1": "authentic-one",
    "KEY_2": "authentic-two",
    "PRIV": "private-phrase",
}
ENGINES = {ONE: "8000000001020301", OTHER: "8000000001020302"}


@pytest.fixture(autouse=True)
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)


async def receiver(target: str, folder: Path, stack: AsyncExitStack, port: int, **keys: object) -> TrapPoller:
    """A source of traps of a target."""
    named_keys = {"from" if key == "senders" else key: value for key, value in keys.items()}
    config = Config.model_validate({"listen": f"127.0.0.1:{port}", **named_keys})
    return await start(config, site_of(target, folder), stack)


def fates(gathered: Mapping[str, Gathered], word: str) -> dict[str, float]:
    """How many messages of each source had a fate."""
    return {name: source.fate(word) for name, source in gathered.items()}


def test_each_device_has_its_own_traps_and_the_rest_goes_to_the_target_without_from(
    tmp_path: Path, send: Sender
) -> None:
    """Two devices send to one port, each with its community; a third address is in no ``from``."""

    async def main() -> dict[str, Gathered]:
        async with stacks("fw1", "fw2", "lab") as to:
            port = free_port()
            pollers = {
                "fw1": await receiver("fw1", tmp_path, to["fw1"], port, senders=[ONE], communities=["env:ONE_C"]),
                "fw2": await receiver(
                    "fw2", tmp_path, to["fw2"], port, senders=["127.0.0.3/32"], communities=["env:OTHER_C"]
                ),
                "lab": await receiver("lab", tmp_path, to["lab"], port),
            }
            for address, community in ((ONE, "first"), (OTHER, "second"), (OTHER, "first"), (STRANGER, "any")):
                code, output = await send(
                    "snmptrap",
                    f"--clientaddr={address}",
                    "-v2c",
                    "-c",
                    community,
                    f"127.0.0.1:{port}",
                    1,
                    LINK_DOWN,
                    IF_NAME,
                    "s",
                    f"if-{address}",
                )
                assert code == 0, output
            inform = ("-v2c", "-r0", "-t5", "-c", "second", f"127.0.0.1:{port}", 1, COLD_START)
            assert (await send("snmpinform", f"--clientaddr={OTHER}", *inform))[0] == 0
            refused = ("-v2c", "-r0", "-t0.3", "-c", "second", f"127.0.0.1:{port}", 1, COLD_START)
            assert (await send("snmpinform", f"--clientaddr={ONE}", *refused))[0] == 1
            assert "is shared with fw2, lab:" in " ".join(pollers["fw1"].facts().notes)
            return await gather_all(pollers, lambda gathered: sum(source.total for source in gathered.values()) == 6)

    gathered = asyncio.run(main())
    assert {name: [event.object for event in source.events] for name, source in gathered.items()} == {
        "fw1": [f"interface=if-{ONE}"],
        "fw2": [f"interface=if-{OTHER}", ""],
        "lab": [f"interface=if-{STRANGER}"],
    }
    assert gathered["fw2"].events[0].detail["address"] == OTHER
    assert fates(gathered, "refused") == {"fw1": 1, "fw2": 1, "lab": 0}
    assert fates(gathered, "foreign") == {"fw1": 0, "fw2": 0, "lab": 0}


def test_two_that_claim_one_device_both_hear_it_and_an_unknown_sender_is_counted_by_all(tmp_path: Path) -> None:
    """Also two sources of one target, whose series have names of their own."""

    async def main() -> dict[str, Gathered]:
        async with stacks("a", "b", "again") as to:
            port = free_port()
            pollers = {
                "a": await receiver("a", tmp_path, to["a"], port, senders=[ONE]),
                "b": await receiver("b", tmp_path, to["b"], port, senders=["127.0.0.0/29"]),
                "again": await receiver("a", tmp_path, to["again"], port, senders=[ONE], storm=1),
            }
            await sent_from(ONE, port, *[link_down(named("eth1"))] * 3)
            await sent_from(STRANGER, port, link_down())
            gathered = await gather_all(
                pollers, lambda gathered: all(source.total == 4 for source in gathered.values())
            )
            assert not {*gathered["a"].counted} & {*gathered["again"].counted}
            assert f"source=traps:{port}-2,fate=event" in gathered["again"].counted
            return gathered

    gathered = asyncio.run(main())
    assert fates(gathered, "event") == {"a": 3, "b": 3, "again": 1}
    assert fates(gathered, "foreign") == {"a": 1, "b": 1, "again": 1}


def test_the_last_source_closes_the_port_and_a_returning_one_receives_again(tmp_path: Path) -> None:
    """The source that opened the port leaves first; the other loses nothing; then the port is free."""

    async def main() -> None:
        async with stacks("fw1", "fw2", "later") as to:
            port = free_port()
            await receiver("fw1", tmp_path, to["fw1"], port, senders=[ONE])
            second = await receiver("fw2", tmp_path, to["fw2"], port, senders=[OTHER])
            await to["fw1"].aclose()
            await sent_from(OTHER, port, link_down(named("eth1")))
            await sent_from(ONE, port, link_down(named("eth1")))
            assert (await gather(second, lambda gathered: gathered.total == 2)).fate("foreign") == 1
            again = await receiver("fw1", tmp_path, to["fw1"], port, senders=[ONE])
            await sent_from(ONE, port, link_down(named("eth1")))
            assert (await gather(again, lambda gathered: gathered.total == 1)).kinds == ["link.down"]
            await to["fw1"].aclose()
            await to["fw2"].aclose()
            assert not listeners().by_address
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
                free.bind(("127.0.0.1", port))

    asyncio.run(main())


def test_many_that_open_one_port_at_the_same_time_share_it(tmp_path: Path) -> None:
    """As at the start of a run, also if some are given up while they start."""

    async def main() -> dict[str, Gathered]:
        names = [f"fw{number}" for number in range(2, 22)]
        async with stacks(*names) as to:
            port = free_port()

            async def source(number: int, name: str) -> TrapPoller:
                return await receiver(name, tmp_path, to[name], port, senders=[f"127.0.0.{number}"])

            tasks = [asyncio.create_task(source(number, name)) for number, name in enumerate(names, 2)]
            await asyncio.sleep(0)
            tasks[0].cancel()
            done = await asyncio.gather(*tasks, return_exceptions=True)
            pollers = {name: poller for name, poller in zip(names, done, strict=True) if isinstance(poller, TrapPoller)}
            assert len(pollers) == 19
            for number, name in enumerate(names, 2):
                await sent_from(f"127.0.0.{number}", port, link_down(named(name)))
            return await gather_all(pollers, lambda gathered: all(source.fate("event") for source in gathered.values()))

    gathered = asyncio.run(main())
    assert all([event.object for event in source.events] == [f"interface={name}"] for name, source in gathered.items())


def test_users_of_v3_are_combined_and_each_source_receives_its_own(tmp_path: Path, send: Sender) -> None:
    """Traps of two engines with one user name, informs of two users; no device gets in with another device's user."""
    both = {"user": "soak", "priv": "env:PRIV", "auth_protocol": "SHA-256"}
    source, other = {**both, "auth": "env:KEY_1"}, {**both, "auth": "env:KEY_2"}
    users = {
        "fw1": [{**source, "engine_id": ENGINES[ONE]}, {**source, "user": "inf1"}],
        "fw2": [{**other, "engine_id": ENGINES[OTHER]}, {**other, "user": "inf2"}],
    }

    def v3(name: str, key: str) -> tuple[str, ...]:
        return (
            "-v3",
            "-u",
            name,
            "-l",
            "authPriv",
            "-a",
            "SHA-256",
            "-A",
            SECRETS[key],
            "-x",
            "AES",
            "-X",
            SECRETS["PRIV"],
        )

    async def main() -> dict[str, Gathered]:
        async with stacks("fw1", "fw2") as to:
            port = free_port()
            address_and_port = f"127.0.0.1:{port}"
            pollers = {
                name: await receiver(name, tmp_path, to[name], port, senders=[address], users=users[name])
                for name, address in (("fw1", ONE), ("fw2", OTHER))
            }
            for address, key, user in ((ONE, "KEY_1", "inf1"), (OTHER, "KEY_2", "inf2")):
                trap: tuple[str | int, ...] = (
                    "-e",
                    f"0x{ENGINES[address]}",
                    *v3("soak", key),
                    address_and_port,
                    1,
                    COLD_START,
                )
                assert (await send("snmptrap", f"--clientaddr={address}", *trap))[0] == 0
                inform: tuple[str | int, ...] = (
                    *v3(user, key),
                    "-r1",
                    "-t5",
                    address_and_port,
                    1,
                    LINK_DOWN,
                    IF_NAME,
                    "s",
                    "eth3",
                )
                assert (await send("snmpinform", f"--clientaddr={address}", *inform))[0] == 0
            gathered = await gather_all(
                pollers, lambda gathered: all(source.fate("event") == 2 for source in gathered.values())
            )
            strange: tuple[str | int, ...] = (*v3("inf2", "KEY_2"), "-r0", "-t1", address_and_port, 1, COLD_START)
            assert (await send("snmpinform", f"--clientaddr={ONE}", *strange))[0] == 1
            await gather(pollers["fw1"], lambda gathered: gathered.fate("refused") >= 1, gathered["fw1"])
            await to["fw1"].aclose()
            inform = (*v3("inf2", "KEY_2"), "-r1", "-t5", address_and_port, 1, COLD_START)
            assert (await send("snmpinform", f"--clientaddr={OTHER}", *inform))[0] == 0
            gathered["fw2"] = await gather(
                pollers["fw2"], lambda gathered: gathered.fate("event") == 3, gathered["fw2"]
            )
            return gathered

    gathered = asyncio.run(main())
    assert gathered["fw1"].kinds == ["snmp.cold_start", "link.down"]
    assert gathered["fw2"].kinds == ["snmp.cold_start", "link.down", "snmp.cold_start"]
    assert {event.detail["address"] for event in gathered["fw2"].events} == {OTHER}


@pytest.mark.parametrize(
    ("first", "second", "sentence"),
    [
        ({}, {}, r"fw2: fw1 listens at 127\.0\.0\.1:\d+ as well and neither has from:"),
        (
            {"senders": [ONE], "users": [{"user": "soak", "auth": "env:KEY_1"}]},
            {"senders": [OTHER], "users": [{"user": "soak", "auth": "env:KEY_2"}]},
            "fw2: fw1 gives the user soak another password or protocol on the same address: give the same ones",
        ),
        (
            {"senders": [ONE]},
            {"listen": "0.0.0.0"},
            r"fw2: 0\.0\.0\.0:\d+ cannot be opened .*: traps of fw1 at 127\.0\.0\.1:\d+ has that port",
        ),
    ],
)
def test_what_cannot_be_shared_names_both_targets(
    tmp_path: Path, first: dict[str, object], second: dict[str, object], sentence: str
) -> None:
    """One sentence with the remedy and without the secret; the first source goes on."""

    async def main() -> str:
        async with stacks("fw1", "fw2") as to:
            port = free_port()
            poller = await receiver("fw1", tmp_path, to["fw1"], port, **first)
            listen = {"listen": f"{second['listen']}:{port}"} if "listen" in second else {}
            with pytest.raises(PlanError, match=sentence) as caught:
                await receiver("fw2", tmp_path, to["fw2"], port, **{**second, **listen})
            await to["fw2"].aclose()
            await sent_from(ONE, port, link_down(named("eth1")))
            assert (await gather(poller, lambda gathered: gathered.total == 1)).fate("event") == 1
            return str(caught.value)

    error = asyncio.run(main())
    assert not any(secret in error for secret in SECRETS.values())


def test_a_device_that_is_named_is_found_again_when_its_address_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host name is resolved again; when the name server fails, the addresses stay."""
    addresses: list[str] = [ONE]
    asked: list[str] = []

    def resolve(name: str, *_: object, **__: object) -> list[tuple[object, ...]]:
        asked.append(name)
        if not addresses:
            raise socket.gaierror(-3, "Temporary failure in name resolution")
        return [(socket.AF_INET, socket.SOCK_DGRAM, 17, "", (address, 0)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(sender_filter, "AGAIN_S", 0.02)

    async def settled(poller: TrapPoller, port: int, address: str) -> Gathered:
        """Send until it is heard."""
        before = (await gather(poller, lambda _: True)).fate("event")
        async with asyncio.timeout(MAX_WAIT_S):
            while True:
                await sent_from(address, port, link_down(named("eth1")))
                gathered = await gather(poller, lambda gathered: gathered.total > 0)
                if gathered.fate("event") > before:
                    return gathered

    async def main() -> None:
        async with stacks("fw1") as to:
            port = free_port()
            poller = await receiver("fw1", tmp_path, to["fw1"], port, senders=["fw1.lab"], storm=10_000)
            await settled(poller, port, ONE)
            addresses[:] = [OTHER]
            await settled(poller, port, OTHER)
            before = (await gather(poller, lambda _: True)).fate("foreign")
            await sent_from(ONE, port, link_down(named("eth1")))
            await gather(poller, lambda gathered: gathered.fate("foreign") == before + 1)
            addresses.clear()
            times = len(asked)
            async with asyncio.timeout(MAX_WAIT_S):
                while len(asked) < times + 3:
                    await asyncio.sleep(0.02)
            await settled(poller, port, OTHER)

    asyncio.run(main())
    assert set(asked) == {"fw1.lab"}


def test_ipv6_and_both_at_once(tmp_path: Path, send: Sender) -> None:
    """``[::1]`` is heard over IPv6; ``[::]`` over IPv4 too, with senders as ``from`` calls them; both are answered."""

    async def main() -> dict[str, Gathered]:
        async with stacks("six", "four", "alone") as to:
            port, own = free_port(), free_port()
            pollers = {
                "six": await receiver(
                    "six",
                    tmp_path,
                    to["six"],
                    port,
                    listen=f"[::]:{port}",
                    senders=["::1"],
                    users=[{"user": "soak", "auth": "env:KEY_1"}],
                ),
                "four": await receiver(
                    "four",
                    tmp_path,
                    to["four"],
                    port,
                    listen=f"[::]:{port}",
                    senders=[ONE],
                    users=[{"user": "soak", "auth": "env:KEY_1"}],
                ),
                "alone": await receiver("alone", tmp_path, to["alone"], own, listen=f"[::1]:{own}"),
            }
            v3 = ("-v3", "-u", "soak", "-l", "authNoPriv", "-a", "SHA", "-A", SECRETS["KEY_1"])
            v2 = ("-v2c", "-c", "any")
            last = ("-r1", "-t5")
            for version in (v2, v3):
                for how in ([f"udp6:[::1]:{port}"], [f"--clientaddr={ONE}", f"udp:127.0.0.1:{port}"]):
                    code, output = await send("snmpinform", *version, *last, *how, 1, COLD_START)
                    assert code == 0, output
            code, output = await send("snmpinform", *v2, *last, f"udp6:[::1]:{own}", 1, COLD_START)
            assert code == 0, output
            return await gather_all(
                pollers, lambda gathered: sum(source.fate("event") for source in gathered.values()) == 5
            )

    gathered = asyncio.run(main())
    assert {name: [event.detail["address"] for event in source.events] for name, source in gathered.items()} == {
        "six": ["::1"] * 2,
        "four": [ONE] * 2,
        "alone": ["::1"],
    }


def test_two_switches_that_lose_300_ports_each_have_one_event_a_port(tmp_path: Path) -> None:
    """Ten datagrams a port at once, from both, to one port."""

    async def main() -> dict[str, Gathered]:
        async with stacks("sw1", "sw2") as to:
            port = free_port()
            pollers = {
                name: await receiver(name, tmp_path, to[name], port, senders=[address], storm=1)
                for name, address in (("sw1", ONE), ("sw2", OTHER))
            }
            burst = [link_down(named(f"eth{index}")) for index in range(300)] * 10
            await asyncio.gather(sent_from(ONE, port, *burst), sent_from(OTHER, port, *burst))
            return await gather_all(pollers, lambda gathered: all(source.total == 3000 for source in gathered.values()))

    for source in asyncio.run(main()).values():
        assert sorted(event.object for event in source.events) == sorted(
            f"interface=eth{index}" for index in range(300)
        )
        assert (source.fate("dropped"), source.fate("suppressed")) == (0, 2700)


PLAN = """\
phases: [{{soak: 6s}}]
targets:
  fw1: {{role: dut, sources: [{{traps: {{listen: "127.0.0.1:{port}", from: [127.0.0.2], timeout: 60s}}}}]}}
  fw2: {{role: dut, sources: [{{traps: {{listen: "127.0.0.1:{port}", from: [127.0.0.3], timeout: 60s}}}}]}}
"""


@pytest.mark.slow
def test_a_plan_of_two_devices_with_one_port_is_checked_and_run(tmp_path: Path, send: Sender) -> None:
    """Both sources answer in the check before the run, and each device's trap is in the record under its target."""
    port = free_port()
    text = PLAN.format(port=port)
    checks = asyncio.run(check_sources(plan_from_text(text, "plan.yaml"), tmp_path))
    assert [check.error for check in checks] == [None, None]
    (tmp_path / "plan.yaml").write_text(text)

    async def main() -> str:
        run = await asyncio.create_subprocess_exec(
            Path(sys.executable).with_name("soakwatch"),
            "run",
            str(tmp_path / "plan.yaml"),
            "--runs",
            str(tmp_path / "runs"),
            "--no-web",
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            output = asyncio.create_task(run.communicate())
            until = time.monotonic() + MAX_WAIT_S
            while f":{port:04X} " not in Path("/proc/net/udp").read_text():
                assert time.monotonic() < until, "no source listens"
                assert run.returncode is None, (await output)[0].decode()
                await asyncio.sleep(0.05)
            async with asyncio.timeout(MAX_WAIT_S):
                while not output.done():  # the second source may begin to listen a moment after the first
                    for address in (ONE, OTHER):
                        trap = ("-v2c", "-c", "any", f"127.0.0.1:{port}", 1, LINK_DOWN, IF_NAME, "s", f"if-{address}")
                        assert (await send("snmptrap", f"--clientaddr={address}", *trap))[0] == 0
                    await asyncio.wait((output,), timeout=0.4)
                return (await output)[0].decode()
        finally:
            if run.returncode is None:
                run.kill()
                await run.wait()

    output = asyncio.run(main())
    (record,) = (tmp_path / "runs").glob("*/record.sqlite")
    with RecordView.open(record.parent) as view:
        events = {
            (stored.event.target, stored.event.object) for stored in view.events() if stored.event.kind == "link.down"
        }
    assert events == {("fw1", f"interface=if-{ONE}"), ("fw2", f"interface=if-{OTHER}")}, output
