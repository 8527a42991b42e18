"""Addresses to listen on, as a plan writes them, and their sockets."""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator

from soakwatch.core.errors import PlanError

_BUFFER = 4 * 2**20  # bytes: holds a burst of some thousand datagrams while the loop is busy
_RCVBUFFORCE = 33  # Linux's SO_RCVBUFFORCE: exceeds net.core.rmem_max, if privileged
_BACKLOG = 128
_MAPPED = "::ffff:"  # RFC 4291 section 2.5.5.2: an IPv4 sender on an IPv6 socket


@dataclass(frozen=True, slots=True)
class Listen:
    """A numeric address and a port; port 0 takes a free one. ``[::]`` accepts IPv4 too."""

    address: str
    port: int

    @property
    def local(self) -> bool:
        """True if only this machine can reach it."""
        return ipaddress.ip_address(self.address).is_loopback

    @property
    def family(self) -> socket.AddressFamily:
        """IPv4 or IPv6."""
        return socket.AF_INET6 if ":" in self.address else socket.AF_INET

    def __str__(self) -> str:
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"


def listen_at(text: str) -> Listen:
    """Parses an address of a plan. Raises ValueError with the remedy.

    >>> listen_at("127.0.0.1:1162")
    Listen(address='127.0.0.1', port=1162)
    >>> str(listen_at("[::1]:514"))
    '[::1]:514'
    """
    where, _, port = text.rpartition(":")
    try:
        address = ipaddress.ip_address(where.removeprefix("[").removesuffix("]"))
        number = int(port)
    except ValueError:
        number, address = -1, None
    if address is None or not 0 <= number <= 65535:
        raise ValueError(f"{text[:80]!r} is not an address to listen on: write ADDRESS:PORT, such as 127.0.0.1:1162")
    return Listen(str(address), number)


def _checked(text: str) -> str:
    listen_at(text)
    return text


ListenAddress = Annotated[str, AfterValidator(_checked)]
"""An address of a plan that ``listen_at`` can read."""


def unmapped(address: str) -> str:
    """The plain form of an address: IPv4 that arrived on an IPv6 socket is IPv4.

    >>> unmapped("::ffff:192.0.2.1"), unmapped("2001:db8::1")
    ('192.0.2.1', '2001:db8::1')
    """
    return address.removeprefix(_MAPPED) if address.startswith(_MAPPED) and "." in address else address


def socket_address(family: int, address: str, port: int) -> tuple[str | int, ...]:
    """A numeric address in the form that a socket of this family takes. Raises OSError.

    >>> socket_address(socket.AF_INET6, "192.0.2.1", 162)[:2]
    ('::ffff:192.0.2.1', 162)
    """
    if family != socket.AF_INET6:
        return address, port
    if ":" not in address:
        return f"{_MAPPED}{address}", port, 0, 0
    # Only getaddrinfo resolves the scope of a link-local address (fe80::1%eth0).
    addresses = socket.getaddrinfo(address, port, socket.AF_INET6, socket.SOCK_DGRAM, 0, socket.AI_NUMERICHOST)
    return tuple(part for part in addresses[0][4] if isinstance(part, str | int))


def datagram_socket(listen: Listen) -> socket.socket:
    """A bound UDP socket with as large a buffer as the system allows. Raises OSError; the caller closes it."""

    def roomy(opened: socket.socket) -> None:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        with contextlib.suppress(OSError):  # then the kernel's limit stays; drops are counted
            opened.setsockopt(socket.SOL_SOCKET, _RCVBUFFORCE, _BUFFER)

    return _bound(listen, socket.SOCK_DGRAM, roomy)


def stream_socket(listen: Listen) -> socket.socket:
    """A listening TCP socket. Raises OSError; the caller closes it."""
    opened = _bound(
        listen, socket.SOCK_STREAM, lambda opened: opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    )
    opened.listen(_BACKLOG)
    return opened


def _bound(listen: Listen, kind: socket.SocketKind, prepare: Callable[[socket.socket], None]) -> socket.socket:
    opened = socket.socket(listen.family, kind)
    try:
        opened.settimeout(0)
        prepare(opened)
        if listen.family == socket.AF_INET6:  # [::] takes IPv4 too, whatever the system's default is
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        opened.bind(socket_address(listen.family, listen.address, listen.port))
    except BaseException:
        opened.close()
        raise
    return opened


def cannot_listen(target: str, listen: Listen, error: OSError, rivals: str = "") -> PlanError:
    """Why an address cannot be opened, with the remedy; ``rivals`` names this run's sources on the port."""
    remedy = "give another address with listen:"
    if error.errno == errno.EADDRINUSE:
        remedy = "another program has it: give a free port with listen:"
    if error.errno == errno.EADDRINUSE and rivals:
        remedy = f"{rivals} has that port: give the very same address with listen: in both to share it, or a free port"
    elif isinstance(error, PermissionError):
        remedy = "ports below 1024 need the right to bind them: give a higher one with listen:"
    elif error.errno in {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}:
        remedy = "this machine has no such address: give one of its own with listen:"
    return PlanError(f"{target}: {listen} cannot be opened ({error.strerror or type(error).__name__}): {remedy}")
