"""SNMP traps and informs (v1, v2c, v3) that the device sends: a receiver whose notifications become events."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from soakwatch.core.errors import PlanError
from soakwatch.core.secrets import SecretRef, secret
from soakwatch.sources.abc import Facts, SourceConfig, SourceContext
from soakwatch.sources.profiles.loading import load_profiles
from soakwatch.sources.profiles.model import TrapPattern
from soakwatch.sources.receivers.address import listen_at
from soakwatch.sources.receivers.claim import SenderFilter
from soakwatch.sources.receivers.desk import Arrived, MessageQueue, Read
from soakwatch.sources.receivers.hub import Seat, hub
from soakwatch.sources.receivers.member import Member
from soakwatch.sources.receivers.names import name_of
from soakwatch.sources.receivers.notification import Notification, community_message, version_of
from soakwatch.sources.receivers.place import UDP, Place, Wish
from soakwatch.sources.receivers.storm import Storm
from soakwatch.sources.receivers.trap_event import event_of
from soakwatch.sources.receivers.user import Key, User
from soakwatch.sources.transport.snmp.access import SHORTEST_KEY
from soakwatch.sources.transport.snmp.spelling import AuthProtocol, PrivProtocol
from soakwatch_agent.sample import Answer

_ENGINE_ID = r"^(0x)?([0-9A-Fa-f]{2}){5,32}$"


def _place(text: str) -> str:
    listen_at(text)
    return text


class TrapUser(BaseModel):
    """A user of SNMPv3 whose notifications are taken."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    user: Annotated[str, Field(min_length=1, max_length=32, description="name of the user")]
    auth: Annotated[SecretRef | None, Field(default=None, description="password of authentication")]
    auth_protocol: Annotated[AuthProtocol, Field(default="SHA", description="protocol of authentication")]
    priv: Annotated[SecretRef | None, Field(default=None, description="password of privacy")]
    priv_protocol: Annotated[PrivProtocol, Field(default="AES", description="protocol of privacy")]
    engine_id: Annotated[
        str | None,
        Field(
            default=None,
            pattern=_ENGINE_ID,
            description="engine ID of a device that sends traps (hexadecimal); informs need none",
        ),
    ]


class Config(SourceConfig):
    """Keys of the source ``traps``."""

    listen: Annotated[
        str,
        AfterValidator(_place),
        Field(default="127.0.0.1:1162", description="address and UDP port; sources may share one"),
    ]
    communities: Annotated[
        list[SecretRef] | None,
        Field(default=None, description="communities of v1 and v2c that are taken; default: any"),
    ]
    users: Annotated[list[TrapUser], Field(default_factory=list, description="users of SNMPv3")]
    senders: Annotated[
        list[str],
        Field(
            default_factory=list,
            alias="from",
            description="addresses, networks or host names of the device; default: all that no other "
            "source at the same place claims",
        ),
    ]
    profile: Annotated[str, Field(default="generic", description="profile that knows the device's own traps")]
    storm: Annotated[
        int,
        Field(default=20, ge=1, le=10_000, description="events of one kind and object a minute that are kept"),
    ]


class TrapPoller:
    """What arrived since the look before. Each look is answered, also if nothing arrived."""

    def __init__(self, seat: Seat, config: Config) -> None:
        self._seat, self._config = seat, config
        self.port = seat.place.listen.port

    async def poll(self, now_ns: int) -> Answer:
        """The notifications and the counts. Raises SourceError if the receiver had died."""
        return self._seat.member.desk.answer(now_ns, self._seat.dropped)

    def facts(self) -> Facts:
        """Where it listens, to whom, and who else does."""
        return _facts(self._config, self._seat)


