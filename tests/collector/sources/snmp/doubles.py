"""Misbehaving agents on a real UDP socket of the loopback: a function makes each answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from typing import cast

from tests.collector.sources.snmp.message import RESPONSE, Message, Pdu, object_id, parse_message

from soakwatch.sources.transport.snmp import ber

Respond = Callable[[bytes], Iterable[tuple[float, bytes]]]
"""From a datagram to the answers: seconds to wait and bytes."""
Bind = tuple[str, bytes]


class Agent(asyncio.DatagramProtocol):
    """Sends what ``respond`` makes of each datagram. ``asked`` counts them, ``requests`` holds the numbers
    of the requests in them: one that is sent again keeps its number."""

    def __init__(self, respond: Respond) -> None:
        self.respond, self.asked = respond, 0
        self.requests: set[int] = set()
        self._transport: asyncio.DatagramTransport | None = None
        self._waiting: set[asyncio.TimerHandle] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It can be spoken to."""
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """A request."""
        self.asked += 1
        if message := v2c(data):
            self.requests.add(message[1].request_id)
        for delay_s, answer in self.respond(data):
            loop = asyncio.get_running_loop()
            self._waiting.add(loop.call_later(delay_s, self._send, answer, addr))

    def _send(self, answer: bytes, addr: tuple[str, int]) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.sendto(answer, addr)

    def close(self) -> None:
        """Nothing is sent any more."""
        for handle in self._waiting:
            handle.cancel()
        if self._transport is not None:
            self._transport.close()


async def agent(stack: AsyncExitStack, respond: Respond, port: int = 0) -> tuple[Agent, int]:
    """An agent and its port."""
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.create_datagram_endpoint(lambda: Agent(respond), local_addr=("127.0.0.1", port))
    stack.callback(protocol.close)
    return protocol, int(transport.get_extra_info("sockname")[1])


def v2c(data: bytes) -> tuple[Message, Pdu] | None:
    """The request of v1 or v2c, if it is one."""
    message = parse_message(data)
    return None if message.version == 3 or message.pdu is None else (message, message.pdu)


def answer(data: bytes, binds: Iterable[Bind], status: int = 0, index: int = 0) -> bytes:
    """The answer to a request of v1 or v2c."""
    message = parse_message(data)
    assert message.pdu is not None
    rows = ber.sequence(*(ber.sequence(object_id(oid), value) for oid, value in binds))
    pdu = ber.sequence(ber.integer(message.pdu.request_id), ber.integer(status), ber.integer(index), rows, tag=RESPONSE)
    community = ber.tlv(ber.OCTETS, ber.open_sequence(data)[1][1])
    return ber.sequence(ber.integer(message.version), community, pdu)


class Relay(asyncio.DatagramProtocol):
    """Hands datagrams on to a real agent and back; ``fate`` makes of each what arrives (None: nothing)."""

    def __init__(self, fate: Callable[[bytes, bool], bytes | None]) -> None:
        self.fate = fate
        self.front: asyncio.DatagramTransport | None = None
        self.back: asyncio.DatagramTransport | None = None
        self.asker: tuple[str, int] | None = None

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """From the asker to the agent."""
        self.asker = addr
        datagram = self.fate(data, True)
        if datagram is not None and self.back is not None:
            self.back.sendto(datagram)


class _Back(asyncio.DatagramProtocol):
    def __init__(self, relay: Relay) -> None:
        self.relay = relay

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """From the agent to the asker."""
        datagram = self.relay.fate(data, False)
        if datagram is not None and self.relay.front is not None and self.relay.asker is not None:
            self.relay.front.sendto(datagram, self.relay.asker)


async def relay(stack: AsyncExitStack, port: int, fate: Callable[[bytes, bool], bytes | None]) -> int:
    """A port that leads to the agent at ``port``."""
    loop, relay = asyncio.get_running_loop(), Relay(fate)
    relay.front, _ = await loop.create_datagram_endpoint(lambda: relay, local_addr=("127.0.0.1", 0))
    relay.back, _ = await loop.create_datagram_endpoint(lambda: _Back(relay), remote_addr=("127.0.0.1", port))
    stack.callback(relay.front.close)
    stack.callback(relay.back.close)
    return int(relay.front.get_extra_info("sockname")[1])
