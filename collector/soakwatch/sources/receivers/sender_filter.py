"""Whose messages a source takes: those of the addresses, networks and host names that its plan names."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress

from soakwatch.core.errors import PlanError

AGAIN_S = 240.0  # between two times that host names are resolved
_MAX_ADDRESSES = 64  # of one host name

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class SenderFilter:
    """The senders that a source claims. One that names nobody takes what no other source at its place claims.

    Host names are resolved at the start and again every few minutes. A name that is not known then keeps the
    addresses that it had: a name server that fails must not make a device a stranger.
    """

    def __init__(self, target: str, named: Sequence[str]) -> None:
        self.named = tuple(named)
        self._target = target
        self._networks: tuple[Network, ...] = tuple(network for name in named if (network := _network(name)))
        self._hosts: dict[str, tuple[Network, ...]] = {name: () for name in named if _network(name) is None}
        self._told: list[Callable[[], None]] = []

    def __contains__(self, address: str) -> bool:
        found = _network(address.partition("%")[0])
        if found is None:
            return False
        known = (*self._networks, *(one for networks in self._hosts.values() for one in networks))
        return any(found.network_address in network for network in known)

    def when_changed(self, call: Callable[[], None]) -> None:
        """Have something called whenever the senders have changed."""
        self._told.append(call)

    def unless_changed(self, call: Callable[[], None]) -> None:
        """Have it called no more."""
        self._told.remove(call)

    async def open(self, stack: AsyncExitStack) -> None:
        """Resolve the host names, now and again; the caller's stack ends it. Raises PlanError for an unknown one."""
        for name in self._hosts:
            found = await _resolved(name)
            if not found:
                raise PlanError(f"{self._target}: from: the host {name[:80]!r} is not known: write its address")
            self._hosts[name] = found
        if self._hosts:
            task = asyncio.create_task(self._follow())
            stack.push_async_callback(_end, task)

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(AGAIN_S)
            for name, before in list(self._hosts.items()):
                found = await _resolved(name)
                if found and found != before:
                    self._hosts[name] = found
                    for call in tuple(self._told):
                        call()


def _network(name: str) -> Network | None:
    """The network that a text is; None for a host name.

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
    """The addresses of a host, in order; nothing if nobody knows it."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(name, None, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError):
        return ()
    addresses = sorted({str(address[0]).partition("%")[0] for *_, address in found})[:_MAX_ADDRESSES]
    return tuple(network for address in addresses if (network := _network(address)))


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
