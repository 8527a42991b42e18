"""The bounded queue of received messages: parsed piece by piece, fetched by the next poll."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass

from soakwatch.sources.abc import SourceError
from soakwatch.sources.receivers.sender_filter import SenderFilter
from soakwatch.sources.receivers.storm import Storm
from soakwatch_model.event import Event
from soakwatch_model.sample import Answer, Sample, object_text

MAX_WAITING = 50_000
MAX_BYTES = 32 * 2**20
MAX_EVENTS = 20_000  # between two polls
_AT_ONCE_S = 0.005  # time on the event loop before others get their turn
_EVENT, _SUPPRESSED, _DROPPED, _GARBLED = "event", "suppressed", "dropped", "garbled"


@dataclass(frozen=True, slots=True)
class Received:
    """One received datagram or line."""

    time_ns: int
    address: str
    port: int
    data: bytes


@dataclass(frozen=True, slots=True)
class ReadResult:
    """What a message became: an event, or else its fate in a word."""

    fate: str
    event: Event | None = None


class MessageQueue:
    """Takes messages without blocking, and parses them in a task, a few milliseconds at a time.

    ``read`` makes a ``ReadResult`` of each; if it raises, the message counts as garbled. Messages that do not fit are
    dropped and counted.
    """

    def __init__(self, read: Callable[[Received], ReadResult | None], storm: Storm, name: str = "") -> None:
        self.name = name  # of the source in its series; set by the listener if empty
        self.fates: Counter[str] = Counter({_EVENT: 0, _SUPPRESSED: 0, _DROPPED: 0})
        self._read, self._storm = read, storm
        self._waiting: deque[Received] = deque()
        self._bytes = 0
        self._events: list[Event] = []
        self._wake, self._room = asyncio.Event(), asyncio.Event()
        self._room.set()
        self._task: asyncio.Task[None] | None = None

    async def open(self, stack: AsyncExitStack) -> None:
        """Starts parsing; the stack ends it."""
        self._task = asyncio.create_task(self._work())
        stack.push_async_callback(self._close)

    def put(self, received: Received) -> None:
        """Queues one message."""
        if len(self._waiting) >= MAX_WAITING or self._bytes >= MAX_BYTES:
            self.fates[_DROPPED] += 1
            return
        self._waiting.append(received)
        self._bytes += len(received.data)
        if len(self._waiting) >= MAX_WAITING // 2 or self._bytes >= MAX_BYTES // 2:
            self._room.clear()
        self._wake.set()

    async def room(self) -> None:
        """Waits for room, for senders that can wait."""
        await self._room.wait()

    def answer(self, now_ns: int, dropped: int = 0) -> Answer:
        """The events since the last call; ``dropped`` were lost before the queue.

        Raises SourceError if parsing had stopped, and restarts it.
        """
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())
            raise SourceError(
                f"the receiver {self.name} had stopped and was restarted: messages that arrived meanwhile are kept"
            )
        events, self._events = self._events, []
        events += self._storm.over(now_ns)
        counted = self.fates + Counter({_DROPPED: dropped})
        samples = tuple(
            Sample("source.messages", object_text(source=self.name, fate=fate), counted[fate], now_ns)
            for fate in sorted(self.fates)
        )
        return Answer(samples, tuple(events), ())

    async def _work(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                until = time.monotonic() + _AT_ONCE_S
                while self._waiting and time.monotonic() < until:
                    self._read_next(self._waiting.popleft())
                if len(self._waiting) < MAX_WAITING // 4 and self._bytes < MAX_BYTES // 4:
                    self._room.set()
                await asyncio.sleep(_AT_ONCE_S if self._waiting else 0)

    def _read_next(self, received: Received) -> None:
        self._bytes -= len(received.data)
        try:
            read = self._read(received)
        except Exception:  # noqa: BLE001 - whatever was sent must not stop the receiver
            read = ReadResult(_GARBLED)
        if read is None:
            return
        event = read.event
        if event is None:
            self.fates[read.fate] += 1
        elif len(self._events) >= MAX_EVENTS:
            self.fates[_DROPPED] += 1
        elif self._storm.admits(event.kind, event.object, received.time_ns):
            self.fates[_EVENT] += 1
            self._events.append(event)
        else:
            self.fates[_SUPPRESSED] += 1

    async def _close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task


@dataclass(slots=True, eq=False)
class Subscriber:
    """One source at a listener: whose messages it takes, and their queue; times are of its own clock."""

    target: str
    senders: SenderFilter
    queue: MessageQueue
    now_ns: Callable[[], int]
    connections: int = 64

    def put(self, address: str, port: int, data: bytes) -> None:
        """Queues one message."""
        self.queue.put(Received(self.now_ns(), address, port, data))
