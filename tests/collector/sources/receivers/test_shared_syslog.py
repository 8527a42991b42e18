"""One syslog receiver, many devices: over UDP, TCP and TLS each line goes to the target of its sender."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import pytest
from tests.collector.sources.receivers.gathering import Gathered, Sender, gather
from tests.collector.sources.receivers.relay import relay
from tests.collector.sources.receivers.shared import ONE, OTHER, STRANGER, gather_all, sent_from, site_of, stacks
from tests.collector.sources.receivers.test_syslog import certificate

from soakwatch.core.errors import PlanError
from soakwatch.sources.pollers.syslog import Config, SyslogPoller, start
from soakwatch.sources.receivers.listener import listeners
from soakwatch_testing.ports import free_port


def oom(process: str) -> str:
    """A line of the kernel."""
    return f"Out of memory: Killed process 4711 ({process}) total-vm:1kB"


async def receiver(target: str, folder: Path, stack: AsyncExitStack, port: int, **keys: object) -> SyslogPoller:
    """A source of syslog of a target."""
    named_keys = {"from" if key == "senders" else key: value for key, value in keys.items()}
    config = Config.model_validate({"listen": f"127.0.0.1:{port}", **named_keys})
    return await start(config, site_of(target, folder), stack)


async def connected(
    port: int, address: str = ONE, tls: ssl.SSLContext | None = None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection from an address of the loopback."""
    return await asyncio.open_connection("127.0.0.1", port, ssl=tls, local_addr=(address, 0))


async def closed(writer: asyncio.StreamWriter) -> None:
    """Close a connection."""
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


def objects_of(gathered: dict[str, Gathered]) -> dict[str, list[str]]:
    """What the events of each source are about."""
    return {name: [event.object for event in source.events] for name, source in gathered.items()}


def test_logger_on_two_devices_is_distinguished_over_udp_and_tcp(tmp_path: Path, send: Sender) -> None:
    """Each target has its own lines and its own patterns; an unknown sender's go to the target without ``from``."""

    async def main() -> dict[str, Gathered]:
        async with AsyncExitStack() as relays, stacks("fw1", "fw2", "lab") as to:
            port = free_port()
            pollers = {
                "fw1": await receiver("fw1", tmp_path, to["fw1"], port, senders=[ONE]),
                "fw2": await receiver("fw2", tmp_path, to["fw2"], port, senders=[OTHER], profile="cisco-asa"),
                "lab": await receiver("lab", tmp_path, to["lab"], port),
            }
            for address in (ONE, OTHER, STRANGER):
                through = await relays.enter_async_context(relay(address, port))
                for channel in ("-d", "-T"):
                    code, output = await send(
                        "logger",
                        "-n",
                        "127.0.0.1",
                        "-P",
                        through,
                        channel,
                        "-t",
                        "kernel",
                        oom(f"p{address[-1]}{channel}"),
                    )
                    assert code == 0, output
            assert "is shared with fw2, lab:" in " ".join(pollers["fw1"].facts().notes)
            return await gather_all(pollers, lambda gathered: all(source.total == 2 for source in gathered.values()))

    gathered = asyncio.run(main())
    assert objects_of(gathered) == {
        "fw1": ["process=p2-d", "process=p2-T"],
        "fw2": [],
        "lab": ["process=p9-d", "process=p9-T"],
    }
    assert {event.detail["address"] for event in gathered["fw1"].events} == {ONE}
    assert gathered["fw2"].fate("no event") == 2
    assert [
        sum(value for name, value in source.counted.items() if ",severity=" in name) for source in gathered.values()
    ] == [2] * 3


def test_a_transport_that_a_target_does_not_use_gives_its_lines_to_no_other_target(tmp_path: Path) -> None:
    """One source takes UDP only: what its device sends over TCP is counted as foreign and not taken for another's."""

    async def main() -> dict[str, Gathered]:
        async with stacks("fw1", "lab") as to:
            port = free_port()
            pollers = {
                "fw1": await receiver("fw1", tmp_path, to["fw1"], port, senders=[ONE], over=["udp"]),
                "lab": await receiver("lab", tmp_path, to["lab"], port),
            }
            reader, writer = await connected(port)
            async with asyncio.timeout(200):
                with suppress(OSError):
                    assert await reader.read() == b""
            await closed(writer)
            await sent_from(ONE, port, f"<3>kernel: {oom('udp')}".encode())
            return await gather_all(pollers, lambda gathered: gathered["fw1"].total == 2 and gathered["lab"].total == 1)

    gathered = asyncio.run(main())
    assert objects_of(gathered) == {"fw1": ["process=udp"], "lab": []}
    assert [source.fate("foreign") for source in gathered.values()] == [1, 1]


