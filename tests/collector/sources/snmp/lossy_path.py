"""A path of UDP that loses, doubles and delays datagrams by seeded dice, between those that ask and a real agent."""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import cast

_LATE_S = 0.03  # of a datagram that others overtake


@dataclass
class LossyPath(asyncio.DatagramProtocol):
    """``loss`` is the share of round trips of which nothing comes back, half of them on the way there.

    ``twice`` is the share of answers that come two times, ``overtaken`` that of answers that come ``_LATE_S`` later.
    Each asker has its own socket to the agent.
    """

    port: int
    loss: float
    twice: float = 0.0
    overtaken: float = 0.0
    seed: int = 1
    asked: int = 0
    lost: int = 0
    _front: asyncio.DatagramTransport | None = None
    _ways: dict[tuple[str, int], tuple[asyncio.DatagramTransport, _Way]] = field(default_factory=dict)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._dice = random.Random(self.seed)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The side of those that ask."""
        self._front = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """From one that asks."""
        self.asked += 1
        fate = self._dice.random()
        self.lost += fate < self.loss
        if fate >= self.loss / 2:  # those between are lost on the way back
            task = asyncio.get_running_loop().create_task(self._ask(data, addr, answered=fate >= self.loss))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _ask(self, data: bytes, addr: tuple[str, int], *, answered: bool) -> None:
        loop = asyncio.get_running_loop()
        if addr not in self._ways:
            self._ways[addr] = await loop.create_datagram_endpoint(
                lambda: _Way(self, addr), remote_addr=("127.0.0.1", self.port)
            )
        transport, way = self._ways[addr]
        way.fates.append(answered)
        transport.sendto(data)

    def come_back(self, data: bytes, addr: tuple[str, int], *, answered: bool) -> None:
        """From the agent."""
        if not answered:
            return
        late = _LATE_S if self._dice.random() < self.overtaken else 0.0
        for copy in range(2 if self._dice.random() < self.twice else 1):
            asyncio.get_running_loop().call_later(late + copy * _LATE_S / 2, self._send, data, addr)

    def _send(self, data: bytes, addr: tuple[str, int]) -> None:
        if self._front is not None and not self._front.is_closing():
            self._front.sendto(data, addr)

    def close(self) -> None:
        """Nothing is handed on any more."""
        for transport in (self._front, *(way for way, _ in self._ways.values())):
            if transport is not None:
                transport.close()


class _Way(asyncio.DatagramProtocol):
    def __init__(self, path: LossyPath, asker: tuple[str, int]) -> None:
        self._path, self._asker = path, asker
        self.fates: list[bool] = []

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """An answer: the agent answers in the order of its requests."""
        self._path.come_back(data, self._asker, answered=self.fates.pop(0) if self.fates else True)


async def lossy_path(stack: AsyncExitStack, path: LossyPath) -> int:
    """The port of a path to the agent at ``path.port``."""
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(lambda: path, local_addr=("127.0.0.1", 0))
    stack.callback(path.close)
    return int(transport.get_extra_info("sockname")[1])
