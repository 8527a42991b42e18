"""The load ``iperf3`` driven and kept: real ones of this machine, and a stand-in for newer versions."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from tests.collector.sources.loads.iperf3_kit import (
    clients_of,
    failing,
    figures,
    loaded,
    needs_iperf3,
    real_server,
    until,
)

from soakwatch.sources.abc import Drivable, Identifies, Poller, SourceError
from soakwatch.sources.loads.iperf3 import DrivenClient
from soakwatch_model.event import Event
from soakwatch_testing import iperf3_double as double
from soakwatch_testing.ports import free_port


async def driven(poller: Poller, level: float) -> DrivenClient:
    """Driven to a level, as the run does it: again until it follows."""
    assert isinstance(poller, DrivenClient)
    assert isinstance(poller, Drivable)
    deadline = time.monotonic() + 120
    while True:
        try:
            await poller.drive(level)
        except SourceError:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)
        else:
            return poller


async def restarts(poller: Poller, ready: Callable[[Event], bool] = lambda _: True) -> Event:
    """Polls until one reports a restart."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with suppress(SourceError):
            for event in (await poller.poll(time.time_ns())).events:
                if event.kind == "generator.restart" and ready(event):
                    return event
        await asyncio.sleep(0.05)
    raise AssertionError("no restart was told")


# --- real ones -------------------------------------------------------------------------------------------------


@needs_iperf3
def test_a_client_is_driven_against_a_server_that_is_kept(tmp_path: Path) -> None:
    """Both sides count the same datagrams; a level is a share of the rate; the counters go on; 0 rests."""
    port = free_port()
    keys: dict[str, object] = {
        "drive": True,
        "server": "127.0.0.1",
        "port": port,
        "rate": "4M",
        "udp": True,
        "length": 500,
        "streams": 2,
    }

    async def go() -> None:
        async with (
            loaded("iperf3", tmp_path, serve=True, port=port, interval="500 ms") as server,
            loaded("iperf3", tmp_path, interval="500 ms", **keys) as poller,
        ):
            at_rest = figures(await poller.poll(time.time_ns()))
            assert at_rest["load.sending", ""] == 0
            assert at_rest["load.offered.packet.rate", ""] == 0
            assert clients_of(port) == [], "nothing is sent before the run says so"
            client = await driven(poller, 1.0)
            full = await until(client, lambda seen: seen.get(("load.tx.packets", ""), 0) >= 1000)
            assert full["load.offered.packet.rate", ""] == 1000
            assert full["load.offered.bit.rate", ""] == 4e6
            assert full["load.tx.packet.rate", ""] == pytest.approx(1000, rel=0.15)
            assert full["load.tx.bytes", ""] == 500 * full["load.tx.packets", ""]
            assert {"flow=1", "flow=2"} == {name for metric, name in full if metric == "load.flow.tx.packets"}
            await driven(client, 0.25)
            more = full["load.tx.packets", ""] + 250
            quarter = await until(
                client,
                lambda seen: seen.get(("load.tx.packets", ""), 0) > more and ("load.cpu.utilization", "") in seen,
            )
            assert quarter["load.offered.packet.rate", ""] == 250
            assert 0 <= quarter["load.cpu.utilization", ""] <= 1
            await driven(client, 0)
            assert clients_of(port) == []
            sent = await until(client, lambda seen: seen.get(("load.sending", "")) == 0)
            got = await until(server, lambda seen: seen.get(("load.sending", "")) == 0)
            assert got["load.rx.packets", ""] + got["load.lost.packets", ""] == pytest.approx(
                sent["load.tx.packets", ""],
                abs=60,  # those under way when the client ended are not reported
            )
            assert 0 <= got["load.jitter", ""] < 0.1
            assert got["load.loss", ""] < 0.2
            assert isinstance(poller, Identifies)
            assert re.match(r"3\.\d+", poller.facts().identity["iperf3"])

    asyncio.run(go())
    assert clients_of(port) == []


