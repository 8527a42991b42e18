"""A shared address: one socket per transport; each message goes to the sources that claim its sender."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import Callable, Collection
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from weakref import WeakKeyDictionary, ref

from soakwatch.core.errors import PlanError
from soakwatch.sources.receivers.address import Listen, cannot_listen, datagram_socket, socket_address, unmapped
from soakwatch.sources.receivers.queue import Subscriber
from soakwatch.sources.receivers.streams import Streams
from soakwatch.sources.receivers.user import Receiver

UDP, TCP, TLS = "udp", "tcp", "tls"
_MAX_ROUTES = 4096  # cached senders
_MAX_DATAGRAM = 65535
_AT_ONCE = 200  # datagrams in one turn of the event loop
_MEMINFO = 55  # Linux's SO_MEMINFO: nine numbers, the last counts datagrams dropped because the buffer was full
_ROOM_WANTED = 2**20

Route = tuple[Subscriber, ...]
Put = Callable[[str, int, bytes], None]
"""Takes a datagram: the sender's address and port, and the data."""


@dataclass(frozen=True, slots=True)
class Secure:
    """TLS: its files, for comparison, and the context made of them."""

    files: tuple[str, ...]
    context: ssl.SSLContext = field(compare=False)


@dataclass(frozen=True, slots=True)
class Channels:
    """What a source wants of a listener: its transports, and TLS if it is one of them."""

    channels: frozenset[str]
    secure: Secure | None = None


class Datagrams:
    """A UDP socket that is emptied as fast as possible, into ``put``. Raises OSError if it cannot be opened."""

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


class Listener:
    """One address and port. A transport opens with its first source and closes with its last."""

    def __init__(self, what: str, listen: Listen) -> None:
        self.what, self.listen = what, listen
        self.receiver3: Receiver | None = None
        self.datagrams: Datagrams | None = None
        self._streams: dict[str, Streams] = {}
        self._closing: list[Streams] = []
        self._subscribers: dict[Subscriber, Channels] = {}
        self._routes: dict[tuple[str, str], Route] = {}

    @property
    def subscribers(self) -> Route:
        """The sources that listen here."""
        return tuple(self._subscribers)

    def check(self, subscriber: Subscriber, channels: Channels) -> None:
        """Raises PlanError if a source cannot share the address with those already here."""
        for other, theirs in self._subscribers.items():
            if other.target != subscriber.target and not other.senders.named and not subscriber.senders.named:
                raise PlanError(
                    f"{subscriber.target}: {other.target} listens at {self.listen} as well and neither has from:, so "
                    "the sender of a message is unknown: give the device's address with from: in at least one of them"
                )
            streams = (channels.channels | theirs.channels) & {TCP, TLS}
            if len(streams) > 1:
                raise PlanError(
                    f"{subscriber.target}: {other.target} listens at {self.listen} as well, one with TLS "
                    f"and one without: "
                    "give another port in one of them"
                )
            if TLS in channels.channels & theirs.channels and channels.secure != theirs.secure:
                raise PlanError(
                    f"{subscriber.target}: {other.target} listens at {self.listen} as well with other files for TLS: "
                    "give the same certificate, key and client_ca in both, or another port in one of them"
                )

    async def enter(self, subscriber: Subscriber, channels: Channels) -> None:
        """Adds a source and opens missing transports. Raises OSError, and then changes nothing."""
        self._subscribers[subscriber] = channels  # first, so that open transports stay open meanwhile
        subscriber.senders.add_callback(self._rerouted)
        self._rerouted()
        try:
            if UDP in channels.channels and self.datagrams is None:
                self.datagrams = Datagrams(self.listen, self._put)
                self.listen = Listen(self.listen.address, self.datagrams.port)
            for channel in channels.channels & {TCP, TLS} - self._streams.keys():
                streams = Streams(partial(self.route, channel), self.foreign)
                port = await streams.open(
                    self.listen, channels.secure.context if channels.secure and channel == TLS else None
                )
                self._streams[channel] = streams
                self.listen = Listen(self.listen.address, port)
        except BaseException:
            self.leave(subscriber)
            await self.settled()
            raise

    def leave(self, subscriber: Subscriber) -> None:
        """Removes a source and closes unused transports; ``settled`` waits for that."""
        del self._subscribers[subscriber]
        subscriber.senders.remove_callback(self._rerouted)
        wanted = frozenset[str]().union(*(channels.channels for channels in self._subscribers.values()))
        if UDP not in wanted and self.datagrams is not None:
            self.datagrams.close()
            self.datagrams = None
        for channel in self._streams.keys() - wanted:
            self._streams[channel].close()
            self._closing.append(self._streams.pop(channel))
        self._rerouted()

    async def settled(self) -> None:
        """Waits until closing transports are closed."""
        while self._closing:
            await self._closing.pop().closed()

    @property
    def dropped(self) -> int:
        """Datagrams that the kernel dropped here."""
        return self.datagrams.dropped if self.datagrams is not None else 0

    def send(self, data: bytes, address: str, port: int) -> None:
        """Sends an answer over UDP."""
        if self.datagrams is not None:
            self.datagrams.send(data, address, port)

    def route(self, channel: str, address: str) -> Route:
        """The sources for messages of an address over a transport."""
        takers = self._routes.get((channel, address))
        if takers is None:
            claiming = [subscriber for subscriber in self._subscribers if address in subscriber.senders]
            # A claimed sender's message on an unwanted transport is dropped: it is no other device's.
            taking = claiming or [subscriber for subscriber in self._subscribers if not subscriber.senders.named]
            takers = tuple(subscriber for subscriber in taking if channel in self._subscribers[subscriber].channels)
            if len(self._routes) >= _MAX_ROUTES:
                self._routes.clear()
            self._routes[channel, address] = takers
        return takers

    def foreign(self) -> None:
        """Counts a message that no source takes, for each source here."""
        for subscriber in self._subscribers:
            subscriber.queue.fates["foreign"] += 1

    def _rerouted(self) -> None:
        """Forgets cached routes: a source came, left, or claims other senders."""
        self._routes.clear()
        for streams in self._streams.values():
            streams.rerouted()

    def _put(self, address: str, port: int, data: bytes) -> None:
        takers = self.route(UDP, address)
        for subscriber in takers:
            subscriber.put(address, port, data)
        if not takers:
            self.foreign()


