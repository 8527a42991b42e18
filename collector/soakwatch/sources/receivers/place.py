"""A place that sources listen at together: one socket a way, and each message goes to those that claim its sender."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from functools import partial

from soakwatch.core.errors import PlanError
from soakwatch.sources.receivers.address import Listen
from soakwatch.sources.receivers.datagrams import Datagrams
from soakwatch.sources.receivers.member import Member
from soakwatch.sources.receivers.streams import Streams
from soakwatch.sources.receivers.user import Receiver

UDP, TCP, TLS = "udp", "tcp", "tls"
_MOST_ROUTES = 4096  # senders that are remembered; beyond, they are looked up anew

Route = tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Secure:
    """TLS: what it is made of, by which two are told to be the same, and what was made of it."""

    files: tuple[str, ...]
    context: ssl.SSLContext = field(compare=False)


@dataclass(frozen=True, slots=True)
class Wish:
    """What a source wants of a place: the ways in, and TLS where it is one of them."""

    ways: frozenset[str]
    secure: Secure | None = None


class Place:
    """One address and port. A way in is opened for the first source that wants it and closed with the last."""

    def __init__(self, what: str, listen: Listen) -> None:
        self.what, self.listen = what, listen
        self.receiver3: Receiver | None = None
        self.datagrams: Datagrams | None = None
        self._streams: dict[str, Streams] = {}
        self._closing: list[Streams] = []
        self._members: dict[Member, Wish] = {}
        self._routes: dict[tuple[str, str], Route] = {}

    @property
    def members(self) -> Route:
        """The sources that listen here."""
        return tuple(self._members)

    def check(self, member: Member, wish: Wish) -> None:
        """Raises PlanError if a source cannot share the place with those that are there already."""
        for other, theirs in self._members.items():
            if other.target != member.target and not other.claim.named and not member.claim.named:
                raise PlanError(
                    f"{member.target}: {other.target} listens at {self.listen} too and neither says from:, so nobody "
                    "could tell whose message it is: name the device's address with from: in one of them at least"
                )
            streams = (wish.ways | theirs.ways) & {TCP, TLS}
            if len(streams) > 1:
                raise PlanError(
                    f"{member.target}: {other.target} listens at {self.listen} too, one with TLS and one without: "
                    "name another port in one of them"
                )
            if TLS in wish.ways & theirs.ways and wish.secure != theirs.secure:
                raise PlanError(
                    f"{member.target}: {other.target} listens at {self.listen} too with other files for TLS: "
                    "name the same certificate, key and client_ca in both, or another port in one of them"
                )

    async def enter(self, member: Member, wish: Wish) -> None:
        """Take a source in and open what is not open yet. Raises OSError, and then leaves things as they were."""
        self._members[member] = wish  # first: what is open already must stay so while the rest is opened
        member.claim.when_changed(self._rerouted)
        self._rerouted()
        try:
            if UDP in wish.ways and self.datagrams is None:
                self.datagrams = Datagrams(self.listen, self._put)
                self.listen = Listen(self.listen.address, self.datagrams.port)
            for way in wish.ways & {TCP, TLS} - self._streams.keys():
                streams = Streams(partial(self.route, way), self.foreign)
                port = await streams.open(self.listen, wish.secure.context if wish.secure and way == TLS else None)
                self._streams[way] = streams
                self.listen = Listen(self.listen.address, port)
        except BaseException:
            self.leave(member)
            await self.settled()
            raise

    def leave(self, member: Member) -> None:
        """Let a source go; what nobody wants any more is closed, and ``settled`` waits for it."""
        del self._members[member]
        member.claim.unless_changed(self._rerouted)
        wanted = frozenset[str]().union(*(wish.ways for wish in self._members.values()))
        if UDP not in wanted and self.datagrams is not None:
            self.datagrams.close()
            self.datagrams = None
        for way in self._streams.keys() - wanted:
            self._streams[way].close()
            self._closing.append(self._streams.pop(way))
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

    def route(self, way: str, address: str) -> Route:
        """Who takes what an address sends on a way."""
        found = self._routes.get((way, address))
        if found is None:
            claiming = [member for member in self._members if address in member.claim]
            # What a source claims but does not want on this way is nobody's, not another device's.
            taking = claiming or [member for member in self._members if not member.claim.named]
            found = tuple(member for member in taking if way in self._members[member].ways)
            if len(self._routes) >= _MOST_ROUTES:
                self._routes.clear()
            self._routes[way, address] = found
        return found

    def foreign(self) -> None:
        """Count something that nobody takes: each source here is told of it."""
        for member in self._members:
            member.desk.fates["foreign"] += 1

    def _rerouted(self) -> None:
        """Somebody came, left, or claims others than before."""
        self._routes.clear()
        for streams in self._streams.values():
            streams.rerouted()

    def _put(self, address: str, port: int, data: bytes) -> None:
        takers = self.route(UDP, address)
        for member in takers:
            member.put(address, port, data)
        if not takers:
            self.foreign()