def test_connections_are_counted_for_each_source_and_end_with_it(tmp_path: Path) -> None:
    """A device with too many of them pushes out its own; a source that ends closes its own; then nothing is open."""

    async def main() -> tuple[Gathered, Gathered]:
        async with stacks("fw1", "fw2") as to:
            port = free_port()
            first = await receiver("fw1", tmp_path, to["fw1"], port, senders=[ONE], connections=2)
            second = await receiver("fw2", tmp_path, to["fw2"], port, senders=[OTHER], connections=2)
            _, kept = await connected(port, OTHER)
            opened = [await connected(port) for _ in range(4)]
            for number, (_, writer) in enumerate(opened):
                with suppress(OSError):
                    writer.write(f"<5>hello {number}\n".encode())
                    await writer.drain()
            mine = await gather(first, lambda gathered: gathered.fate("connection closed") == 2)
            await to["fw1"].aclose()
            async with asyncio.timeout(200):
                for reader, _ in opened:
                    with suppress(OSError):
                        assert await reader.read() == b""
            kept.write(f"<3>kernel: {oom('bgpd')}\n".encode())
            theirs = await gather(second, lambda gathered: "kernel.oom" in gathered.kinds)
            await to["fw2"].aclose()
            assert not listeners().by_address
            with pytest.raises(ConnectionRefusedError):
                await connected(port)
            for writer in (kept, *(writer for _, writer in opened)):
                await closed(writer)
            return mine, theirs

    mine, theirs = asyncio.run(main())
    assert theirs.fate("connection closed") == 0
    assert (theirs.fate("foreign"), mine.fate("foreign")) == (0, 0)


def test_tls_is_shared_by_those_that_name_the_same_files(tmp_path: Path, send: Sender) -> None:
    """Each device is distinguished; other files at the same address are refused with both targets' names."""
    chain, key = asyncio.run(certificate(send, tmp_path))
    (tmp_path / "other.pem").write_bytes(chain.read_bytes())

    async def main() -> dict[str, Gathered]:
        async with stacks("fw1", "fw2", "fw3", "fw4") as to:
            port, plain = free_port(), free_port()
            tls = {"over": [], "tls_listen": f"127.0.0.1:{port}", "certificate": str(chain), "key": str(key)}
            pollers = {
                name: await receiver(name, tmp_path, to[name], plain, senders=[address], **tls)
                for name, address in (("fw1", ONE), ("fw2", OTHER))
            }
            others = {**tls, "certificate": str(tmp_path / "other.pem")}
            with pytest.raises(
                PlanError, match=r"fw3: fw1 listens at .* as well with other files for TLS: give the same"
            ):
                await receiver("fw3", tmp_path, to["fw3"], plain, senders=[STRANGER], **others)
            with pytest.raises(PlanError, match=r"fw4: fw1 listens at .* as well, one with TLS and one"):
                await receiver("fw4", tmp_path, to["fw4"], port, senders=[STRANGER])
            context = ssl.create_default_context(cafile=str(chain))
            for address in (ONE, OTHER):
                _, writer = await connected(port, address, context)
                line = f"<3>kernel: {oom(f'p{address[-1]}')}".encode()
                writer.write(str(len(line)).encode() + b" " + line)
                await writer.drain()
                await closed(writer)
            return await gather_all(pollers, lambda gathered: all(source.total == 1 for source in gathered.values()))

    assert objects_of(asyncio.run(main())) == {"fw1": ["process=p2"], "fw2": ["process=p3"]}


def test_udp_and_tls_at_one_address_and_never_tls_and_tcp(tmp_path: Path, send: Sender) -> None:
    """UDP and TLS of one source may have one port number."""
    chain, key = asyncio.run(certificate(send, tmp_path))

    async def main() -> list[str]:
        async with stacks("fw1", "fw2") as to:
            port = free_port()
            tls = {"tls_listen": f"127.0.0.1:{port}", "certificate": str(chain), "key": str(key)}
            poller = await receiver("fw1", tmp_path, to["fw1"], port, over=["udp"], **tls)
            with pytest.raises(PlanError, match=r"fw2: .* cannot be both with TLS and without"):
                await receiver("fw2", tmp_path, to["fw2"], port, **tls)
            assert poller.facts().identity["listens"] == f"udp 127.0.0.1:{port}, tls 127.0.0.1:{port}"
            await sent_from(ONE, port, f"<3>kernel: {oom('udp')}".encode())
            _, writer = await connected(port, ONE, ssl.create_default_context(cafile=str(chain)))
            writer.write(f"<3>kernel: {oom('tls')}\n".encode())
            await writer.drain()
            await closed(writer)
            gathered = await gather(poller, lambda gathered: gathered.total == 2)
            return [event.object for event in gathered.events]

    assert sorted(asyncio.run(main())) == ["process=tls", "process=udp"]


def test_ipv6_and_ipv4_over_tcp_at_one_address(tmp_path: Path, send: Sender) -> None:
    """``[::]`` takes both, and a sender of IPv4 is called as ``from`` calls it."""

    async def main() -> dict[str, Gathered]:
        async with stacks("six", "four") as to:
            port = free_port()
            listen = {"listen": f"[::]:{port}", "allow_plain": True}
            pollers = {
                "six": await receiver("six", tmp_path, to["six"], port, senders=["::1"], **listen),
                "four": await receiver("four", tmp_path, to["four"], port, senders=["127.0.0.0/8"], **listen),
            }
            for host in ("::1", "127.0.0.1"):
                for channel in ("-d", "-T"):
                    code, output = await send(
                        "logger", "-n", host, "-P", port, channel, "-t", "kernel", oom(f"at{host}")
                    )
                    assert code == 0, output
            return await gather_all(pollers, lambda gathered: all(source.total == 2 for source in gathered.values()))

    gathered = asyncio.run(main())
    assert objects_of(gathered) == {"six": ["process=at::1"] * 2, "four": ["process=at127.0.0.1"] * 2}
    assert {event.detail["address"] for event in gathered["four"].events} == {"127.0.0.1"}
