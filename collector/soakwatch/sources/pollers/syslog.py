"""Syslog that the device sends (UDP, TCP, TLS): lines about a crash, a failover or a link become events."""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Annotated, Literal

from pydantic import Field

from soakwatch.core.errors import PlanError
from soakwatch.sources.abc import Facts, SourceConfig, SourceContext
from soakwatch.sources.profiles.loading import load_profiles
from soakwatch.sources.receivers.address import Listen, ListenAddress, listen_at
from soakwatch.sources.receivers.listener import TCP, TLS, UDP, Channels, Secure, Subscription, listeners
from soakwatch.sources.receivers.log_event import SearchPattern, event_of, prepare_patterns
from soakwatch.sources.receivers.queue import MessageQueue, ReadResult, Received, Subscriber
from soakwatch.sources.receivers.sender_filter import SenderFilter, Senders
from soakwatch.sources.receivers.storm import Storm, StormLimit
from soakwatch.sources.receivers.syslog_line import SEVERITIES, log_line
from soakwatch_model.sample import Answer, Sample, object_text

_DEFAULT_PROFILES = ("linux", "generic")


class Config(SourceConfig):
    """Keys of the source ``syslog``."""

    listen: Annotated[
        ListenAddress,
        Field(default="127.0.0.1:5514", description="address and port without TLS; sources may share one"),
    ]
    over: Annotated[
        list[Literal["udp", "tcp"]],
        Field(default=["udp", "tcp"], description="transports without TLS; [] for TLS only"),
    ]
    allow_plain: Annotated[
        bool,
        Field(default=False, description="allow TCP without TLS on an address that other machines reach"),
    ]
    tls_listen: Annotated[
        ListenAddress | None,
        Field(default=None, description="address and port for TLS (RFC 5425), such as 0.0.0.0:6514"),
    ]
    certificate: Annotated[str | None, Field(default=None, description="file of the certificate for TLS (PEM)")]
    key: Annotated[str | None, Field(default=None, description="file of its private key (PEM)")]
    client_ca: Annotated[
        str | None,
        Field(default=None, description="CA bundle (PEM) that devices' certificates must be signed by"),
    ]
    senders: Senders
    profile: Annotated[
        str | None,
        Field(default=None, description="profile with the patterns of the device's lines; default: linux and generic"),
    ]
    storm: StormLimit
    connections: Annotated[
        int,
        Field(default=64, ge=1, le=4096, description="connections that may be open at a time"),
    ]

    def require_known(self) -> None:
        """Raises PlanError for an unknown profile."""
        if self.profile is not None:
            load_profiles()[self.profile]


class _Reader:
    """Makes an event of a line that matches a pattern, and counts lines by severity."""

    def __init__(self, patterns: Sequence[SearchPattern]) -> None:
        self._patterns = patterns
        self.severities: Counter[str] = Counter()

    def read(self, received: Received) -> ReadResult:
        """One message."""
        line = log_line(received.data)
        if line is None:
            return ReadResult("garbled")
        self.severities["none" if line.severity is None else SEVERITIES[line.severity]] += 1
        event = event_of(line, received.address, received.time_ns, self._patterns)
        return ReadResult("no event") if event is None else ReadResult("event", event)


class SyslogPoller:
    """What arrived since the previous poll. Each poll is answered, also if nothing arrived."""

    def __init__(
        self, subscriptions: Mapping[str, Subscription], queue: MessageQueue, reader: _Reader, config: Config
    ) -> None:
        self._subscriptions, self._queue, self._reader, self._config = subscriptions, queue, reader, config

    async def poll(self, now_ns: int) -> Answer:
        """The events and the counts. Raises SourceError if the receiver had died."""
        plain = self._subscriptions.get(UDP)
        answer = self._queue.answer(now_ns, plain.dropped if plain is not None else 0)
        counted = tuple(
            Sample("source.log.lines", object_text(source=self._queue.name, severity=word), count, now_ns)
            for word, count in sorted(self._reader.severities.items())
        )
        return Answer((*answer.samples, *counted), answer.events, ())

    def facts(self) -> Facts:
        """The addresses, transports and senders, and the sources that share them."""
        return _facts(self._config, self._subscriptions)


