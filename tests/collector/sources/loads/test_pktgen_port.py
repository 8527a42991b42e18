"""The load ``pktgen`` on the wire: what it sends and never sends, how it drives, and whoever answers wrongly."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from itertools import pairwise
from pathlib import Path

import pytest
from pydantic import ValidationError
from tests.collector.sources.loads.generator_kit import (
    SITE,
    Load,
    acted,
    by_series,
    left_open,
    refused_run,
    values,
    whole_run,
)

from soakwatch.record import RecordView
from soakwatch.sources.abc import Drivable, SourceError
from soakwatch_pktgen import Config, start
from soakwatch_pktgen.console import MAX_LINE
from soakwatch_testing.pktgen_server import FakePort, Mood, PktgenServer, pktgen_server
from soakwatch_testing.ports import free_port

Act = Callable[[Load], Awaitable[None]]


def two_ports() -> PktgenServer:
    """Port 0 sends 1000 packets a poll, two of which are lost; port 1 is down and rests."""
    sending = FakePort(1000, 2**40, 2**40 - 7, lost=2, sending=True, latency_us=(10.0, 25.0, 80.0))
    return PktgenServer(ports={0: sending, 1: FakePort(link="<--Down-->")})


def acts(server: PktgenServer, act: Act, **keys: object) -> None:
    """What is done with it."""
    with pktgen_server(server):
        acted("pktgen", {"port": server.port, **keys}, act)


def test_nothing_is_changed_without_drive() -> None:
    """A generator that is only read hears of no order, short lines only, and is none that could be driven."""
    server = two_ports()
    server.ports |= {number: FakePort() for number in range(2, 24)}

    async def poll(load: Load) -> None:
        assert not isinstance(load.poller, Drivable)
        await load.poll()

    acts(server, poll, ports="0-3,5", offered=True)
    assert server.lines
    for line in server.lines:
        assert not any(f"pktgen.{order}(" in line for order in ("set", "start", "stop", "clr", "reset")), line
        assert len(line) < MAX_LINE
    server = two_ports()
    acts(server, poll, latency=False)
    assert not any("pktStats" in line for line in server.lines)


def test_driven_by_the_run_and_stopped_at_its_end() -> None:
    """Rate and start for a level, stop for none; what the run has started is stopped however it ends."""
    server = two_ports()
    server.ports[0].sending = False

    async def drive(load: Load) -> None:
        await load.drive(0.25)
        assert (server.ports[0].sending, server.ports[0].rate) == (True, 12.5)
        assert by_series(await load.poll())["load.offered.packet.rate", ""] == 125
        await load.drive(0)
        assert not server.ports[0].sending
        assert by_series(await load.poll())["load.offered.packet.rate", ""] == 0
        await load.drive(1.0)
        assert (server.ports[0].sending, server.ports[0].rate) == (True, 50.0)
        assert server.ports[1].rate == 100
        with pytest.raises(SourceError, match="cannot send 150 % of its link: lower rate"):
            await load.drive(3.0)
        raise RuntimeError("the run breaks")

    with pytest.raises(RuntimeError):
        acts(server, drive, drive=True, send="0", rate=50)
    assert not server.ports[0].sending
    assert server.lines[-4].startswith("pktgen.stop(")


def test_what_was_not_started_is_not_stopped() -> None:
    """A generator that the run did not start goes on when a run ends that never drove it."""
    server = two_ports()

    async def poll(load: Load) -> None:
        await load.poll()

    acts(server, poll, drive=True)
    assert server.ports[0].sending
    assert not any("pktgen.stop" in line for line in server.lines)


def test_a_restarted_generator_is_set_again() -> None:
    """It comes back at rest and at its own rate: it sends as the phase says, and the record has the event."""
    server = two_ports()

    async def anew(load: Load) -> None:
        await load.drive(0.5)
        await load.poll()
        server.ports[0].sending = False  # stopped by hand, which is to stay so
        assert (await load.poll()).events == ()
        assert not server.ports[0].sending
        server.mood = "reset"
        with pytest.raises(SourceError):
            await load.poll()
        server.mood, server.ports[0].rate = "well", 100.0
        (event,) = (await load.poll()).events
        assert event.kind == "generator.restart"
        assert event.detail["told"] == "50% of 80 % of the link"
        assert (server.ports[0].sending, server.ports[0].rate) == (True, 40.0)
        assert (await load.poll()).events == ()

    acts(server, anew, drive=True, send="0", rate=80)


def test_a_port_that_cannot_send() -> None:
    """That it did not start is reported; the run does not claim to send."""

    async def drive(load: Load) -> None:
        with pytest.raises(SourceError, match="did not start its ports 1: check that they exist"):
            await load.drive(1.0)

    acts(two_ports(), drive, drive=True, send="1")


@pytest.mark.parametrize(
    ("mood", "sentence"),
    [
        ("garbage", "does not answer like its Lua shell: 'totals \\x00"),
        ("silent", "did not answer within 2.7 s: its Lua port serves one client"),
        ("foreign", "does not answer like its Lua shell: '500 unknown command"),
        ("reset", "closed the connection: "),
        ("half", "closed the connection in the middle of its answer"),
        ("flood", "answers with more than 1 MiB"),
    ],
)
def test_misbehaviour_mid_run(mood: Mood, sentence: str) -> None:
    """Each poll fails with one sentence, and the first poll after it succeeds."""

    server = two_ports()

    async def misbehave(load: Load) -> None:
        await load.poll()
        server.mood = mood
        with pytest.raises(SourceError) as caught:
            await load.poll()
        assert sentence in str(caught.value)
        assert "\n" not in str(caught.value)
        server.mood = "well"
        while True:  # bounded by the deadline of the test
            try:
                answer = await load.poll()
            except SourceError:
                await asyncio.sleep(0.05)
            else:
                break
        assert by_series(answer)["load.sending", ""] == 1

    acts(server, misbehave)


def test_a_client_that_holds_the_port() -> None:
    """The poll fails and says why; no second one queues behind it, and an order that waits is not given late."""
    server = two_ports()

    async def held(load: Load) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"x = 1\n")
        while server.lines[-1] != "x = 1":
            await asyncio.sleep(0.01)
        with pytest.raises(SourceError, match="serves one client at a time"):
            await load.drive(1.0)
        with pytest.raises(SourceError, match="has not answered the previous poll yet"):
            await load.poll()
        writer.close()
        while server.clients < 3:
            await asyncio.sleep(0.01)
        while True:
            try:
                await load.poll()
            except SourceError:
                await asyncio.sleep(0.05)
            else:
                break
        assert not any("pktgen.start" in line for line in server.lines)
        del reader

    acts(server, held, drive=True, send="0")


def test_whoever_gives_up_reads_on() -> None:
    """A generator that answers late is not cut off: it could be ended by SIGPIPE."""
    done = threading.Event()
    errors: list[OSError] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def late() -> None:
            client, _ = listener.accept()
            with client:
                heard = b""
                while (part := client.recv(4096)) != b"":  # the client has ended its half: it has given up
                    heard += part
                try:
                    for _ in range(200):
                        client.sendall(b"late = {\n}\n" * 1000)
                except OSError as error:
                    errors.append(error)
            done.set()

        thread = threading.Thread(target=late, daemon=True)
        thread.start()

        async def give_up() -> None:
            async with AsyncExitStack() as stack:
                config = Config.model_validate({"port": listener.getsockname()[1], "timeout": "300ms"})
                with pytest.raises(SourceError, match=r"did not answer within 0\.27 s"):
                    await start(config, SITE, stack)
                await asyncio.to_thread(done.wait, 20)

        asyncio.run(give_up())
        thread.join(240)
    assert done.is_set()
    assert errors == []


def test_polls_leave_nothing_open() -> None:
    """A connection for each poll, and none of them stays."""
    with pktgen_server(two_ports()) as server:
        assert left_open("pktgen", {"port": server.port}) <= 2


def test_nothing_answers_at_the_start() -> None:
    """One sentence with what to do."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

    async def begin() -> None:
        async with AsyncExitStack() as stack:
            await start(Config.model_validate({"port": port}), SITE, stack)

    with pytest.raises(SourceError) as caught:
        asyncio.run(begin())
    assert str(caught.value) == (
        f"Pktgen at 127.0.0.1:{port} cannot be reached (connection refused): start it with -G (or -g HOST:PORT), "
        "and set host and port"
    )


