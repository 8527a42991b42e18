"""Syslog over TCP and TLS: connections, read as fast as the desk takes it, and no more of them than a number."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress

from soakwatch.notices.address import Listen, Senders, cannot_listen
from soakwatch.notices.desk import Arrived, Desk
from soakwatch.notices.framing import Frames, NoSyslog

_AT_ONCE = 65536
_HANDSHAKE_S = 10.0


class Streams:
    """The open connections of one listener. When there are too many, the one that was silent longest is closed."""

    def __init__(self, desk: Desk, allowed: Senders, now_ns: Callable[[], int], most: int) -> None:
        self._desk, self._allowed, self._now_ns, self._most = desk, allowed, now_ns, most
        self._spoke: dict[asyncio.Task[None], float] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, to its end."""
        task = asyncio.current_task()
        address, port = _peer(writer)
        try:
            if address not in self._allowed:
                self._desk.fates["foreign"] += 1
                return
            if task is not None:
                self._enter(task)
            with suppress(OSError, ssl.SSLError):
                await self._read(reader, task, address, port)
        except asyncio.CancelledError:
            pass  # the run ends, or another connection needs the room: nobody waits for this task
        finally:
            if task is not None:
                self._spoke.pop(task, None)
            writer.transport.abort()

    async def end(self) -> None:
        """Close all connections."""
        tasks = list(self._spoke)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _enter(self, task: asyncio.Task[None]) -> None:
        if len(self._spoke) >= self._most:
            silent = min(self._spoke, key=self._spoke.__getitem__)
            del self._spoke[silent]
            silent.cancel()
            self._desk.fates["connection closed"] += 1
        self._spoke[task] = time.monotonic()

    async def _read(
        self, reader: asyncio.StreamReader, task: asyncio.Task[None] | None, address: str, port: int
    ) -> None:
        frames = Frames()
        while data := await reader.read(_AT_ONCE):
            if task in self._spoke:
                self._spoke[task] = time.monotonic()
            try:
                found = frames.feed(data)
            except NoSyslog:
                self._desk.fates["garbled"] += 1
                return
            await self._put(found, address, port)
        await self._put([rest] if (rest := frames.rest()) else [], address, port)

    async def _put(self, found: list[bytes], address: str, port: int) -> None:
        for frame in found:
            await self._desk.room()
            self._desk.put(Arrived(self._now_ns(), address, port, frame))


async def open_streams(
    target: str, listen: Listen, streams: Streams, tls: ssl.SSLContext | None, stack: AsyncExitStack
) -> int:
    """Listen; the caller's stack closes it. Returns the port. Raises PlanError."""
    try:
        server = await asyncio.start_server(
            streams.serve,
            listen.address,
            listen.port,
            family=listen.family,
            ssl=tls,
            ssl_handshake_timeout=_HANDSHAKE_S if tls is not None else None,
        )
    except OSError as error:
        raise cannot_listen(target, listen, error) from None
    stack.push_async_callback(_close, server, streams)
    return int(server.sockets[0].getsockname()[1])


async def _close(server: asyncio.Server, streams: Streams) -> None:
    server.close()
    await streams.end()
    await server.wait_closed()


def _peer(writer: asyncio.StreamWriter) -> tuple[str, int]:
    opened = writer.get_extra_info("socket")
    if opened is not None:
        with suppress(OSError):
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    peer = writer.get_extra_info("peername")
    return (str(peer[0]), int(peer[1])) if peer else ("", 0)
