"""Syslog over TCP and TLS: a bounded number of connections, read as fast as the queues take them; each stream is split
into messages (RFC 6587) by octet counting or lines, decided per message."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from soakwatch.sources.receivers.address import Listen, stream_socket, unmapped
from soakwatch.sources.receivers.queue import Subscriber
from soakwatch.sources.receivers.syslog_line import MAX_MESSAGE_BYTES

_AT_ONCE = 65536
_HANDSHAKE_S = 10.0
_COUNT = 9  # maximum digits of a length
_MAX_ANNOUNCED = 2**24  # bytes; a sender that announces more does not speak syslog

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


class NoSyslogError(Exception):
    """The stream is not syslog and must be closed."""


class Frames:
    """Splits a stream into messages of at most ``MAX_MESSAGE_BYTES`` bytes; the rest of longer ones is discarded."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._discard = 0  # bytes left of a too long message
        self._to_line_end = False

    def feed(self, data: bytes) -> list[bytes]:
        """The messages that are complete now. Raises NoSyslogError for an impossible length."""
        self._buffer += data
        messages: list[bytes] = []
        while True:
            frame = self._next()
            if frame is None:
                return messages
            if frame:
                messages.append(frame)

    def rest(self) -> bytes:
        """The incomplete message at the end of the stream."""
        kept = b"" if self._to_line_end or self._discard else bytes(self._buffer[:MAX_MESSAGE_BYTES])
        self._buffer.clear()
        return kept

    def _next(self) -> bytes | None:
        """The next message, b"" for something skipped, None if more data is needed."""
        buffer = self._buffer
        if self._discard:
            gone = min(self._discard, len(buffer))
            del buffer[:gone]
            self._discard -= gone
        if not buffer:
            return None
        size = None if self._to_line_end else self._count()
        if size is None:
            return self._line()
        if size < 0:
            return None
        start = buffer.index(b" ") + 1
        wanted = min(size, MAX_MESSAGE_BYTES)
        if len(buffer) < start + wanted:
            return None
        frame = bytes(buffer[start : start + wanted])
        del buffer[: start + wanted]
        self._discard = size - wanted
        return frame

    def _count(self) -> int | None:
        """The announced length; None if the message is a line, -1 if not known yet."""
        head = bytes(self._buffer[: _COUNT + 2])
        digits, space, after = head.partition(b" ")
        if not digits.isdigit() or len(digits) > _COUNT or digits.startswith(b"0"):
            return None
        if not space or not after:
            return -1 if len(head) < _COUNT + 2 else None
        if after[:1] != b"<":
            return None
        if int(digits) > _MAX_ANNOUNCED:
            raise NoSyslogError(f"a message of {int(digits)} bytes was announced")
        return int(digits)

    def _line(self) -> bytes | None:
        buffer = self._buffer
        end = buffer.find(b"\n")
        if end >= 0:
            line = b"" if self._to_line_end else bytes(buffer[: min(end, MAX_MESSAGE_BYTES)])
            del buffer[: end + 1]
            self._to_line_end = False
            return line
        if self._to_line_end:
            buffer.clear()
        elif len(buffer) > MAX_MESSAGE_BYTES:
            line = bytes(buffer[:MAX_MESSAGE_BYTES])
            buffer.clear()
            self._to_line_end = True
            return line
        return None
