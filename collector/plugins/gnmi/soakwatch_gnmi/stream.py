"""One gNMI connection to a device, with its subscriptions; errors are one sentence without secrets.

pygnmi provides the generated messages. The calls use grpc's asyncio API, since pygnmi's client reads a stream in
threads and queues without bound.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import grpc
import grpc.aio
from pygnmi.spec.v080 import gnmi_pb2, gnmi_pb2_grpc

from soakwatch.core.text import one_line
from soakwatch.sources.abc import LoginRefusedError, SourceError
from soakwatch_gnmi.latest import Latest, PathQuery
from soakwatch_gnmi.paths import Element, Plain, parse_path
from soakwatch_gnmi.values import BadValueError, elements, plain

ENCODINGS = ("JSON_IETF", "JSON", "PROTO")
"""Preferred encodings, best first."""
_MAX_SNAPSHOT = 100_000
_OPTIONS = [
    ("grpc.max_receive_message_length", 16 * 2**20),
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.enable_retries", 0),
]


@dataclass(frozen=True, slots=True)
class GnmiEndpoint:
    """How to reach a device. ``roots`` are PEM certificates, None for no TLS; ``metadata`` holds the login and is never
    shown."""

    host: str
    port: int
    roots: bytes | None
    name: str | None
    metadata: tuple[tuple[str, str], ...]

    def __repr__(self) -> str:
        """Host and port only."""
        return f"GnmiEndpoint({self.host}:{self.port})"


class PathsRefusedError(SourceError):
    """A device does not have what a subscription requests; the connection is intact."""


class Stream:
    """One channel: ``open`` requests the device's capabilities, ``follow`` reads updates until the stream ends."""

    def __init__(self, endpoint: GnmiEndpoint) -> None:
        self._endpoint = endpoint
        target = f"[{endpoint.host}]:{endpoint.port}" if ":" in endpoint.host else f"{endpoint.host}:{endpoint.port}"
        options = [*_OPTIONS, *([("grpc.ssl_target_name_override", endpoint.name)] if endpoint.name else [])]
        if endpoint.roots is None:
            self._channel = grpc.aio.insecure_channel(target, options=options)
        else:
            credentials = grpc.ssl_channel_credentials(root_certificates=endpoint.roots or None)
            self._channel = grpc.aio.secure_channel(target, credentials, options=options)
        self._stub = gnmi_pb2_grpc.gNMIStub(self._channel)
        self.version, self.encoding = "", ENCODINGS[0]
        self.encodings: tuple[str, ...] = ()
        self.models: dict[str, str] = {}  # version by name, from Capabilities
        self.device_offset_ns: int | None = None  # from the time stamp of the last message
        self.updates = 0

    async def open(self, timeout_s: float, encoding: str | None) -> None:
        """Request the capabilities, and choose an encoding. Raises SourceError."""
        try:
            answer = await self._stub.Capabilities(
                gnmi_pb2.CapabilityRequest(), timeout=timeout_s, metadata=self._endpoint.metadata
            )
        except grpc.aio.AioRpcError as error:
            raise self._failed(error) from None
        self.version = str(answer.gNMI_version)[:40]
        able = [gnmi_pb2.Encoding.Name(number) for number in answer.supported_encodings if number in _KNOWN]
        if encoding is not None and able and encoding not in able:
            raise SourceError(f"{self._where()} has no encoding {encoding}: it has {', '.join(able)}")
        self.encoding = encoding or next((name for name in ENCODINGS if name in able), ENCODINGS[0])
        self.encodings = tuple(able)
        self.models = {one_line(model.name, 100): one_line(model.version, 40) for model in answer.supported_models}

    async def follow(
        self,
        lines: Sequence[PathQuery],
        interval_s: float,
        latest: Latest,
        now_ns: Callable[[], int],
        *,
        counted: bool = True,
    ) -> None:
        """Feed ``latest`` until the stream ends; always raises SourceError with the reason.

        ``counted``: these updates count as a sign that the device is not silent.
        """
        request = gnmi_pb2.SubscribeRequest(subscribe=_subscription(lines, interval_s, self.encoding))
        call = self._stub.Subscribe(metadata=self._endpoint.metadata)
        try:
            await call.write(request)
            async for response in call:
                if response.WhichOneof("response") == "update":
                    self.updates += len(response.update.update) if counted else 0
                    self._take(response.update, latest, now_ns())
        except grpc.aio.AioRpcError as error:
            raise self._failed(error) from None
        finally:
            call.cancel()
        raise SourceError(f"{self._where()} ended the stream of updates")

    async def snapshot(self, path: str, timeout_s: float) -> list[tuple[tuple[Element, ...], Plain]]:
        """The values below a path now, by a subscription ONCE, else by Get: a device has one of them or both.

        Raises SourceError; if neither is served, with the reason for the first.
        """
        steps = [gnmi_pb2.PathElem(name=step.name, key=dict(step.keys)) for step in parse_path(path)]
        asked = gnmi_pb2.Path(elem=steps)
        try:
            return await self._once(asked, timeout_s)
        except grpc.aio.AioRpcError as first:
            if first.code() not in _NOT_SERVED:
                raise self._failed(first) from None
            try:
                return await self._got(asked, timeout_s)
            except grpc.aio.AioRpcError:
                if first.code() is grpc.StatusCode.UNIMPLEMENTED:
                    raise SourceError(f"{self._where()} has neither subscriptions ONCE nor Get") from None
                raise self._failed(first) from None

    async def _once(self, path: gnmi_pb2.Path, timeout_s: float) -> list[tuple[tuple[Element, ...], Plain]]:
        wanted = gnmi_pb2.SubscriptionList(
            subscription=[gnmi_pb2.Subscription(path=path)],
            mode=gnmi_pb2.SubscriptionList.ONCE,
            encoding=gnmi_pb2.Encoding.Value(self.encoding),
        )
        call = self._stub.Subscribe(metadata=self._endpoint.metadata, timeout=timeout_s)
        told: list[tuple[tuple[Element, ...], Plain]] = []
        try:
            await call.write(gnmi_pb2.SubscribeRequest(subscribe=wanted))
            await call.done_writing()
            async for response in call:
                if response.sync_response:
                    break
                told += _leaves(response.update)
                if len(told) > _MAX_SNAPSHOT:
                    raise SourceError(f"{self._where()} sent more than {_MAX_SNAPSHOT} values of one path")
        finally:
            call.cancel()
        return told

    async def _got(self, path: gnmi_pb2.Path, timeout_s: float) -> list[tuple[tuple[Element, ...], Plain]]:
        request = gnmi_pb2.GetRequest(path=[path], encoding=gnmi_pb2.Encoding.Value(self.encoding))
        answer = await self._stub.Get(request, timeout=timeout_s, metadata=self._endpoint.metadata)
        return [leaf for note in answer.notification for leaf in _leaves(note)][:_MAX_SNAPSHOT]

    @staticmethod
    def refused(failure: SourceError) -> bool:
        """Whether a failure of ``follow`` is about its paths and not the connection."""
        return isinstance(failure, PathsRefusedError)

    async def close(self) -> None:
        """Close the channel."""
        with suppress(grpc.aio.AioRpcError):
            await self._channel.close()

    def _take(self, note: gnmi_pb2.Notification, latest: Latest, came_ns: int) -> None:
        if note.timestamp:
            self.device_offset_ns = note.timestamp - time.time_ns()
        prefix = elements(tuple(note.prefix.elem))
        for update in note.update:
            path = (*prefix, *elements(tuple(update.path.elem)))
            try:
                latest.take(path, plain(update.val), came_ns)
            except BadValueError as bad:
                latest.refuse(path, str(bad))
        for gone in note.delete:
            latest.forget((*prefix, *elements(tuple(gone.elem))))

    def _where(self) -> str:
        return f"{self._endpoint.host} port {self._endpoint.port}"

    def _failed(self, error: grpc.aio.AioRpcError) -> SourceError:
        refused = error.code() is grpc.StatusCode.UNAUTHENTICATED
        if error.code() in _NOT_SERVED:
            return PathsRefusedError(self._sentence(error))
        return (LoginRefusedError if refused else SourceError)(self._sentence(error))

    def _sentence(self, error: grpc.aio.AioRpcError) -> str:
        code, where, detail = error.code(), self._where(), error.details() or ""
        for _, value in self._endpoint.metadata:  # a device may echo the login; replace it before truncating
            detail = detail.replace(value, "***") if value else detail
        detail = one_line(detail, 160)
        known = {
            grpc.StatusCode.UNAUTHENTICATED: f"{where} refuses the login: check user or password",
            grpc.StatusCode.PERMISSION_DENIED: f"{where} does not allow this user to subscribe",
            grpc.StatusCode.DEADLINE_EXCEEDED: f"{where} did not answer in time",
            grpc.StatusCode.UNIMPLEMENTED: f"{where} speaks gRPC but not gNMI: check the port",
            grpc.StatusCode.RESOURCE_EXHAUSTED: f"{where} allows no further subscription, or sent too large a message",
            grpc.StatusCode.INVALID_ARGUMENT: f"{where} refuses a path or a mode: {detail}",
        }
        if code in known:
            return known[code]
        if code is grpc.StatusCode.UNAVAILABLE:
            if "certificate" in detail.lower() or "handshake" in detail.lower() or "ssl" in detail.lower():
                return f"{where}: its TLS certificate is not trusted: give ca, pin or name, or plaintext: true"
            if "refused" in detail.lower():
                return f"{where} refuses: nothing listens there"
            return f"{where} cannot be reached, or closed the connection"
        return f"{where} ended with {code.name.lower().replace('_', ' ')}: {detail}"


