"""Streaming telemetry by gNMI: the paths of a profile, sampled or sent on change.

Example: ``gnmi: {host: 198.18.0.1, port: 6030, user: soak, password: env:GNMI, profile: arista-eos, ca: lab.pem}``.
A stream that is silent for three intervals is a failed poll, and is opened again.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from soakwatch.core.errors import PlanError
from soakwatch.core.secrets import SecretRef, secret
from soakwatch.sources.abc import Facts, HostName, SourceConfig, SourceContext, SourceError, SourceUnreadyError, timing
from soakwatch.sources.profiles.loading import load_profiles
from soakwatch.sources.profiles.profile_model import GnmiPath
from soakwatch.sources.transport.tls import Pin, certificate_of
from soakwatch_gnmi.fingerprint import Spoken, gnmi_fingerprint
from soakwatch_gnmi.latest import Latest, PathQuery, path_queries
from soakwatch_model.sample import Answer, Sample, object_text

if TYPE_CHECKING:
    from soakwatch_gnmi.stream import GnmiEndpoint, Stream
    from soakwatch_model.tree import Tree

_SILENT = 3  # intervals without an update that count as silence
_SESSIONS = ("network.session.", "network.topology.")
_SESSIONS_EVERY_S = 60.0


class PathShape(BaseModel):
    """A path in the plan."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Annotated[str, Field(description="such as /interfaces/interface[name=*]/state/counters/in-discards")]
    metric: Annotated[str, Field(description="metric of the catalogue")]
    scale: Annotated[float | None, Field(default=None, description="factor to the metric's unit")]
    labels: Annotated[dict[str, str], Field(default_factory=dict, description="labels; {name} is a key of the path")]
    mode: Annotated[
        Literal["sample", "on_change"], Field(default="sample", description="sampled each interval, or sent on change")
    ]
    values: Annotated[dict[str, float], Field(default_factory=dict, description="numbers for words")]


class Config(SourceConfig):
    """The keys of the source ``gnmi``."""

    asks_management = True

    host: Annotated[HostName, Field(description="name or address of the device")]
    port: Annotated[int, Field(default=9339, ge=1, le=65535, description="port; EOS 6030, SR Linux 57400")]
    user: Annotated[str | None, Field(default=None, description="name to log in with")]
    password: Annotated[SecretRef | None, Field(default=None, description="its password")]
    profile: Annotated[str | None, Field(default=None, description="profile whose gNMI paths are subscribed")]
    paths: Annotated[
        list[PathShape], Field(default_factory=list, description="own paths, in addition to the profile's")
    ]
    ca: Annotated[str | None, Field(default=None, description="CA bundle (PEM) that the device is verified by")]
    pin: Annotated[Pin | None, Field(default=None, description="SHA-256 of the device's certificate: trust this one")]
    name: Annotated[str | None, Field(default=None, description="name in the certificate, if it is not the host's")]
    plaintext: Annotated[
        bool, Field(default=False, description="no TLS: the password crosses the network in the clear")
    ]
    encoding: Annotated[
        Literal["JSON_IETF", "JSON", "PROTO"] | None, Field(default=None, description="default: the device's choice")
    ]

    def require_known(self) -> None:
        """Raises PlanError for an unknown profile."""
        if self.profile is not None:
            load_profiles()[self.profile]