class _Reader:
    """Makes an event of a datagram, or says what became of it."""

    def __init__(self, target: str, communities: Sequence[bytes] | None, traps: Mapping[str, TrapPattern]) -> None:
        self._communities, self._traps, self._name = communities, traps, partial(name_of, target)
        self._users = frozenset[Key]()
        self._place: Place | None = None

    def take_seat(self, place: Place, users: Sequence[User]) -> None:
        """Know where answers leave, and whose users of v3 are heard."""
        self._place, self._users = place, frozenset(user.key for user in users)

    def read(self, arrived: Arrived) -> Read | None:
        """One datagram. Raises MalformedError."""
        told = self._version3(arrived) if version_of(arrived.data) == 3 else self._community(arrived)
        if told is None or isinstance(told, str):
            return Read(told) if told else None
        return Read("event", event_of(told, arrived.address, arrived.time_ns, self._traps, self._name))

    def _community(self, arrived: Arrived) -> Notification | str:
        message = community_message(arrived.data)
        if message is None:
            return "no notification"
        if self._communities is not None:
            equal = [hmac.compare_digest(message.community, known) for known in self._communities]
            if not any(equal):
                return "refused"
        if message.reply is not None and self._place is not None:
            self._place.send(message.reply, arrived.address, arrived.port)
        return message.notification

    def _version3(self, arrived: Arrived) -> Notification | str | None:
        receiver = self._place.receiver3 if self._place is not None and self._users else None
        if receiver is None:
            return "refused"
        return receiver.read(arrived.data, arrived.address, arrived.port, self._users)


async def start(config: Config, site: SourceContext, stack: AsyncExitStack) -> TrapPoller:
    """Listens, alone or with the sources that name the same place.

    Raises PlanError for a port that is taken, a secret that is not there, a profile that is not known, and for what
    contradicts another source at the same place.
    """
    known = None if config.communities is None else [secret(ref).reveal().encode() for ref in config.communities]
    users = [_user(site.target, user) for user in config.users]
    profile = await asyncio.to_thread(lambda: load_profiles()[config.profile])
    reader = _Reader(site.target, known, {pattern.oid: pattern for pattern in profile.traps})
    claim = SenderFilter(site.target, config.senders)
    await claim.open(stack)
    desk = MessageQueue(reader.read, Storm(config.storm))
    member = Member(site.target, claim, desk, site.now_ns)
    seat = await hub().join("traps", listen_at(config.listen), member, Wish(frozenset({UDP})), stack)
    reader.take_seat(seat.place, users)
    if users:
        _admit(seat.place, site.target, users, stack)
    await desk.open(stack)
    return TrapPoller(seat, config)


def _admit(place: Place, target: str, users: Sequence[User], stack: AsyncExitStack) -> None:
    """Have the users of v3 heard at a place; the caller's stack ends it. Raises PlanError."""
    from soakwatch.sources.receivers.usm import Receiver3  # 10 MB of pysnmp, for v3 alone

    receiver = place.receiver3 or Receiver3(place.send)
    try:
        receiver.admit(target, users)
    except PlanError:
        if place.receiver3 is None:
            receiver.dismiss(target, ())
        raise
    place.receiver3 = receiver

    def dismiss() -> None:
        if receiver.dismiss(target, users):
            place.receiver3 = None

    stack.callback(dismiss)


def _user(target: str, planned: TrapUser) -> User:
    auth = secret(planned.auth).reveal() if planned.auth else ""
    priv = secret(planned.priv).reveal() if planned.priv else ""
    for name, key in (("auth", auth), ("priv", priv)):
        if key and len(key) < SHORTEST_KEY:
            raise PlanError(
                f"{target}: the {name} password of the user {planned.user} has fewer than {SHORTEST_KEY} characters, "
                "which SNMPv3 forbids: use a longer one"
            )
    if priv and not auth:
        raise PlanError(f"{target}: the user {planned.user} has priv without auth: SNMPv3 has no such level, add auth")
    engine = None if planned.engine_id is None else bytes.fromhex(planned.engine_id.removeprefix("0x"))
    return User(planned.user, auth, planned.auth_protocol, priv, planned.priv_protocol, engine)


def _facts(config: Config, seat: Seat) -> Facts:
    listen, datagrams = seat.place.listen, seat.place.datagrams
    notes = [datagrams.narrow or ""] if datagrams is not None else []
    if seat.neighbours:
        notes.append(f"{listen} is shared with {seat.neighbours}: each gets what comes from those that its from: names")
    if not listen.local:
        whom = "everybody in reach" if not config.senders else "whoever can write those addresses on a datagram"
        notes.append(f"traps of v1 and v2c prove nothing of their sender: {whom} can send some to {listen}")
    identity = {
        "listens": f"udp {listen}",
        "from": ", ".join(config.senders) or "anybody",
        "profile": config.profile,
    }
    return Facts(identity, ("source.messages",), tuple(note for note in notes if note))
