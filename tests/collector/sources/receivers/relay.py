"""Gives programs that cannot choose their address one: what comes in leaves from an address of the loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class _Forwarding(asyncio.DatagramProtocol):
    def __init__(self, out: asyncio.DatagramTransport) -> None:
        self._out = out

    def datagram_received(self, data: bytes, addr: object) -> None:
        """Send it on."""
        self._out.sendto(data)


@asynccontextmanager
async def relay(address: str, port: int) -> AsyncIterator[int]:
    """A port, over UDP and TCP, whose traffic goes from ``address`` to another port of 127.0.0.1."""
    loop = asyncio.get_running_loop()
    out, _ = await loop.create_datagram_endpoint(
        asyncio.DatagramProtocol, local_addr=(address, 0), remote_addr=("127.0.0.1", port)
    )

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, onward = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
        with suppress(OSError):
            while data := await reader.read(65536):
                onward.write(data)
                await onward.drain()
        for end in (onward, writer):
            end.close()
            with suppress(OSError):
                await end.wait_closed()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    listening = int(server.sockets[0].getsockname()[1])
    incoming, _ = await loop.create_datagram_endpoint(lambda: _Forwarding(out), local_addr=("127.0.0.1", listening))
    try:
        yield listening
    finally:
        incoming.close()
        out.close()
        server.close()
        await server.wait_closed()