@needs_iperf3
@pytest.mark.parametrize("direction", ["reverse", "bidir"])
def test_tcp_and_who_sends(tmp_path: Path, direction: str) -> None:
    """What the server sends is what comes back to the client."""
    port = free_port()
    keys: dict[str, object] = {
        "drive": True,
        "server": "127.0.0.1",
        "port": port,
        "rate": "4M",
        "length": 8192,
        direction: True,
    }

    async def go() -> None:
        with real_server(port):
            async with loaded("iperf3", tmp_path, interval="500 ms", **keys) as poller:
                await driven(poller, 1.0)
                wanted = {"load.rx.bytes"} | ({"load.tx.bytes"} if direction == "bidir" else set())
                await until(poller, lambda seen: all(seen.get((each, ""), 0) > 250_000 for each in wanted))
                rate = pytest.approx(4e6, rel=0.5)  # TCP makes up for what a busy machine kept it from
                seen = await until(poller, lambda seen: seen.get(("load.rx.bit.rate", "")) == rate)
                assert {metric for metric, _ in seen if metric.endswith("x.bytes")} == wanted
                assert seen["load.offered.bit.rate", ""] == (8e6 if direction == "bidir" else 4e6)

    asyncio.run(go())


@needs_iperf3
def test_a_server_that_is_not_there_and_then_is_and_goes_again(tmp_path: Path) -> None:
    """A refusal is reported with its reason; the client returns by itself; a failure between is a restart from 0 on."""
    port = free_port()
    keys: dict[str, object] = {
        "drive": True,
        "server": "127.0.0.1",
        "port": port,
        "rate": "2M",
        "udp": True,
        "length": 500,
    }

    async def go() -> None:
        async with loaded("iperf3", tmp_path, interval="500 ms", **keys) as poller:
            assert isinstance(poller, DrivenClient)
            with pytest.raises(SourceError, match=r"Connection refused; next attempt after 500 ms"):
                await poller.drive(1.0)
            await failing(poller, "Connection refused")
            with real_server(port):
                first = await until(poller, lambda seen: seen.get(("load.tx.packets", ""), 0) > 100)
                assert first["load.sending", ""] == 1
            message = await failing(poller, "next attempt after")
            assert "control socket has closed" in message or "refused" in message or "terminated" in message
            with real_server(port):
                event = await restarts(poller)
                assert event.detail["test"] == "2"
                await driven(poller, 0)

    asyncio.run(go())


LOSSY = """
import asyncio, json, subprocess
from pathlib import Path
from tests.collector.sources.loads.iperf3_kit import figures, loaded, until

async def go():
    told = {}
    for way, length in (("udp", 500), ("tcp", 8192)):
        keys = dict(drive=True, server="127.0.0.1", rate="4M", udp=way == "udp", length=length, interval="500 ms")
        async with loaded("iperf3", Path("."), serve=True, interval="500 ms") as server:
            async with loaded("iperf3", Path("."), **keys) as client:
                await client.drive(1.0)
                await until(client, lambda seen: seen.get(("load.tx.bytes", ""), 0) > 750_000)
                await client.drive(0)
                sent = await until(client, lambda seen: seen.get(("load.sending", "")) == 0)
                got = await until(server, lambda seen: seen.get(("load.sending", "")) == 0)
        told[way] = [{metric: value for (metric, thing), value in seen.items() if not thing} for seen in (sent, got)]
    print(json.dumps(told))

asyncio.run(go())
"""


