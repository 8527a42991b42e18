"""Whose messages a source takes: those of the addresses, networks and host names in its plan."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Annotated

from pydantic import Field

from soakwatch.core.errors import PlanError

AGAIN_S = 240.0  # interval of resolving host names
_MAX_ADDRESSES = 64  # of one host name

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Senders = Annotated[
    list[str],
    Field(
        default_factory=list,
        alias="from",
        description="addresses, networks or host names of the device; default: all that no other "
        "source on the same address claims",
    ),
]
"""The key ``from`` of a source that listens."""


class SenderFilter:
    """The senders that a source claims. Without any, it takes what no other source at its address claims.

    Host names are resolved at the start and every 4 min. If that fails, a name keeps its addresses: a failing name
    server must not make a device a stranger.
    """

    def __init__(self, target: str, named: Sequence[str]) -> None:
        self.named = tuple(named)
        self._target = target
        self._networks: tuple[Network, ...] = tuple(network for name in named if (network := _network(name)))
        self._hosts: dict[str, tuple[Network, ...]] = {name: () for name in named if _network(name) is None}
        self._callbacks: list[Callable[[], None]] = []

    def __contains__(self, address: str) -> bool:
        sender = _network(address.partition("%")[0])
        if sender is None:
            return False
        known = (*self._networks, *(network for known in self._hosts.values() for network in known))
        return any(sender.network_address in network for network in known)

    def add_callback(self, call: Callable[[], None]) -> None:
        """Registers a function to call when the senders change."""
        self._callbacks.append(call)

    def remove_callback(self, call: Callable[[], None]) -> None:
        """Removes a registered function."""
        self._callbacks.remove(call)

    async def open(self, stack: AsyncExitStack) -> None:
        """Resolves host names, repeatedly; the stack ends it. Raises PlanError for an unknown name."""
        for name in self._hosts:
            networks = await _resolved(name)
            if not networks:
                raise PlanError(f"{self._target}: from: the host {name[:80]!r} is not known: write its address")
            self._hosts[name] = networks
        if self._hosts:
            task = asyncio.create_task(self._follow())
            stack.push_async_callback(_end, task)

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(AGAIN_S)
            for name, before in list(self._hosts.items()):
                networks = await _resolved(name)
                if networks and networks != before:
                    self._hosts[name] = networks
                    for call in tuple(self._callbacks):
                        call()


def _network(name: str) -> Network | None:
    """Parses a network or address; None for a host name.

    >>> _network("192.0.2.7"), _network("::ffff:192.0.2.7"), _network("fw1")
    (IPv4Network('192.0.2.7/32'), IPv4Network('192.0.2.7/32'), None)
    """
    try:
        network = ipaddress.ip_network(name, strict=False)
    except ValueError:
        return None
    if isinstance(network, ipaddress.IPv6Network) and network.network_address.ipv4_mapped and network.prefixlen >= 96:
        return ipaddress.ip_network((network.network_address.ipv4_mapped, network.prefixlen - 96))
    return network


async def _resolved(name: str) -> tuple[Network, ...]:
    """The sorted addresses of a host; empty if unknown."""
    try:
        networks = await asyncio.get_running_loop().getaddrinfo(name, None, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError):
        return ()
    addresses = sorted({str(address[0]).partition("%")[0] for *_, address in networks})[:_MAX_ADDRESSES]
    return tuple(network for address in addresses if (network := _network(address)))


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