Name = Callable[[str], str | None]
"""The object of an interface by its ifIndex; None if unknown."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """A source's membership in a listener."""

    listener: Listener
    subscriber: Subscriber
    dropped_before: int

    @property
    def dropped(self) -> int:
        """Datagrams that the kernel dropped since this source joined; their senders are unknown."""
        return max(0, self.listener.dropped - self.dropped_before)

    @property
    def neighbours(self) -> str:
        """The other targets that listen here, as text."""
        return ", ".join(sorted({other.target for other in self.listener.subscribers} - {self.subscriber.target}))


@dataclass(slots=True, weakref_slot=True)
class Listeners:
    """The listeners of an event loop by protocol, address and port; it lives as long as one has a source.

    ``names`` are, by target, functions that name its interfaces.
    """

    by_address: dict[tuple[str, str, int], Listener] = field(default_factory=dict)
    names: dict[str, list[Name]] = field(default_factory=dict)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def join(
        self, what: str, listen: Listen, subscriber: Subscriber, channels: Channels, stack: AsyncExitStack
    ) -> Subscription:
        """Listens on an address, alone or with other sources; the stack ends it.

        Port 0 is never shared. Raises PlanError if it cannot be opened, or not shared.
        """
        async with self._turn:  # two sources may open the same address at once
            listener = self.by_address.get((what, listen.address, listen.port)) if listen.port else None
            listener = listener or Listener(what, listen)
            listener.check(subscriber, channels)
            names = {other.queue.name for other in listener.subscribers if other.target == subscriber.target}
            before = listener.dropped
            try:
                await listener.enter(subscriber, channels)
            except OSError as error:
                raise cannot_listen(subscriber.target, listener.listen, error, self._rivals(listener)) from None
            finally:
                self._keep(listener)
            stack.push_async_callback(self._leave, listener, subscriber)
            subscriber.queue.name = subscriber.queue.name or _free(f"{what}:{listener.listen.port}", names)
            return Subscription(listener, subscriber, before)

    def _keep(self, listener: Listener) -> None:
        """Keeps a listener while it has a source."""
        key = listener.what, listener.listen.address, listener.listen.port
        if listener.subscribers:
            self.by_address[key] = listener
        elif self.by_address.get(key) is listener:
            del self.by_address[key]

    async def _leave(self, listener: Listener, subscriber: Subscriber) -> None:
        listener.leave(subscriber)
        self._keep(listener)  # before awaiting: a source that joins now must open the address anew
        await listener.settled()

    def _rivals(self, listener: Listener) -> str:
        return ", ".join(
            f"{other.what} of {subscriber.target} at {other.listen}"
            for other in self.by_address.values()
            if other is not listener and other.listen.port == listener.listen.port
            for subscriber in other.subscribers
        )


def _free(name: str, taken: Collection[str]) -> str:
    """A name that no other source of the target has at this address."""
    return next(
        candidate
        for candidate in (name, *(f"{name}-{number}" for number in range(2, len(taken) + 2)))
        if candidate not in taken
    )


_LISTENERS: WeakKeyDictionary[asyncio.AbstractEventLoop, ref[Listeners]] = WeakKeyDictionary()


def listeners() -> Listeners:
    """The listeners of the running loop: sockets cannot change loops."""
    loop = asyncio.get_running_loop()
    held = _LISTENERS.get(loop)
    registry = held() if held is not None else None
    if registry is None:
        registry = Listeners()
        _LISTENERS[loop] = ref(registry)
    return registry
