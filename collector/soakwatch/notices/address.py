"""Where to listen, and to whom."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from soakwatch.errors import PlanError

_BUFFER = 4 * 2**20  # bytes: a burst of some thousands of datagrams waits in the kernel while we do something else
_RCVBUFFORCE = 33  # SO_RCVBUFFORCE of Linux: beyond net.core.rmem_max, for who may

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class Listen:
    """A numeric address and a port; port 0 takes a free one."""

    address: str
    port: int

    @property
    def local(self) -> bool:
        """Whether only this machine can reach it."""
        return ipaddress.ip_address(self.address).is_loopback

    @property
    def family(self) -> socket.AddressFamily:
        """IPv4 or IPv6."""
        return socket.AF_INET6 if ":" in self.address else socket.AF_INET

    def __str__(self) -> str:
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"


def listen_at(text: str) -> Listen:
    """The place that a plan names. Raises ValueError with the remedy.

    >>> listen_at("127.0.0.1:1162")
    Listen(address='127.0.0.1', port=1162)
    >>> str(listen_at("[::1]:514"))
    '[::1]:514'
    """
    where, _, port = text.rpartition(":")
    try:
        address = ipaddress.ip_address(where.strip("[]"))
        number = int(port)
    except ValueError:
        number, address = -1, None
    if address is None or not 0 <= number <= 65535:
        raise ValueError(f"{text[:80]!r} is no place to listen: write ADDRESS:PORT, such as 127.0.0.1:1162")
    return Listen(str(address), number)


def datagram_socket(target: str, listen: Listen) -> socket.socket:
    """A bound UDP socket with as much room as the system gives. Raises PlanError; the caller closes it."""
    opened = socket.socket(listen.family, socket.SOCK_DGRAM)
    try:
        opened.settimeout(0)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        with contextlib.suppress(OSError):  # without it the kernel's own limit stays; what does not fit is counted
            opened.setsockopt(socket.SOL_SOCKET, _RCVBUFFORCE, _BUFFER)
        opened.bind((listen.address, listen.port))
    except OSError as error:
        opened.close()
        raise cannot_listen(target, listen, error) from None
    return opened


def cannot_listen(target: str, listen: Listen, error: OSError) -> PlanError:
    """Why a place cannot be listened at, with the remedy."""
    remedy = "name a free port with listen:, one for each target"
    if isinstance(error, PermissionError):
        remedy = "ports below 1024 need the right to bind them: name a higher one with listen:"
    return PlanError(f"{target}: {listen} cannot be listened at ({error.strerror or type(error).__name__}): {remedy}")


@dataclass(frozen=True, slots=True)
class Senders:
    """Who is listened to: everybody if there are no networks."""

    networks: tuple[Network, ...]

    def __contains__(self, address: str) -> bool:
        if not self.networks:
            return True
        try:
            found = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return False
        mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
        return any((mapped or found) in network for network in self.networks)


async def senders(target: str, named: Sequence[str]) -> Senders:
    """Addresses, networks and host names as networks. Raises PlanError for a name that nobody knows."""
    networks: list[Network] = []
    for name in named:
        try:
            networks.append(ipaddress.ip_network(name, strict=False))
        except ValueError:
            networks += await _resolved(target, name)
    return Senders(tuple(networks))


async def _resolved(target: str, name: str) -> list[Network]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(name, None, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError):
        raise PlanError(f"{target}: from: the host {name[:80]!r} is not known: write its address") from None
    return [ipaddress.ip_network(str(address[0]).partition("%")[0]) for *_, address in found]
