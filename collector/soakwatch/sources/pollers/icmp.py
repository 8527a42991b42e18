"""Echo requests (ping) to a host: whether it answers, the round trip, and how many were lost.

A peer that does not answer is an answer (``reach.up`` 0); a failure of this machine to send is a failed poll. Needs
root, CAP_NET_RAW, or a group within ``net.ipv4.ping_group_range``. Example: ``icmp: {host: 198.18.0.1, interval: 1s}``.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import struct
import sys
import time
from contextlib import AsyncExitStack
from typing import Annotated

from pydantic import Field

from soakwatch.core.errors import PlanError
from soakwatch.core.units import Seconds
from soakwatch.sources.abc import HostName, SourceConfig, SourceContext, SourceError, timing
from soakwatch.sources.reachability import Reach
from soakwatch_model.sample import Answer, Fault

_ECHO = {socket.AF_INET: (8, 0), socket.AF_INET6: (128, 129)}  # type of request, type of reply (RFC 792, RFC 4443)
_PROTOCOL = {socket.AF_INET: socket.IPPROTO_ICMP, socket.AF_INET6: socket.IPPROTO_ICMPV6}
_HEADER = struct.Struct("!BBHHH")
_TOKEN = 8
_SO_TIMESTAMPNS = 35  # Linux: receive times by the kernel, untouched by a busy event loop


class Config(SourceConfig):
    """Keys of the source ``icmp``."""

    host: Annotated[HostName, Field(description="name or address of the peer")]
    count: Annotated[int, Field(default=3, ge=1, le=100, description="requests a poll")]
    spacing: Annotated[Seconds, Field(default=0.05, ge=0.001, le=60, description="time between requests of a poll")]
    wait: Annotated[Seconds, Field(default=0.5, ge=0.001, le=60, description="an answer later than this is lost")]
    size: Annotated[int, Field(default=56, ge=16, le=65000, description="bytes of payload")]


class IcmpPoller:
    """One socket, one peer. A random token identifies answers, so foreign, late and double ones do not count."""

    def __init__(self, config: Config, family: int, address: str, sock: socket.socket) -> None:
        self._config, self._family, self._address, self._socket = config, socket.AddressFamily(family), address, sock
        self._raw = sock.type == socket.SOCK_RAW
        self._reach = Reach(config.host, "icmp")
        self._sequence = 0

    async def poll(self, now_ns: int) -> Answer:
        """``count`` requests and what came back. Raises SourceError if they could not be sent."""
        token = os.urandom(_TOKEN)
        pending: dict[int, tuple[int, int]] = {}  # sequence -> when it was sent: monotonic ns, wall ns
        trips: list[float] = []
        done = asyncio.Event()
        loop = asyncio.get_running_loop()

        def receive() -> None:
            while (reply := self._receive(token)) is not None:
                sequence, wall_ns = reply
                sent = pending.pop(sequence, None)
                if sent is None:
                    continue
                passed_ns = time.monotonic_ns() - sent[0]
                by_kernel_ns = wall_ns - sent[1]  # a wall clock that stepped gives nonsense, which is not taken
                trips.append((by_kernel_ns if 0 < by_kernel_ns < passed_ns else passed_ns) * 1e-9)
            if len(trips) == self._config.count:
                done.set()

        loop.add_reader(self._socket, receive)
        try:
            for number in range(self._config.count):
                if number:
                    await asyncio.sleep(self._config.spacing)
                self._sequence = (self._sequence + 1) & 0xFFFF
                pending[self._sequence] = time.monotonic_ns(), time.time_ns()
                self._send(token)
            async with asyncio.timeout(self._config.wait):
                await done.wait()
        except TimeoutError:
            pass
        finally:
            loop.remove_reader(self._socket)
        lost = self._config.count - len(trips)
        faults = (
            () if trips else (Fault("reach.round_trip", self._reach.object, f"none of {lost} requests was answered"),)
        )
        return Answer(self._reach.samples(now_ns, self._config.count, trips), (), faults)

    def _send(self, token: bytes) -> None:
        payload = token + struct.pack("!H", self._sequence)
        payload += bytes(max(0, self._config.size - len(payload)))
        kind = _ECHO[self._family][0]
        head = _HEADER.pack(kind, 0, 0, os.getpid() & 0xFFFF, self._sequence)
        packet = _HEADER.pack(kind, 0, checksum(head + payload), os.getpid() & 0xFFFF, self._sequence) + payload
        try:
            self._socket.sendto(packet, (self._address, 0))
        except BlockingIOError:
            return  # this machine's send buffer is full: the request counts as lost
        except OSError as error:
            why = "there is no route from this machine" if error.errno in _NO_ROUTE else error.strerror
            raise SourceError(f"no request can be sent to {self._config.host}: {why}") from None

    def _receive(self, token: bytes) -> tuple[int, int] | None:
        """The sequence number and the wall time of the next answer to this poll; None when there is no more."""
        for _ in range(10_000):
            try:
                data, ancillary, _flags, _sender = self._socket.recvmsg(65535, 64)
            except BlockingIOError:
                return None
            except OSError:
                continue  # an error that a router sent about an earlier request
            sequence = sequence_of(data, token, self._family, raw=self._raw)
            if sequence is not None:
                return sequence, _kernel_ns(ancillary)
        return None


_NO_ROUTE = (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN)


def sequence_of(data: bytes, token: bytes, family: int, *, raw: bool) -> int | None:
    """The sequence number of an echo reply that carries the token; None for anything else, however malformed."""
    if raw and family == socket.AF_INET:
        data = data[(data[0] & 0x0F) * 4 :] if data else data  # a raw IPv4 socket hands over the IP header too
    if len(data) < _HEADER.size + _TOKEN + 2 or data[0] != _ECHO[socket.AddressFamily(family)][1]:
        return None
    payload = data[_HEADER.size :]
    if payload[:_TOKEN] != token:
        return None
    return int.from_bytes(payload[_TOKEN : _TOKEN + 2], "big")


def checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071).

    >>> hex(checksum(bytes.fromhex("0001f203f4f5f6f7")))
    '0x220d'
    """
    padded = data + b"\0" * (len(data) % 2)
    total = sum(int.from_bytes(padded[offset : offset + 2], "big") for offset in range(0, len(padded), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _kernel_ns(ancillary: list[tuple[int, int, bytes]]) -> int:
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS and len(data) >= 16:
            seconds, nanoseconds = (
                int.from_bytes(data[offset : offset + 8], sys.byteorder, signed=True) for offset in (0, 8)
            )
            return seconds * 10**9 + nanoseconds
    return 0


async def start(config: Config, site: SourceContext, stack: AsyncExitStack) -> IcmpPoller:
    """Resolves the peer and opens the socket. Raises PlanError for times that do not fit, otherwise SourceError."""
    limit_s = timing(0, site.interval_s, config.timeout).timeout_s
    longest_s = (config.count - 1) * config.spacing + config.wait
    if longest_s > limit_s:
        raise PlanError(
            f"{site.target}: icmp: {config.count} requests and the wait take {longest_s:g} s, but a poll has "
            f"{limit_s:g} s: lower count, spacing or wait"
        )
    family, address = await resolved(config.host)
    sock = _open(family)
    stack.callback(sock.close)
    sock.settimeout(0)
    sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    return IcmpPoller(config, family, address, sock)


async def resolved(host: str) -> tuple[int, str]:
    """Address family and address of a host. Raises SourceError if its name is not known."""
    try:
        addresses = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError):
        raise SourceError(f"the name {host!r} is not known: check host, or the name service of this machine") from None
    family, _kind, _protocol, _name, address = addresses[0]
    return family, str(address[0])


def _open(family: int) -> socket.socket:
    protocol = _PROTOCOL[socket.AddressFamily(family)]
    for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
        try:
            return socket.socket(family, kind, protocol)
        except PermissionError:
            continue
        except OSError as error:
            raise SourceError(f"cannot open a socket for echo requests: {error.strerror}") from None
    raise SourceError(
        "this user may not send echo requests: run as root, give CAP_NET_RAW, or widen net.ipv4.ping_group_range"
    )
