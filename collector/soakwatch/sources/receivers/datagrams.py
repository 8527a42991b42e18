"""A UDP socket that is emptied as fast as possible; datagrams that the kernel dropped are counted."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable

from soakwatch.sources.receivers.address import Listen, datagram_socket, socket_address, unmapped

_MAX_DATAGRAM = 65535
_AT_ONCE = 200  # datagrams in one turn of the event loop
_MEMINFO = 55  # Linux's SO_MEMINFO: nine numbers, the last counts datagrams dropped because the buffer was full
_ROOM_WANTED = 2**20

Put = Callable[[str, int, bytes], None]
"""Takes a datagram: the sender's address and port, and the data."""


class Datagrams:
    """Passes all datagrams of an address to ``put``. Raises OSError if it cannot be opened."""

    def __init__(self, listen: Listen, put: Put) -> None:
        self._put = put
        self._socket = datagram_socket(listen)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._socket, self._drain)

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._socket.getsockname()[1])

    @property
    def dropped(self) -> int:
        """Datagrams that the kernel dropped because the buffer was full; 0 if unknown."""
        try:
            return int(struct.unpack("9I", self._socket.getsockopt(socket.SOL_SOCKET, _MEMINFO, 36))[8])
        except (OSError, struct.error):
            return 0

    @property
    def narrow(self) -> str | None:
        """A sentence if the kernel gives the socket a small buffer."""
        room = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) // 2
        if room >= _ROOM_WANTED:
            return None
        return (
            f"the kernel gives the socket {room // 1024} KiB, so a burst of many hundred datagrams may be cut: "
            "raise net.core.rmem_max to 4194304"
        )

    def send(self, data: bytes, address: str, port: int) -> None:
        """Sends an answer; drops it if it cannot be sent now, as UDP may."""
        try:
            self._socket.sendto(data, socket_address(self._socket.family, address, port))
        except OSError:
            return

    def close(self) -> None:
        """Closes the socket."""
        self._loop.remove_reader(self._socket)
        self._socket.close()

    def _drain(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                data, sender = self._socket.recvfrom(_MAX_DATAGRAM)
            except BlockingIOError:
                return
            except OSError:
                continue  # an ICMP error for an answer of ours: the next datagram is fine
            self._put(unmapped(str(sender[0])), int(sender[1]), data)