def test_ports_that_are_not_there() -> None:
    """The poll fails: it names them."""

    async def poll(load: Load) -> None:
        await load.poll()

    with pytest.raises(SourceError, match="reports nothing of its ports 7: check that it has them, and name them"):
        acts(two_ports(), poll, ports="7")


@pytest.mark.parametrize(
    "keys", [{"ports": "0;os.exit()"}, {"send": '0")'}, {"rate": 0}, {"rate": 101}, {"host": "a b"}]
)
def test_keys_that_are_refused(keys: dict[str, object]) -> None:
    """Among them whatever could carry Lua into the generator."""
    with pytest.raises(ValidationError):
        Config.model_validate(keys)


@pytest.mark.slow
def test_a_whole_run(tmp_path: Path) -> None:
    """The command, a plan, and the figures in the record."""
    with pktgen_server(two_ports()) as server:
        record = whole_run(tmp_path, f"{{pktgen: {{port: {server.port}, interval: 300ms}}}}")
    with RecordView.open(record) as view:
        sent = values(view, "load.tx.packets")
        assert len(sent) >= 4
        assert all(after > before and (after - before) % 1000 == 0 for before, after in pairwise(sent))
        assert set(values(view, "load.port.up", "port=1")) == {0.0}
        identities = [reported.event for reported in view.events() if reported.event.kind == "device.identity"]
        assert any(event.detail.get("generator") == "Pktgen-DPDK" for event in identities)


@pytest.mark.slow
def test_the_phases_drive_it(tmp_path: Path) -> None:
    """At rest, half and full, as the phases say; at the end it rests."""
    phases = (
        "{baseline: {for: 1500ms, load: 0%}}, {soak: {for: 1500ms, load: 50%}}, {stress: {for: 1500ms, load: 100%}}"
    )
    keys = "interval: 300ms, drive: true, send: '0', rate: 40"
    with pktgen_server(two_ports()) as server:
        record = whole_run(tmp_path, f"{{pktgen: {{port: {server.port}, {keys}}}}}", phases)
        assert not server.ports[0].sending
    with RecordView.open(record) as view:
        assert set(values(view, "load.offered.packet.rate")) == {0.0, 200.0, 400.0}
        assert set(values(view, "load.level")) == {0.0, 0.5, 1.0}
        assert set(values(view, "load.sending")) == {0.0, 1.0}


def test_a_missing_generator_ends_the_run_before_it_begins(tmp_path: Path) -> None:
    """A required generator that cannot be reached: one sentence, no traceback."""
    port = free_port()
    error = refused_run(tmp_path, f"{{pktgen: {{port: {port}}}}}")
    assert "cannot be reached (connection refused)" in error
    assert str(port) in error
