"""Syslog over TCP and TLS: a bounded number of connections, read as fast as the queues take them."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from soakwatch.sources.receivers.address import Listen, stream_socket, unmapped
from soakwatch.sources.receivers.framing import Frames, NoSyslogError
from soakwatch.sources.receivers.queue import Subscriber

_AT_ONCE = 65536
_HANDSHAKE_S = 10.0

Takers = Callable[[str], tuple[Subscriber, ...]]
"""The sources for messages of an address."""


@dataclass(slots=True, eq=False)
class _Connection:
    task: asyncio.Task[None]
    address: str
    port: int
    spoke: float


class Streams:
    """The open connections of one listener.

    Each source has a maximum of connections from its senders; beyond it, the one silent longest is closed. A connection
    without a source is closed, and ``foreign`` called.
    """

    def __init__(self, takers: Takers, foreign: Callable[[], None]) -> None:
        self._takers, self._foreign = takers, foreign
        self._open: set[_Connection] = set()
        self._server: asyncio.Server | None = None
        self._ending: list[asyncio.Task[None]] = []

    async def open(self, listen: Listen, tls: ssl.SSLContext | None) -> int:
        """Listens until ``close``. Returns the port. Raises OSError."""
        opened = stream_socket(listen)
        try:
            self._server = await asyncio.start_server(
                self._serve,
                sock=opened,
                ssl=tls,
                ssl_handshake_timeout=_HANDSHAKE_S if tls is not None else None,
                start_serving=False,
            )
            await self._server.start_serving()
        except BaseException:
            self.close()
            opened.close()
            raise
        return int(opened.getsockname()[1])

    def close(self) -> None:
        """Stops listening and ends all connections; ``closed`` waits for it."""
        if self._server is not None:
            self._server.close()
        self._ending = [connection.task for connection in self._open]
        for task in self._ending:
            task.cancel()

    def rerouted(self) -> None:
        """Ends connections that no source takes any more."""
        for connection in tuple(self._open):
            if not self._takers(connection.address):
                self._open.discard(connection)
                connection.task.cancel()

    async def closed(self) -> None:
        """Waits until everything is closed."""
        await asyncio.gather(*self._ending, return_exceptions=True)
        if self._server is not None:
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves one connection to its end."""
        task = asyncio.current_task()
        assert task is not None
        connection = _Connection(task, *_peer(writer), time.monotonic())
        try:
            if self._entered(connection):
                with suppress(OSError, ssl.SSLError):
                    await self._read(reader, connection)
            else:
                self._foreign()
        except asyncio.CancelledError:
            pass  # the run ends, or another connection needs the place
        finally:
            self._open.discard(connection)
            writer.transport.abort()

    def _entered(self, connection: _Connection) -> bool:
        """Admits a connection unless no source takes it; may close the one silent longest."""
        takers = self._takers(connection.address)
        for subscriber in takers:
            having = [connected for connected in self._open if subscriber in self._takers(connected.address)]
            if len(having) >= subscriber.connections:
                silent = min(having, key=lambda connected: connected.spoke)
                self._open.discard(silent)
                silent.task.cancel()
                subscriber.queue.fates["connection closed"] += 1
        if takers:
            self._open.add(connection)
        return bool(takers)

    async def _read(self, reader: asyncio.StreamReader, connection: _Connection) -> None:
        frames = Frames()
        while data := await reader.read(_AT_ONCE):
            connection.spoke = time.monotonic()
            try:
                messages = frames.feed(data)
            except NoSyslogError:
                for subscriber in self._takers(connection.address):
                    subscriber.queue.fates["garbled"] += 1
                return
            if not await self._put(messages, connection):
                self._foreign()
                return
        await self._put([rest] if (rest := frames.rest()) else [], connection)

    async def _put(self, messages: list[bytes], connection: _Connection) -> bool:
        """Queues messages; False if no source takes them any more."""
        for frame in messages:
            takers = self._takers(connection.address)
            for subscriber in takers:
                await subscriber.queue.room()
                subscriber.put(connection.address, connection.port, frame)
            if not takers:
                return False
        return True


def _peer(writer: asyncio.StreamWriter) -> tuple[str, int]:
    opened = writer.get_extra_info("socket")
    if opened is not None:
        with suppress(OSError):
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    peer = writer.get_extra_info("peername")
    return (unmapped(str(peer[0])), int(peer[1])) if peer else ("", 0)
