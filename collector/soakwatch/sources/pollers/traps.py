"""SNMP traps and informs (v1, v2c, v3) that the device sends: a receiver whose notifications become events."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from soakwatch.core.errors import PlanError
from soakwatch.core.secrets import SecretRef, secret
from soakwatch.sources.abc import Facts, SourceConfig, SourceContext
from soakwatch.sources.profiles.loading import load_profiles
from soakwatch.sources.profiles.profile_model import TrapPattern
from soakwatch.sources.receivers.address import ListenAddress, listen_at
from soakwatch.sources.receivers.listener import UDP, Channels, Listener, Subscription, listeners
from soakwatch.sources.receivers.names import name_of
from soakwatch.sources.receivers.notification import Notification, community_message, version_of
from soakwatch.sources.receivers.queue import MessageQueue, ReadResult, Received, Subscriber
from soakwatch.sources.receivers.sender_filter import SenderFilter, Senders
from soakwatch.sources.receivers.storm import Storm, StormLimit
from soakwatch.sources.receivers.trap_event import event_of
from soakwatch.sources.receivers.user import Key, User
from soakwatch.sources.transport.snmp.snmp_access import MIN_KEY_LENGTH, AuthProtocol, PrivProtocol
from soakwatch_model.sample import Answer

_ENGINE_ID = r"^(0x)?([0-9A-Fa-f]{2}){5,32}$"


class TrapUser(BaseModel):
    """A user of SNMPv3 whose notifications are accepted."""

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
        ListenAddress,
        Field(default="127.0.0.1:1162", description="address and UDP port; sources may share one"),
    ]
    communities: Annotated[
        list[SecretRef] | None,
        Field(default=None, description="accepted communities of v1 and v2c; default: any"),
    ]
    users: Annotated[list[TrapUser], Field(default_factory=list, description="users of SNMPv3")]
    senders: Senders
    profile: Annotated[str, Field(default="generic", description="profile with the device's own traps")]
    storm: StormLimit

    def require_known(self) -> None:
        """Raises PlanError for an unknown profile."""
        load_profiles()[self.profile]


class TrapPoller:
    """What arrived since the previous poll. Each poll is answered, also if nothing arrived."""

    def __init__(self, subscription: Subscription, config: Config) -> None:
        self._subscription, self._config = subscription, config
        self.port = subscription.listener.listen.port

    async def poll(self, now_ns: int) -> Answer:
        """The notifications and the counts. Raises SourceError if the receiver had died."""
        return self._subscription.subscriber.queue.answer(now_ns, self._subscription.dropped)

    def facts(self) -> Facts:
        """The address and senders, and the sources that share it."""
        return _facts(self._config, self._subscription)


class _Reader:
    """Makes an event of a datagram, or returns its fate."""

    def __init__(self, target: str, communities: Sequence[bytes] | None, traps: Mapping[str, TrapPattern]) -> None:
        self._communities, self._traps, self._name = communities, traps, partial(name_of, target)
        self._users = frozenset[Key]()
        self._listener: Listener | None = None

    def subscribe(self, listener: Listener, users: Sequence[User]) -> None:
        """Know where answers leave, and whose users of v3 are heard."""
        self._listener, self._users = listener, frozenset(user.key for user in users)

    def read(self, received: Received) -> ReadResult | None:
        """One datagram. Raises MalformedError."""
        notification = self._version3(received) if version_of(received.data) == 3 else self._community(received)
        if notification is None or isinstance(notification, str):
            return ReadResult(notification) if notification else None
        return ReadResult("event", event_of(notification, received.address, received.time_ns, self._traps, self._name))

    def _community(self, received: Received) -> Notification | str:
        message = community_message(received.data)
        if message is None:
            return "no notification"
        if self._communities is not None:
            equal = [hmac.compare_digest(message.community, known) for known in self._communities]
            if not any(equal):
                return "refused"
        if message.reply is not None and self._listener is not None:
            self._listener.send(message.reply, received.address, received.port)
        return message.notification

    def _version3(self, received: Received) -> Notification | str | None:
        receiver = self._listener.receiver3 if self._listener is not None and self._users else None
        if receiver is None:
            return "refused"
        return receiver.read(received.data, received.address, received.port, self._users)


async def start(config: Config, site: SourceContext, stack: AsyncExitStack) -> TrapPoller:
    """Listens, alone or with the sources that name the same address.

    Raises PlanError for a port that is taken, a secret that is not there, a profile that is not known, and for what
    contradicts another source on the same address.
    """
    known = None if config.communities is None else [secret(ref).reveal().encode() for ref in config.communities]
    users = [_user(site.target, user) for user in config.users]
    profile = await asyncio.to_thread(lambda: load_profiles()[config.profile])
    reader = _Reader(site.target, known, {pattern.oid: pattern for pattern in profile.traps})
    senders = SenderFilter(site.target, config.senders)
    await senders.open(stack)
    queue = MessageQueue(reader.read, Storm(config.storm))
    subscriber = Subscriber(site.target, senders, queue, site.now_ns)
    subscription = await listeners().join(
        "traps", listen_at(config.listen), subscriber, Channels(frozenset({UDP})), stack
    )
    reader.subscribe(subscription.listener, users)
    if users:
        _admit(subscription.listener, site.target, users, stack)
    await queue.open(stack)
    return TrapPoller(subscription, config)


def _admit(listener: Listener, target: str, users: Sequence[User], stack: AsyncExitStack) -> None:
    """Have the users of v3 heard at a place; the caller's stack ends it. Raises PlanError."""
    from soakwatch.sources.receivers.usm import Receiver3  # 10 MB of pysnmp, for v3 alone

    receiver = listener.receiver3 or Receiver3(listener.send)
    try:
        receiver.add_users(target, users)
    except PlanError:
        if listener.receiver3 is None:
            receiver.remove_users(target, ())
        raise
    listener.receiver3 = receiver

    def dismiss() -> None:
        if receiver.remove_users(target, users):
            listener.receiver3 = None

    stack.callback(dismiss)


def _user(target: str, planned: TrapUser) -> User:
    auth = secret(planned.auth).reveal() if planned.auth else ""
    priv = secret(planned.priv).reveal() if planned.priv else ""
    for name, key in (("auth", auth), ("priv", priv)):
        if key and len(key) < MIN_KEY_LENGTH:
            raise PlanError(
                f"{target}: the {name} password of the user {planned.user} has fewer than {MIN_KEY_LENGTH} characters, "
                "which SNMPv3 forbids: use a longer one"
            )
    if priv and not auth:
        raise PlanError(f"{target}: the user {planned.user} has priv without auth: SNMPv3 has no such level, add auth")
    engine = None if planned.engine_id is None else bytes.fromhex(planned.engine_id.removeprefix("0x"))
    return User(planned.user, auth, planned.auth_protocol, priv, planned.priv_protocol, engine)


def _facts(config: Config, subscription: Subscription) -> Facts:
    listen, datagrams = subscription.listener.listen, subscription.listener.datagrams
    notes = [datagrams.narrow or ""] if datagrams is not None else []
    if subscription.neighbours:
        notes.append(
            f"{listen} is shared with {subscription.neighbours}: each gets the messages of the senders in its from:"
        )
    if not listen.local:
        whom = "any machine that reaches it" if not config.senders else "any machine that can forge those addresses"
        notes.append(f"traps of v1 and v2c do not authenticate their sender: {whom} can send some to {listen}")
    identity = {
        "listens": f"udp {listen}",
        "from": ", ".join(config.senders) or "any sender",
        "profile": config.profile,
    }
    return Facts(identity, ("source.messages",), tuple(note for note in notes if note))
