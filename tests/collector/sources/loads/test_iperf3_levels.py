"""The load ``iperf3`` from one level to the next: a server that is still busy, datagrams that are still under way."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.collector.sources.loads.iperf3_kit import Figures, clients_of, failing, figures, loaded, needs_iperf3, until

from soakwatch.sources.abc import Poller, SourceError
from soakwatch.sources.loads.iperf3 import Config, DrivenClient
from soakwatch.sources.loads.iperf3 import supervisor as keeping
from soakwatch_testing import iperf3_double as double
from soakwatch_testing.ports import free_port

TX = ("load.tx.packets", "")


class Watched:
    """A poller whose counters may not fall, and which may report no restart."""

    def __init__(self, poller: Poller) -> None:
        self._poller = poller
        self.sent = 0.0

    async def poll(self, now_ns: int) -> object:
        """One poll."""
        answer = await self._poller.poll(now_ns)
        assert [event for event in answer.events if event.kind == "generator.restart"] == []
        for sample in answer.samples:
            if (sample.metric, sample.object) == TX:
                assert sample.value >= self.sent
                self.sent = sample.value
        return answer


def udp(port: int, program: str, mood: str) -> dict[str, object]:
    """A driven stand-in."""
    return {
        "drive": True,
        "server": "127.0.0.1",
        "port": port,
        "rate": "8M",
        "udp": True,
        "length": 1000,
        "program": program,
        "options": ["--extra-data", mood],
        "interval": "300ms",
        "timeout": "10s",
    }


async def goes_on(client: Watched, packets: int) -> Figures:
    """Until so many more were sent than by now."""
    wanted = client.sent + packets
    return await until(client, lambda seen: seen.get(TX, 0) >= wanted)  # type: ignore[arg-type]


@pytest.fixture
def stand_in(tmp_path: Path) -> str:
    """An iperf3 of a version with ``--json-stream``."""
    return str(double.script(tmp_path))


def test_a_server_that_is_still_busy_at_a_change_of_level(tmp_path: Path, stand_in: str) -> None:
    """It is asked again until it is free: the level is taken, and the counters go on."""
    port, refusals = free_port(), tmp_path / "refusals"

    async def go() -> None:
        async with (
            loaded("iperf3", tmp_path, serve=True, port=port, program=stand_in),
            loaded("iperf3", tmp_path, **udp(port, stand_in, f"busy:{refusals}")) as poller,
        ):
            assert isinstance(poller, DrivenClient)
            client = Watched(poller)
            await poller.drive(1.0)
            await goes_on(client, 300)
            for level, busy in ((0.5, 3), (1.0, 1), (0.25, 0)):
                refusals.write_text(str(busy))
                await poller.drive(level)
                assert refusals.read_text() == "0", "each was met"
                seen = await goes_on(client, 100)
                assert seen["load.offered.packet.rate", ""] == 1000 * level

    asyncio.run(go())


def test_a_server_that_stays_busy(tmp_path: Path, stand_in: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The polls report it once the patience is over; when it is free at last, that is no restart either."""
    monkeypatch.setattr(keeping, "PATIENCE_S", 0.4)
    port, refusals = free_port(), tmp_path / "refusals"

    async def go() -> None:
        async with (
            loaded("iperf3", tmp_path, serve=True, port=port, program=stand_in),
            loaded("iperf3", tmp_path, **udp(port, stand_in, f"busy:{refusals}")) as poller,
        ):
            assert isinstance(poller, DrivenClient)
            client = Watched(poller)
            await poller.drive(1.0)
            await goes_on(client, 300)
            refusals.write_text("1000")
            with pytest.raises(SourceError, match=r"the server is busy .* next attempt after 500 ms"):
                await poller.drive(0.5)
            await failing(poller, "the server is busy")
            refusals.write_text("0")
            await goes_on(client, 100)

    asyncio.run(go())


def test_a_client_that_never_gets_through_is_given_up(
    tmp_path: Path, stand_in: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """iperf3 itself would wait for half a minute."""
    monkeypatch.setattr(keeping, "HANDSHAKE_S", 1.0)
    port, refusals = free_port(), tmp_path / "refusals"

    async def go() -> None:
        async with (
            loaded("iperf3", tmp_path, serve=True, port=port, program=stand_in),
            loaded("iperf3", tmp_path, **udp(port, stand_in, f"stuck:{refusals}")) as poller,
        ):
            assert isinstance(poller, DrivenClient)
            client = Watched(poller)
            await poller.drive(1.0)
            await goes_on(client, 300)
            refusals.write_text("2")
            await poller.drive(0.5)
            assert refusals.read_text() == "0"
            await goes_on(client, 100)
            await poller.drive(0)
            assert clients_of(port) == []

    asyncio.run(go())


def test_a_drain_without_datagrams() -> None:
    """A key that means nothing is refused, with the remedy."""
    for keys in ({}, {"udp": True, "rate": "1M", "reverse": True}):
        with pytest.raises(ValueError, match="drain needs udp: true without reverse"):
            Config.model_validate({"drive": True, "server": "127.0.0.1", "drain": "1s", **keys})


# --- a real one, behind a queue that overflows -----------------------------------------------------------------

GEN, MIDDLE, SINK = (f"soak{os.getpid()}{name}" for name in "gms")


def ip(*words: str) -> None:
    """As root, in namespaces of this test only."""
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"not here: {' '.join(words)}: {done.stderr}")


