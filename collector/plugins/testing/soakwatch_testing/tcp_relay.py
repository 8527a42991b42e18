"""A TCP relay that can go silent without closing connections, like a dropped link."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Self


class TcpRelay:
    """Forwards ``port`` to another port of loopback while ``carries`` is set; held data is forwarded later."""

    def __init__(self, there: int) -> None:
        self.there, self.port = there, 0
        self.carries = asyncio.Event()
        self.carries.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._forward(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self.carries.wait()
            there, back = await asyncio.open_connection("127.0.0.1", self.there)
            try:
                await asyncio.gather(self._pump(reader, back), self._pump(there, writer))
            finally:
                back.close()
        except OSError:
            pass  # no server listens there
        finally:
            writer.close()

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(1 << 16):
                await self.carries.wait()
                sink.write(data)
                await sink.drain()
            sink.close()