_NOT_SERVED = frozenset(
    (
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.UNIMPLEMENTED,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.OUT_OF_RANGE,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNKNOWN,
    )
)
_KNOWN = frozenset(gnmi_pb2.Encoding.values())


def _leaves(note: gnmi_pb2.Notification) -> list[tuple[tuple[Element, ...], Plain]]:
    """Paths and values of a message; unreadable values are skipped."""
    prefix = elements(tuple(note.prefix.elem))
    found = []
    for update in note.update:
        with suppress(BadValueError):
            found.append(((*prefix, *elements(tuple(update.path.elem))), plain(update.val)))
    return found


def _subscription(lines: Sequence[PathQuery], interval_s: float, encoding: str) -> gnmi_pb2.SubscriptionList:
    subscriptions = []
    every = round(interval_s * 1e9)
    asked: dict[str, tuple[gnmi_pb2.Path, bool]] = {}  # one path may provide several metrics
    for line in lines:
        for steps in (line.steps, line.gate) if line.gate else (line.steps,):
            names = [f"{line.module}:{steps[0].name}" if line.module else steps[0].name, *(s.name for s in steps[1:])]
            elems = [gnmi_pb2.PathElem(name=n, key=dict(step.keys)) for n, step in zip(names, steps, strict=True)]
            path = gnmi_pb2.Path(elem=elems)
            asked[f"{line.on_change} {path}"] = path, line.on_change
    for path, on_change in asked.values():
        if on_change:
            subscriptions.append(gnmi_pb2.Subscription(path=path, mode=gnmi_pb2.ON_CHANGE))
        else:
            subscriptions.append(gnmi_pb2.Subscription(path=path, mode=gnmi_pb2.SAMPLE, sample_interval=every))
    return gnmi_pb2.SubscriptionList(
        subscription=subscriptions, mode=gnmi_pb2.SubscriptionList.STREAM, encoding=gnmi_pb2.Encoding.Value(encoding)
    )