@pytest.fixture(params=["all in one queue", "control beside it"])
def bottleneck(request: pytest.FixtureRequest) -> Iterator[None]:
    """A generator, a router and a sink; towards the sink 8 Mbit/s out of a queue of 200 packets (300 ms)."""
    if os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("tc"):
        pytest.skip("needs root, ip and tc")
    try:
        for space in (GEN, MIDDLE, SINK):
            ip("ip", "netns", "add", space)
            ip("ip", "-n", space, "link", "set", "lo", "up")
        for space, subnet in ((GEN, "198.18.1"), (SINK, "198.18.2")):
            near = f"to{space[-1]}"
            ip("ip", "-n", MIDDLE, "link", "add", near, "type", "veth", "peer", "name", "eth", "netns", space)
            ip("ip", "-n", MIDDLE, "address", "add", f"{subnet}.1/24", "dev", near)
            ip("ip", "-n", MIDDLE, "link", "set", near, "up")
            ip("ip", "-n", space, "address", "add", f"{subnet}.10/24", "dev", "eth")
            ip("ip", "-n", space, "link", "set", "eth", "up")
            ip("ip", "-n", space, "route", "add", "default", "via", f"{subnet}.1")
        ip("ip", "netns", "exec", MIDDLE, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        tc = ("tc", "-n", MIDDLE)
        ip(*tc, "qdisc", "add", "dev", "tos", "root", "handle", "1:", "htb", "default", "10")
        for name, first in (("10", "1"), ("20", "0")):
            ip(
                *tc,
                "class",
                "add",
                "dev",
                "tos",
                "parent",
                "1:",
                "classid",
                f"1:{name}",
                "htb",
                "prio",
                first,
                "rate",
                "8mbit",
                "burst",
                "15k",
                "cburst",
                "15k",
            )
            ip(*tc, "qdisc", "add", "dev", "tos", "parent", f"1:{name}", "pfifo", "limit", "200")
        if request.param == "control beside it":
            ip(
                *tc,
                "filter",
                "add",
                "dev",
                "tos",
                "parent",
                "1:",
                "protocol",
                "ip",
                "u32",
                "match",
                "ip",
                "protocol",
                "6",
                "0xff",
                "flowid",
                "1:20",
            )
        yield
    finally:
        for space in (GEN, MIDDLE, SINK):
            subprocess.run(["ip", "netns", "delete", space], check=False, capture_output=True)


def within(folder: Path, space: str) -> str:
    """iperf3 in a namespace, to be named as ``program``."""
    file = folder / f"iperf3-{space}"
    file.write_text(f'#!/bin/sh\nexec ip netns exec {space} iperf3 "$@"\n')
    file.chmod(0o755)
    return str(file)


@needs_iperf3
@pytest.mark.usefixtures("bottleneck")
def test_down_from_an_overload(tmp_path: Path) -> None:
    """The next test is not taken for the one before: it begins at once, and nothing of it is lost."""
    keys: dict[str, object] = {
        "drive": True,
        "server": "198.18.2.10",
        "rate": "8M",
        "udp": True,
        "length": 1200,
        "interval": "500 ms",
        "timeout": "10s",
        "drain": "400ms",
    }

    async def go() -> None:
        async with (
            loaded("iperf3", tmp_path, serve=True, bind="198.18.2.10", program=within(tmp_path, SINK)) as server,
            loaded("iperf3", tmp_path, program=within(tmp_path, GEN), **keys) as poller,
        ):
            assert isinstance(poller, DrivenClient)
            client, got = Watched(poller), Figures()
            for _ in range(3):
                await poller.drive(1.5)
                await goes_on(client, 1500)
                await poller.drive(0.2)
                await goes_on(client, 100)
                with suppress(SourceError):
                    got |= figures(await server.poll(time.time_ns()))
            await poller.drive(0)
            sent = await until(client, lambda seen: seen.get(("load.sending", "")) == 0)  # type: ignore[arg-type]
            got |= await until(server, lambda seen: seen.get(("load.sending", "")) == 0)
            assert got["load.lost.packets", ""] > 300, "it was an overload"
            assert sent[TX] * 0.8 < got["load.rx.packets", ""] + got["load.lost.packets", ""] <= sent[TX]

    asyncio.run(go())
