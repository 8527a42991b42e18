"""Where sources that name the same place to listen meet: its socket is opened by the first, closed with the last."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary, ref

from soakwatch.sources.receivers.address import Listen, cannot_listen
from soakwatch.sources.receivers.member import Member
from soakwatch.sources.receivers.place import Place, Wish

Name = Callable[[str], str | None]
"""The object of an interface by its ifIndex, None if it is not known."""


@dataclass(frozen=True, slots=True)
class Seat:
    """What a source has of a place."""

    place: Place
    member: Member
    dropped_before: int

    @property
    def dropped(self) -> int:
        """Datagrams that the kernel dropped since this source listens; whose they were, nobody knows."""
        return max(0, self.place.dropped - self.dropped_before)

    @property
    def neighbours(self) -> str:
        """The other targets that listen here, for people; empty if there are none."""
        return ", ".join(sorted({one.target for one in self.place.members} - {self.member.target}))


@dataclass(slots=True, weakref_slot=True)
class Hub:
    """The places of one event loop by what is listened for, address and port; it lives as long as somebody is there.

    ``names`` are those who know the interfaces of a target.
    """

    places: dict[tuple[str, str, int], Place] = field(default_factory=dict)
    names: dict[str, list[Name]] = field(default_factory=dict)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def join(self, what: str, listen: Listen, member: Member, wish: Wish, stack: AsyncExitStack) -> Seat:
        """Listen at a place, alone or with those that are there; the caller's stack ends it.

        Port 0 is never shared. Raises PlanError if it cannot be listened at, or not together.
        """
        async with self._turn:  # two that open the same place at the same time
            place = self.places.get((what, listen.address, listen.port)) if listen.port else None
            place = place or Place(what, listen)
            place.check(member, wish)
            names = {one.desk.name for one in place.members if one.target == member.target}
            before = place.dropped
            try:
                await place.enter(member, wish)
            except OSError as error:
                raise cannot_listen(member.target, place.listen, error, self._rivals(place)) from None
            finally:
                self._keep(place)
            stack.push_async_callback(self._leave, place, member)
            member.desk.name = member.desk.name or _free(f"{what}:{place.listen.port}", names)
            return Seat(place, member, before)

    def _keep(self, place: Place) -> None:
        """Know a place as long as somebody is there."""
        key = place.what, place.listen.address, place.listen.port
        if place.members:
            self.places[key] = place
        elif self.places.get(key) is place:
            del self.places[key]

    async def _leave(self, place: Place, member: Member) -> None:
        place.leave(member)
        self._keep(place)  # before anything is waited for: who comes now opens the place anew
        await place.settled()

    def _rivals(self, place: Place) -> str:
        return ", ".join(
            f"{one.what} of {member.target} at {one.listen}"
            for one in self.places.values()
            if one is not place and one.listen.port == place.listen.port
            for member in one.members
        )


def _free(name: str, taken: Collection[str]) -> str:
    """A name that no other source of the target has at this place."""
    return next(one for one in (name, *(f"{name}-{at}" for at in range(2, len(taken) + 2))) if one not in taken)


_HUBS: WeakKeyDictionary[asyncio.AbstractEventLoop, ref[Hub]] = WeakKeyDictionary()


def hub() -> Hub:
    """The hub of the running loop: sockets cannot go from one loop to another."""
    loop = asyncio.get_running_loop()
    held = _HUBS.get(loop)
    found = held() if held is not None else None
    if found is None:
        found = Hub()
        _HUBS[loop] = ref(found)
    return found
