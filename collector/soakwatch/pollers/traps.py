"""SNMP traps and informs (v1, v2c, v3) that the device sends: a receiver whose notifications become events."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from soakwatch.errors import PlanError
from soakwatch.notices.address import Listen, Senders, datagram_socket, listen_at, senders
from soakwatch.notices.datagrams import Datagrams, receive
from soakwatch.notices.desk import Arrived, Desk, Read
from soakwatch.notices.notification import Notification, community_message, version_of
from soakwatch.notices.storm import Storm
from soakwatch.notices.trap_event import event_of
from soakwatch.notices.usm import Receiver3, User, open_receiver3
from soakwatch.poller import Facts, Site, SourceConfig
from soakwatch.profile.loading import load_profiles
from soakwatch.profile.model import TrapPattern
from soakwatch.secret import SecretRef, secret
from soakwatch.snmp import ber
from soakwatch_agent.sample import Answer

_SHORTEST_KEY = 8  # characters: RFC 3414 section 11.2
_ENGINE_ID = r"^(0x)?([0-9A-Fa-f]{2}){5,32}$"


def _place(text: str) -> str:
    listen_at(text)
    return text


class TrapUser(BaseModel):
    """A user of SNMPv3 whose notifications are taken."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    user: Annotated[str, Field(min_length=1, max_length=32, description="name of the user")]
    auth: Annotated[SecretRef | None, Field(default=None, description="password of authentication")]
    auth_protocol: Annotated[
        Literal["MD5", "SHA", "SHA-224", "SHA-256", "SHA-384", "SHA-512"],
        Field(default="SHA", description="protocol of authentication"),
    ]
    priv: Annotated[SecretRef | None, Field(default=None, description="password of privacy")]
    priv_protocol: Annotated[
        Literal["DES", "AES", "AES-192", "AES-256", "AES-192-C", "AES-256-C"],
        Field(default="AES", description="protocol of privacy"),
    ]
    engine_id: Annotated[
        str | None,
        Field(default=None, pattern=_ENGINE_ID, description="engine ID of a device that sends traps (hexadecimal); "
              "informs need none"),
    ]  # fmt: skip


class Config(SourceConfig):
    """Keys of the source ``traps``."""

    listen: Annotated[
        str,
        AfterValidator(_place),
        Field(default="127.0.0.1:1162", description="address and UDP port; another one for each target"),
    ]
    communities: Annotated[
        list[SecretRef] | None,
        Field(default=None, description="communities of v1 and v2c that are taken; default: any"),
    ]
    users: Annotated[list[TrapUser], Field(default_factory=list, description="users of SNMPv3")]
    senders: Annotated[
        list[str],
        Field(default_factory=list, alias="from",
              description="addresses, networks or host names of the device; default: anybody"),
    ]  # fmt: skip
    profile: Annotated[str, Field(default="generic", description="profile that knows the device's own traps")]
    storm: Annotated[
        int,
        Field(default=20, ge=1, le=10_000, description="events of one kind and object a minute that are kept"),
    ]


class TrapPoller:
    """What arrived since the look before. Each look is answered, also if nothing arrived."""

    def __init__(self, desk: Desk, datagrams: Datagrams, facts: Facts) -> None:
        self._desk, self._datagrams, self._facts = desk, datagrams, facts
        self.port = datagrams.port

    async def poll(self, now_ns: int) -> Answer:
        """The notifications and the counts. Raises SourceFailed if the receiver had died."""
        return self._desk.answer(now_ns, self._datagrams.dropped)

    def facts(self) -> Facts:
        """Where it listens and to whom."""
        return self._facts


class _Reader:
    """Makes an event of a datagram, or says what became of it."""

    def __init__(self, allowed: Senders, communities: Sequence[bytes] | None, traps: Mapping[str, TrapPattern]) -> None:
        self._allowed, self._communities, self._traps = allowed, communities, traps
        self.datagrams: Datagrams | None = None
        self.receiver3: Receiver3 | None = None

    def read(self, arrived: Arrived) -> Read | None:
        """One datagram. Raises Malformed."""
        if arrived.address not in self._allowed:
            return Read("foreign")
        told = self._version3(arrived) if version_of(arrived.data) == 3 else self._community(arrived)
        if told is None or isinstance(told, str):
            return Read(told) if told else None
        return Read("event", event_of(told, arrived.address, arrived.time_ns, self._traps))

    def _community(self, arrived: Arrived) -> Notification | str:
        message = community_message(arrived.data)
        if message is None:
            return "no notification"
        if self._communities is not None:
            equal = [hmac.compare_digest(message.community, known) for known in self._communities]
            if not any(equal):
                return "refused"
        if message.reply is not None and self.datagrams is not None:
            self.datagrams.send(message.reply, arrived.address, arrived.port)
        return message.notification

    def _version3(self, arrived: Arrived) -> Notification | str | None:
        if self.receiver3 is None:
            return "refused"
        security = ber.opened(ber.opened(arrived.data)[2][1])
        asks = not security[0][1]
        return self.receiver3.read(arrived.data, arrived.address, arrived.port, asks=asks)


async def start(config: Config, site: Site, stack: AsyncExitStack) -> TrapPoller:
    """Listens. Raises PlanError for a port that is taken, a secret that is not there, a profile that is not known."""
    listen = listen_at(config.listen)
    known = None if config.communities is None else [secret(ref).reveal().encode() for ref in config.communities]
    profile = await asyncio.to_thread(lambda: load_profiles()[config.profile])
    reader = _Reader(
        await senders(site.target, config.senders), known, {pattern.oid: pattern for pattern in profile.traps}
    )
    opened = datagram_socket(site.target, listen)
    stack.callback(opened.close)
    desk = Desk(f"traps:{opened.getsockname()[1]}", reader.read, Storm(config.storm))
    await desk.open(stack)
    datagrams = reader.datagrams = receive(opened, desk.put, site.now_ns, stack)
    if config.users:
        users = [_user(site.target, user) for user in config.users]
        reader.receiver3 = open_receiver3(site.target, datagrams.port, users, datagrams.send, stack)
    return TrapPoller(desk, datagrams, _facts(config, listen, datagrams))


def _user(target: str, planned: TrapUser) -> User:
    auth = secret(planned.auth).reveal() if planned.auth else ""
    priv = secret(planned.priv).reveal() if planned.priv else ""
    for name, key in (("auth", auth), ("priv", priv)):
        if key and len(key) < _SHORTEST_KEY:
            raise PlanError(
                f"{target}: the {name} password of the user {planned.user} has fewer than {_SHORTEST_KEY} characters, "
                "which SNMPv3 forbids: use a longer one"
            )
    if priv and not auth:
        raise PlanError(f"{target}: the user {planned.user} has priv without auth: SNMPv3 has no such level, add auth")
    engine = None if planned.engine_id is None else bytes.fromhex(planned.engine_id.removeprefix("0x"))
    return User(planned.user, auth, planned.auth_protocol, priv, planned.priv_protocol, engine)


def _facts(config: Config, listen: Listen, datagrams: Datagrams) -> Facts:
    notes = [datagrams.narrow or ""]
    if not listen.local:
        whom = "everybody in reach" if not config.senders else "whoever can write those addresses on a datagram"
        notes.append(f"traps of v1 and v2c prove nothing of their sender: {whom} can send some to {listen}")
    identity = {
        "listens": f"udp {Listen(listen.address, datagrams.port)}",
        "from": ", ".join(config.senders) or "anybody",
        "profile": config.profile,
    }
    return Facts(identity, ("source.messages",), tuple(note for note in notes if note))