class GnmiPoller:
    """One stream, read by a task; a poll takes the newest reading of each series."""

    def __init__(
        self, config: Config, site: SourceContext, lines: tuple[PathQuery, ...], endpoint: GnmiEndpoint
    ) -> None:
        self._config, self._site, self._endpoint = config, site, endpoint
        self._lines, self._asides = _parts(lines)
        self._refused: dict[str, str] = {}
        self._aside: list[asyncio.Task[None]] = []
        self._latest = Latest(lines)
        self._stream: Stream | None = None
        self._task: asyncio.Task[None] | None = None
        self._heard_ns = 0
        self._updates = 0
        self._spoken = ("", "")

    async def poll(self, now_ns: int) -> Answer:
        """The readings since the last poll. Raises SourceError if the stream ended or is silent; the next poll reopens
        it."""
        if self._task is None:
            await self._open(now_ns)
        elif self._task.done():
            failure = self._task.exception()
            await self.close()
            raise failure if isinstance(failure, SourceError) else SourceError("the stream of updates failed")
        stream = self._stream
        assert stream is not None
        if stream.updates > self._updates:
            self._updates, self._heard_ns = stream.updates, now_ns
        elif any(not line.on_change for line in self._lines) and now_ns - self._heard_ns > self._patience_ns:
            await self.close()
            raise SourceError(
                f"{self._config.host} accepted the paths but sent no update for {_SILENT} intervals: "
                f"check that it has them"
            )
        self._latest.renew(now_ns)
        samples, events, faults = self._latest.drain()
        if stream.device_offset_ns is not None:
            label = object_text(source="gnmi")
            samples = (*samples, Sample("source.clock.offset", label, stream.device_offset_ns * 1e-9, now_ns))
        return Answer(samples, events, faults)

    def facts(self) -> Facts:
        """What the device supports."""
        version, encoding = self._spoken
        identity = {"gNMI": version, "encoding": encoding, "profile": self._config.profile or "the plan's paths"}
        notes = []
        if self._endpoint.roots is None:
            notes.append("no TLS: samples and login cross the network in the clear")
        notes += [f"{name} is not served: {why}" for name, why in self._refused.items()]
        if self._latest.unmatched:
            notes.append(f"{self._latest.unmatched} updates did not belong to any requested path")
        promised = tuple(dict.fromkeys(line.line.metric for line in self._lines))
        slow_s = max(_SESSIONS_EVERY_S, self._site.interval_s)
        slow = {line.line.metric: slow_s for part in self._asides.values() for line in part if not line.on_change}
        return Facts(identity, promised, tuple(notes), slow)

    async def fingerprint(self) -> Mapping[str, Tree]:
        """The device's self-description from Capabilities and openconfig-platform, by requests of their own."""
        if self._stream is None:
            raise SourceUnreadyError(f"{self._config.host}: the stream is not open")
        stream = self._stream
        spoken = Spoken(stream.version, stream.encodings, stream.models)
        return await gnmi_fingerprint(stream.snapshot, spoken, self._config.profile or "")

    async def close(self) -> None:
        """End the stream."""
        tasks = [*([self._task] if self._task else []), *self._aside]
        self._task, self._aside = None, []
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError, SourceError):
                await task
        if self._stream is not None:
            await self._stream.close()
            self._stream = None
        self._latest.forget_all()

    @property
    def _patience_ns(self) -> int:
        return round(_SILENT * max(self._site.interval_s, 1.0) * 1e9)

    async def _open(self, now_ns: int) -> None:
        from soakwatch_gnmi.stream import Stream

        timeout_s = 0.8 * timing(0, self._site.interval_s, self._config.timeout).timeout_s
        stream = Stream(self._endpoint)
        try:
            await stream.open(timeout_s, self._config.encoding)
        except BaseException:
            await stream.close()
            raise
        self._stream, self._spoken = stream, (stream.version, stream.encoding)
        self._updates, self._heard_ns = 0, now_ns
        follow = stream.follow(self._lines, self._site.interval_s, self._latest, self._site.now_ns)
        self._task = asyncio.create_task(follow, name="soakwatch-gnmi")
        self._aside = [
            asyncio.create_task(self._follow_aside(stream, name, part), name=f"soakwatch-gnmi-{name}")
            for name, part in self._asides.items()
            if name not in self._refused
        ]
        await asyncio.sleep(0)  # send the request before the first drain

    async def _follow_aside(self, stream: Stream, name: str, lines: tuple[PathQuery, ...]) -> None:
        """Follow the paths of one protocol in a subscription of its own: many devices refuse a whole request for one
        path that they lack, or cannot send on change."""
        sampled = tuple(replace(line, line=replace(line.line, mode="sample")) for line in lines)
        interval_s = max(self._site.interval_s, _SESSIONS_EVERY_S)
        why = ""
        for attempt in (lines, sampled):
            try:
                await stream.follow(attempt, interval_s, self._latest, self._site.now_ns, counted=False)
            except SourceError as failure:
                why = str(failure)
                if not stream.refused(failure):
                    return  # the connection or this stream ended: all are reopened together
        self._refused[name] = why


async def start(config: Config, site: SourceContext, stack: AsyncExitStack) -> GnmiPoller:
    """Resolve paths and login; the stream opens with the first poll. Raises PlanError."""
    from soakwatch_gnmi.stream import GnmiEndpoint

    lines = _lines(config, site.target)
    roots, name = await _roots(config, site)
    metadata = []
    if config.user is not None:
        metadata.append(("username", config.user))
    if config.password is not None:
        metadata.append(("password", secret(config.password).reveal()))
    endpoint = GnmiEndpoint(config.host, config.port, roots, config.name or name, tuple(metadata))
    poller = GnmiPoller(config, site, lines, endpoint)
    stack.push_async_callback(poller.close)
    return poller


def _parts(lines: tuple[PathQuery, ...]) -> tuple[tuple[PathQuery, ...], dict[str, tuple[PathQuery, ...]]]:
    """The paths of the main subscription, and those of sessions with peers, by protocol."""
    asides: dict[str, list[PathQuery]] = {}
    main = [line for line in lines if not line.line.metric.startswith(_SESSIONS)]
    if not main:
        return lines, {}
    for line in lines:
        if line.line.metric.startswith(_SESSIONS):
            asides.setdefault(f"{line.line.labels['protocol']} of {line.steps[0].name}", []).append(line)
    return tuple(main), {name: tuple(part) for name, part in asides.items()}


def _lines(config: Config, target: str) -> tuple[PathQuery, ...]:
    given = [GnmiPath(p.path, p.metric, p.scale, p.labels, p.mode, p.values) for p in config.paths]
    if config.profile is not None:
        profiles = load_profiles()
        given += profiles[config.profile].gnmi
    if not given:
        problem = "has no gNMI paths" if config.profile else "names neither a profile nor paths"
        raise PlanError(f"{target}: gnmi {problem}: set profile (soakwatch profiles), or paths")
    try:
        return path_queries(given)
    except ValueError as error:
        raise PlanError(f"{target}: gnmi: {error}") from None


async def _roots(config: Config, site: SourceContext) -> tuple[bytes | None, str | None]:
    """The trusted certificates (None: no TLS), and the name in a pinned certificate."""
    if config.plaintext:
        if config.pin or config.ca:
            raise PlanError(
                f"{site.target}: gnmi: plaintext: true means no TLS, so ca and pin have no effect: remove them"
            )
        return None, None
    if config.pin is not None:
        der = await certificate_of(config.host, config.port, config.pin, 5.0)
        return ssl.DER_cert_to_PEM_cert(der).encode(), _name_in(der)
    if config.ca is None:
        return b"", None  # the authorities of grpc
    try:
        return await asyncio.to_thread(Path(config.ca).read_bytes), None
    except OSError as error:
        raise PlanError(f"{site.target}: gnmi: ca {config.ca} cannot be read: {error.strerror}") from None


def _name_in(der: bytes) -> str | None:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    certificate = x509.load_der_x509_certificate(der)
    with suppress(x509.ExtensionNotFound):
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        given = [*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress))]
        if given:
            return str(given[0])
    common = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(common[0].value) if common else None