@needs_iperf3
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("iptables") or not shutil.which("ip"), reason="needs root")
def test_loss_in_the_network_is_what_the_receiver_saw(tmp_path: Path) -> None:
    """Every tenth packet is dropped: the server reports it for UDP, the client retransmits what was lost of TCP."""
    namespace, root = f"soak{os.getpid()}", Path(__file__).parents[4]
    inside = ["ip", "netns", "exec", namespace]
    drop = ["-m", "statistic", "--mode", "nth", "--every", "10", "--packet", "5", "-j", "DROP"]
    if subprocess.run(["ip", "netns", "add", namespace], check=False, capture_output=True).returncode:
        pytest.skip("no network namespaces here")
    try:
        subprocess.run([*inside, "ip", "link", "set", "lo", "up"], check=True)
        for rule in (
            ["-p", "udp", "--dport", "5201"],
            ["-p", "tcp", "--dport", "5201", "-m", "length", "--length", "5000:"],
        ):
            rule_added = subprocess.run(
                [*inside, "iptables", "-A", "INPUT", *rule, *drop], check=False, capture_output=True
            )
            if rule_added.returncode:
                pytest.skip("no iptables statistics here")
        done = subprocess.run(
            [*inside, sys.executable, "-c", LOSSY],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
            env={**os.environ, "PYTHONPATH": str(root)},
        )
        assert done.returncode == 0, done.stderr
    finally:
        subprocess.run(["ip", "netns", "del", namespace], check=True)
    counts = json.loads(done.stdout)
    sent, got = counts["udp"]
    assert got["load.lost.packets"] == pytest.approx(sent["load.tx.packets"] / 10, rel=0.01, abs=2)
    assert got["load.rx.packets"] + got["load.lost.packets"] == pytest.approx(sent["load.tx.packets"], abs=2)
    assert got["load.loss"] == pytest.approx(0.1, abs=0.01)
    assert got["load.drop.estimate"] == got["load.lost.packets"]
    sent, got = counts["tcp"]
    assert sent["load.retransmits"] > 0
    assert "load.lost.packets" not in got


@needs_iperf3
def test_a_port_that_is_taken(tmp_path: Path) -> None:
    """A server that cannot listen refuses the run, in iperf3's words."""
    port = free_port()

    async def go() -> None:
        with real_server(port), pytest.raises(SourceError, match="Address already in use"):
            async with loaded("iperf3", tmp_path, serve=True, port=port):
                pass

    asyncio.run(go())


@needs_iperf3
def test_the_client_ends_with_the_collector(tmp_path: Path) -> None:
    """Not even a kill -9 leaves a generator behind."""
    port = free_port()
    code = (
        "import asyncio, sys\nfrom pathlib import Path\nfrom tests.collector.sources.loads.iperf3_kit import loaded\n"
        "async def go():\n"
        f"    keys = dict(drive=True, server='127.0.0.1', port={port}, rate='1M')\n"
        "    async with loaded('iperf3', Path('.'), **keys) as poller:\n"
        "        await poller.drive(1.0)\n        print('sending', flush=True)\n        await asyncio.sleep(60)\n"
        "asyncio.run(go())\n"
    )
    root = Path(__file__).parents[4]
    with real_server(port):
        collector = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=root, env={**os.environ, "PYTHONPATH": str(root)}
        )
        assert collector.stdout is not None
        with collector.stdout:
            assert collector.stdout.readline() == b"sending\n"
            assert len(clients_of(port)) == 1
            collector.send_signal(signal.SIGKILL)
            collector.wait(240)
        deadline = time.monotonic() + 120
        while clients_of(port):
            assert time.monotonic() < deadline, "the client goes on"
            time.sleep(0.02)


# --- newer ones, and those that misbehave ----------------------------------------------------------------------


@pytest.fixture
def stand_in(tmp_path: Path) -> str:
    """An iperf3 of a version with ``--json-stream``."""
    return str(double.script(tmp_path))