async def start(config: Config, site: SourceContext, stack: AsyncExitStack) -> SyslogPoller:
    """Listens, alone or with the sources that name the same address.

    Raises PlanError for a port that is taken, a certificate that does not fit, TCP without TLS for others, and for what
    contradicts another source on the same address.
    """
    listen, secure = listen_at(config.listen), await _tls(config, site.target)
    if not config.over and secure is None:
        raise PlanError(f"{site.target}: syslog has nothing to listen on: give udp or tcp in over:, or tls_listen")
    if TCP in config.over and not listen.local and not config.allow_plain:
        raise PlanError(
            f"{site.target}: TCP without TLS on {listen} is open to every machine that reaches it: use tls_listen with "
            "certificate and key, or set allow_plain: true"
        )
    requests = _requests(config, site.target)
    reader = _Reader(await asyncio.to_thread(_patterns, config.profile))
    senders = SenderFilter(site.target, config.senders)
    await senders.open(stack)
    queue = MessageQueue(reader.read, Storm(config.storm))
    subscriber = Subscriber(site.target, senders, queue, site.now_ns, config.connections)
    subscriptions: dict[str, Subscription] = {}
    for listener, channels in requests:
        subscription = await listeners().join(
            "syslog", listener, subscriber, Channels(frozenset(channels), secure), stack
        )
        subscriptions |= dict.fromkeys(channels, subscription)
    await queue.open(stack)
    return SyslogPoller(subscriptions, queue, reader, config)


def _requests(config: Config, target: str) -> list[tuple[Listen, list[str]]]:
    """The addresses to listen on, and the transports of each."""
    listen, requests = listen_at(config.listen), list[tuple[Listen, list[str]]]()
    if config.over:
        requests.append((listen, list(dict.fromkeys(config.over))))
    if config.tls_listen is not None:
        secure = listen_at(config.tls_listen)
        if not (requests and secure == listen and secure.port):
            requests.append((secure, [TLS]))
        elif TCP in config.over:
            raise PlanError(f"{target}: {secure} cannot be both with TLS and without: give another port in tls_listen")
        else:
            requests[0][1].append(TLS)
    return requests


def _patterns(profile: str | None) -> tuple[SearchPattern, ...]:
    profiles = load_profiles()
    names = [name for name in _DEFAULT_PROFILES if name in profiles] if profile is None else [profile]
    patterns = [pattern for name in names for pattern in profiles[name].logs]
    return prepare_patterns({(pattern.kind, pattern.match.pattern): pattern for pattern in patterns}.values())


async def _tls(config: Config, target: str) -> Secure | None:
    if config.tls_listen is None:
        return None
    if config.certificate is None or config.key is None:
        raise PlanError(f"{target}: tls_listen needs certificate and key: give the two files (PEM)")
    certificate, key, client_ca = config.certificate, config.key, config.client_ca

    def _context_of() -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(certificate, key, password=_no_password)
        if client_ca is not None:
            context.load_verify_locations(client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    try:
        return Secure((certificate, key, client_ca or ""), await asyncio.to_thread(_context_of))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and not isinstance(error, ssl.SSLError) else None
        raise PlanError(
            f"{target}: TLS cannot be set up ({why or 'the files do not match or are not PEM'}): "
            "check certificate, key and client_ca"
        ) from None


def _no_password() -> str:
    """Without it OpenSSL would ask the terminal for the password of a key, and wait."""
    raise ValueError("a key with a password cannot be used")


def _facts(config: Config, subscriptions: Mapping[str, Subscription]) -> Facts:
    notes = []
    for how, subscription in subscriptions.items():
        listen, datagrams = subscription.listener.listen, subscription.listener.datagrams
        if subscription.neighbours and how != TCP:
            notes.append(
                f"{listen} is shared with {subscription.neighbours}: each gets the messages of the senders in its from:"
            )
        if how == UDP and datagrams is not None:
            notes.append(datagrams.narrow or "")
        if how == UDP and not listen.local:
            notes.append(
                f"syslog over UDP does not authenticate its sender: any machine that reaches {listen} can send lines"
            )
        if how == TCP and not listen.local:
            notes.append(f"TCP without TLS on {listen}, as the plan allows: others can read and send lines")
    identity = {
        "listens": ", ".join(f"{how} {subscription.listener.listen}" for how, subscription in subscriptions.items()),
        "from": ", ".join(config.senders) or "any sender",
        "profile": config.profile or " and ".join(_DEFAULT_PROFILES),
    }
    return Facts(identity, ("source.messages",), tuple(dict.fromkeys(note for note in notes if note)))
