"""A place that sources listen at together: one socket a way, and each message goes to those that claim its sender."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Collection
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from weakref import WeakKeyDictionary, ref

from soakwatch.core.errors import PlanError
from soakwatch.sources.receivers.address import Listen, cannot_listen
from soakwatch.sources.receivers.datagrams import Datagrams
from soakwatch.sources.receivers.queue import Subscriber
from soakwatch.sources.receivers.streams import Streams
from soakwatch.sources.receivers.user import Receiver

UDP, TCP, TLS = "udp", "tcp", "tls"
_MAX_ROUTES = 4096  # senders that are remembered; beyond, they are looked up anew

Route = tuple[Subscriber, ...]


@dataclass(frozen=True, slots=True)
class Secure:
    """TLS: what it is made of, by which two are told to be the same, and what was made of it."""

    files: tuple[str, ...]
    context: ssl.SSLContext = field(compare=False)


@dataclass(frozen=True, slots=True)
class Channels:
    """What a source wants of a place: the ways in, and TLS where it is one of them."""

    channels: frozenset[str]
    secure: Secure | None = None


class Listener:
    """One address and port. A way in is opened for the first source that wants it and closed with the last."""

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
        """Raises PlanError if a source cannot share the place with those that are there already."""
        for other, theirs in self._subscribers.items():
            if other.target != subscriber.target and not other.senders.named and not subscriber.senders.named:
                raise PlanError(
                    f"{subscriber.target}: {other.target} listens at {self.listen} as well and neither has from:, so "
                    "the sender of a message is unknown: give the device's address with from: in at least one of them"
                )
            streams = (channels.channels | theirs.channels) & {TCP, TLS}
            if len(streams) > 1:
                raise PlanError(
                    f"{subscriber.target}: {other.target} listens at {self.listen} too, one with TLS and one without: "
                    "name another port in one of them"
                )
            if TLS in channels.channels & theirs.channels and channels.secure != theirs.secure:
                raise PlanError(
                    f"{subscriber.target}: {other.target} listens at {self.listen} too with other files for TLS: "
                    "name the same certificate, key and client_ca in both, or another port in one of them"
                )

    async def enter(self, subscriber: Subscriber, channels: Channels) -> None:
        """Take a source in and open what is not open yet. Raises OSError, and then leaves things as they were."""
        self._subscribers[subscriber] = channels  # first: what is open already must stay so while the rest is opened
        subscriber.senders.when_changed(self._rerouted)
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
        """Let a source go; what nobody wants any more is closed, and ``settled`` waits for it."""
        del self._subscribers[subscriber]
        subscriber.senders.unless_changed(self._rerouted)
        wanted = frozenset[str]().union(*(channels.channels for channels in self._subscribers.values()))
        if UDP not in wanted and self.datagrams is not None:
            self.datagrams.close()
            self.datagrams = None
        for channel in self._streams.keys() - wanted:
            self._streams[channel].close()
            self._closing.append(self._streams.pop(channel))
        self._rerouted()

    async def settled(self) -> None:
        """Wait until what was closed is."""
        while self._closing:
            await self._closing.pop().closed()

    @property
    def dropped(self) -> int:
        """Datagrams that the kernel dropped here."""
        return self.datagrams.dropped if self.datagrams is not None else 0

    def send(self, data: bytes, address: str, port: int) -> None:
        """Answer somebody over UDP."""
        if self.datagrams is not None:
            self.datagrams.send(data, address, port)

    def route(self, channel: str, address: str) -> Route:
        """Who takes what an address sends on a way."""
        found = self._routes.get((channel, address))
        if found is None:
            claiming = [subscriber for subscriber in self._subscribers if address in subscriber.senders]
            # What a source claims but does not want on this way is nobody's, not another device's.
            taking = claiming or [subscriber for subscriber in self._subscribers if not subscriber.senders.named]
            found = tuple(subscriber for subscriber in taking if channel in self._subscribers[subscriber].channels)
            if len(self._routes) >= _MAX_ROUTES:
                self._routes.clear()
            self._routes[channel, address] = found
        return found

    def foreign(self) -> None:
        """Count something that nobody takes: each source here is told of it."""
        for subscriber in self._subscribers:
            subscriber.queue.fates["foreign"] += 1

    def _rerouted(self) -> None:
        """Somebody came, left, or claims others than before."""
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
"""The object of an interface by its ifIndex, None if it is not known."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a source has of a place."""

    listener: Listener
    subscriber: Subscriber
    dropped_before: int

    @property
    def dropped(self) -> int:
        """Datagrams that the kernel dropped since this source listens; whose they were, nobody knows."""
        return max(0, self.listener.dropped - self.dropped_before)

    @property
    def neighbours(self) -> str:
        """The other targets that listen here, for people; empty if there are none."""
        return ", ".join(sorted({one.target for one in self.listener.subscribers} - {self.subscriber.target}))


@dataclass(slots=True, weakref_slot=True)
class Listeners:
    """The places of one event loop by what is listened for, address and port; it lives as long as somebody is there.

    ``names`` are those who know the interfaces of a target.
    """

    by_address: dict[tuple[str, str, int], Listener] = field(default_factory=dict)
    names: dict[str, list[Name]] = field(default_factory=dict)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def join(
        self, what: str, listen: Listen, subscriber: Subscriber, channels: Channels, stack: AsyncExitStack
    ) -> Subscription:
        """Listen at a place, alone or with those that are there; the caller's stack ends it.

        Port 0 is never shared. Raises PlanError if it cannot be listened at, or not together.
        """
        async with self._turn:  # two that open the same place at the same time
            listener = self.by_address.get((what, listen.address, listen.port)) if listen.port else None
            listener = listener or Listener(what, listen)
            listener.check(subscriber, channels)
            names = {one.queue.name for one in listener.subscribers if one.target == subscriber.target}
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
        """Know a place as long as somebody is there."""
        key = listener.what, listener.listen.address, listener.listen.port
        if listener.subscribers:
            self.by_address[key] = listener
        elif self.by_address.get(key) is listener:
            del self.by_address[key]

    async def _leave(self, listener: Listener, subscriber: Subscriber) -> None:
        listener.leave(subscriber)
        self._keep(listener)  # before anything is waited for: who comes now opens the place anew
        await listener.settled()

    def _rivals(self, listener: Listener) -> str:
        return ", ".join(
            f"{one.what} of {subscriber.target} at {one.listen}"
            for one in self.by_address.values()
            if one is not listener and one.listen.port == listener.listen.port
            for subscriber in one.subscribers
        )


def _free(name: str, taken: Collection[str]) -> str:
    """A name that no other source of the target has at this place."""
    return next(one for one in (name, *(f"{name}-{at}" for at in range(2, len(taken) + 2))) if one not in taken)


_LISTENERS: WeakKeyDictionary[asyncio.AbstractEventLoop, ref[Listeners]] = WeakKeyDictionary()


def listeners() -> Listeners:
    """The hub of the running loop: sockets cannot go from one loop to another."""
    loop = asyncio.get_running_loop()
    held = _LISTENERS.get(loop)
    found = held() if held is not None else None
    if found is None:
        found = Listeners()
        _LISTENERS[loop] = ref(found)
    return found