def test_both_sides_of_a_newer_version(tmp_path: Path, stand_in: str) -> None:
    """The events are read as they come, exact to the byte."""
    port = free_port()
    keys: dict[str, object] = {
        "drive": True,
        "server": "127.0.0.1",
        "port": port,
        "rate": "8M",
        "udp": True,
        "length": 1000,
    }

    async def go() -> None:
        lossy = ["--extra-data", "lossy"]
        async with (
            loaded(
                "iperf3", tmp_path, serve=True, port=port, program=stand_in, options=lossy, interval="300ms"
            ) as server,
            loaded("iperf3", tmp_path, program=stand_in, interval="300ms", **keys) as poller,
        ):
            client = await driven(poller, 0.5)
            sent = await until(client, lambda seen: seen.get(("load.tx.packets", ""), 0) >= 300)
            assert sent["load.tx.bytes", ""] == 1000 * sent["load.tx.packets", ""]
            assert sent["load.offered.packet.rate", ""] == 500
            assert client.facts().identity["iperf3"] == double.VERSION
            assert "--json-stream" in client.facts().identity["command"]
            got = await until(server, lambda seen: seen.get(("load.lost.packets", ""), 0) >= 14)
            assert got["load.loss", ""] == pytest.approx(7 / 150, rel=0.02)
            assert got["load.jitter", ""] == pytest.approx(40e-6)
            assert got["load.drop.estimate", ""] == got["load.lost.packets", ""]

    asyncio.run(go())


@pytest.mark.parametrize(
    ("mood", "says"),
    [
        ("busy", "the server is busy running a test"),
        ("half", "iperf3 ended: it ended without a message"),
        ("silence", "has printed nothing for"),
    ],
)
def test_an_iperf3_that_misbehaves(tmp_path: Path, stand_in: str, mood: str, says: str) -> None:
    """Each poll fails with what is known of the reason, and nothing hangs."""
    port = free_port()
    keys: dict[str, object] = {
        "drive": True,
        "server": "127.0.0.1",
        "port": port,
        "rate": "8M",
        "options": ["--extra-data", mood],
    }

    async def go() -> None:
        async with (
            loaded("iperf3", tmp_path, serve=True, port=port, program=stand_in),
            loaded("iperf3", tmp_path, program=stand_in, silence="500 ms", interval="200ms", **keys) as poller,
        ):
            assert isinstance(poller, DrivenClient)
            with suppress(SourceError):
                await poller.drive(1.0)
            await failing(poller, says)

    asyncio.run(go())


def test_noise_between_the_events_is_counted(tmp_path: Path, stand_in: str) -> None:
    """MalformedError lines do not end a run."""
    port = free_port()
    keys: dict[str, object] = {
        "drive": True,
        "server": "127.0.0.1",
        "port": port,
        "rate": "8M",
        "options": ["--extra-data", "garbage"],
    }

    async def go() -> None:
        async with (
            loaded("iperf3", tmp_path, serve=True, port=port, program=stand_in),
            loaded("iperf3", tmp_path, program=stand_in, interval="300ms", **keys) as poller,
        ):
            await driven(poller, 1.0)
            seen = await until(poller, lambda seen: seen.get(("load.lines.unread", ""), 0) >= 10)
            assert seen["load.tx.bytes", ""] > 0

    asyncio.run(go())


def test_programs_that_are_not_iperf3(tmp_path: Path) -> None:
    """Missing, or something else: one sentence with the remedy."""
    other = tmp_path / "other"
    other.write_text("#!/bin/sh\necho other 1.0\n")
    other.chmod(0o755)

    async def go(program: str) -> None:
        async with loaded("iperf3", tmp_path, serve=True, program=program):
            pass

    for program, says in (("no-such-iperf3", r"cannot start .* set program:"), (str(other), "is not iperf3")):
        with pytest.raises(SourceError, match=says):
            asyncio.run(go(program))


def test_invalid_levels(tmp_path: Path, stand_in: str) -> None:
    """Without a rate there is no half of it."""

    async def go() -> None:
        async with loaded("iperf3", tmp_path, drive=True, server="127.0.0.1", port=1, program=stand_in) as poller:
            assert isinstance(poller, DrivenClient)
            for level, says in (
                (0.5, "without `rate`"),
                (-1.0, "invalid level -1"),
                (float("nan"), "invalid level nan"),
            ):
                with pytest.raises(SourceError, match=says):
                    await poller.drive(level)

    asyncio.run(go())
