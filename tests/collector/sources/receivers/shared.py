"""Several sources in one run, and devices at addresses of their own."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from tests.collector.sources.receivers.gathering import MAX_WAIT_S, Gathered
from tests.collector.sources.snmp.message import object_id

from soakwatch.sources.abc import Poller, SourceContext
from soakwatch.sources.receivers.notification import Value
from soakwatch.sources.transport.snmp import ber

LINK_DOWN = "1.3.6.1.6.3.1.1.5.3"
ONE, OTHER, STRANGER = "127.0.0.2", "127.0.0.3", "127.0.0.9"


def site_of(target: str, folder: Path) -> SourceContext:
    """The context of a target's source."""
    return SourceContext(target, "dut", (), None, folder, time.time_ns, 1.0)


async def sent_from(address: str, port: int, *datagrams: bytes, to: str = "127.0.0.1") -> None:
    """Datagrams from an address of the loopback, as fast as the machine can."""

    def work() -> None:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as sender:
            sender.bind((address, 0))
            for datagram in datagrams:
                sender.sendto(datagram, (to, port))

    await asyncio.to_thread(work)


def link_down(*binds: tuple[str, Value], community: str = "public") -> bytes:
    """A linkDown of v2c with these bindings."""
    bindings = [("1.3.6.1.2.1.1.3.0", ber.integer(100, 0x43)), ("1.3.6.1.6.3.1.1.4.1.0", object_id(LINK_DOWN))]
    bindings += [
        (oid, ber.tlv(4, value) if isinstance(value, bytes) else ber.integer(int(value))) for oid, value in binds
    ]
    listed = ber.sequence(*(ber.sequence(object_id(oid), value) for oid, value in bindings))
    pdu = ber.tlv(0xA7, ber.integer(1) + ber.integer(0) * 2 + listed)
    return ber.sequence(ber.integer(1), ber.tlv(4, community.encode()), pdu)


def named(interface: str) -> tuple[str, Value]:
    """The binding with the name of a link."""
    return "1.3.6.1.2.1.31.1.1.1.1.1", interface.encode()


async def gather_all(
    pollers: Mapping[str, Poller], enough: Callable[[Mapping[str, Gathered]], bool]
) -> dict[str, Gathered]:
    """Poll all of them until there is enough, or until it takes too long."""
    gathered = {name: Gathered([], {}) for name in pollers}
    until = time.monotonic() + MAX_WAIT_S
    while True:
        for name, poller in pollers.items():
            gathered[name].add(await poller.poll(time.time_ns()))
        if enough(gathered):
            return gathered
        assert time.monotonic() < until, {
            name: (source.counted, source.kinds[:20]) for name, source in gathered.items()
        }
        await asyncio.sleep(0.02)


@asynccontextmanager
async def stacks(*names: str) -> AsyncIterator[dict[str, AsyncExitStack]]:
    """An exit stack for each source, as in a run."""
    async with AsyncExitStack() as outer:
        yield {name: await outer.enter_async_context(AsyncExitStack()) for name in names}
