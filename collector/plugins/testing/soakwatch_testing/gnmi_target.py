"""A gNMI target on loopback: Capabilities, Get and Subscribe (SAMPLE, ON_CHANGE, ONCE) over a tree that a test changes.

It uses grpc and pygnmi's generated messages, and does not know YANG: it sends its leaves as given, as JSON trees or as
single leaves.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import grpc
from pygnmi.spec.v080 import gnmi_pb2, gnmi_pb2_grpc

from soakwatch_gnmi.paths import Element, Plain, bare, parse_path

_MAX_SECONDS = 600.0


@dataclass
class GnmiTarget:
    """The device: its leaves by path text, its login, and how it behaves."""

    leaves: dict[str, Plain] = field(default_factory=dict)
    login: tuple[str, str] | None = None
    silent: bool = False
    refuses: tuple[str, ...] = ()  # path elements: a subscription with one of them is refused as a whole
    on_change_refused: tuple[str, ...] = ()  # the same, for subscriptions on change
    once_served: bool = True  # whether it supports subscriptions ONCE
    get_served: bool = True
    models: dict[str, str] = field(default_factory=dict)  # in Capabilities: version by name
    encodings: tuple[str, ...] = ("JSON_IETF", "PROTO")
    port: int = 0
    subscriptions: int = 0
    changed: threading.Condition = field(default_factory=threading.Condition)
    ending: bool = False

    def set(self, path: str, value: Plain) -> None:
        """Change one leaf, and notify subscribers on change."""
        with self.changed:
            self.leaves[path] = value
            self.changed.notify_all()

    def hang_up(self) -> None:
        """End every open stream."""
        with self.changed:
            self.subscriptions += 1
            self.changed.notify_all()


class _Servicer(gnmi_pb2_grpc.gNMIServicer):  # type: ignore[misc] # generated code is not typed
    def __init__(self, target: GnmiTarget) -> None:
        self._target = target

    def Capabilities(self, request: object, context: grpc.ServicerContext) -> gnmi_pb2.CapabilityResponse:  # noqa: N802
        del request
        self._check(context)
        return gnmi_pb2.CapabilityResponse(
            supported_encodings=[gnmi_pb2.Encoding.Value(name) for name in self._target.encodings],
            supported_models=[gnmi_pb2.ModelData(name=n, version=v) for n, v in self._target.models.items()],
            gNMI_version="0.8.0",
        )

    def Get(self, request: gnmi_pb2.GetRequest, context: grpc.ServicerContext) -> gnmi_pb2.GetResponse:  # noqa: N802
        self._check(context)
        if not self._target.get_served:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "no Get")
        for path in request.path:
            self._refuse(path, (), context)
        updates = [update for path in request.path for update in self._lying_under(path)]
        note = gnmi_pb2.Notification(timestamp=time.time_ns(), update=updates)
        return gnmi_pb2.GetResponse(notification=[note])

    def Subscribe(  # noqa: N802
        self, requests: Iterable[gnmi_pb2.SubscribeRequest], context: grpc.ServicerContext
    ) -> Iterator[gnmi_pb2.SubscribeResponse]:
        self._check(context)
        wanted = next(iter(requests)).subscribe
        target = self._target
        for each in wanted.subscription:
            self._refuse(each.path, target.on_change_refused if each.mode == gnmi_pb2.ON_CHANGE else (), context)
        if wanted.mode == gnmi_pb2.SubscriptionList.ONCE:
            if not target.once_served:
                context.abort(grpc.StatusCode.UNIMPLEMENTED, "no ONCE")
            updates = [update for each in wanted.subscription for update in self._lying_under(each.path)]
            note = gnmi_pb2.Notification(timestamp=time.time_ns(), update=updates)
            yield gnmi_pb2.SubscribeResponse(update=note)
            yield gnmi_pb2.SubscribeResponse(sync_response=True)
            return
        mine = target.subscriptions
        sent: dict[str, Plain] = {}
        intervals = [s.sample_interval for s in wanted.subscription if s.mode == gnmi_pb2.SAMPLE]
        step_s = min(intervals, default=10**9) * 1e-9
        yield gnmi_pb2.SubscribeResponse(sync_response=True)
        due = time.monotonic()
        end = due + _MAX_SECONDS
        while context.is_active() and not target.ending and target.subscriptions == mine and time.monotonic() < end:
            sampled = time.monotonic() >= due
            if sampled:
                due += step_s
            with target.changed:
                leaves = dict(target.leaves)
            updates = []
            for subscription in wanted.subscription:
                on_change = subscription.mode == gnmi_pb2.ON_CHANGE
                for path, value in leaves.items():
                    if not _under(parse_path(path), subscription.path) or target.silent:
                        continue
                    if sampled if not on_change else sent.get(path, _NOTHING) != value:
                        sent[path] = value
                        updates.append(self._update(path, value))
            if updates:
                note = gnmi_pb2.Notification(timestamp=time.time_ns(), update=updates)
                yield gnmi_pb2.SubscribeResponse(update=note)
            with target.changed:
                target.changed.wait(min(0.05, max(0.001, due - time.monotonic())))

    def _check(self, context: grpc.ServicerContext) -> None:
        given: Mapping[str, str] = dict(context.invocation_metadata())
        if self._target.login is not None and (given.get("username"), given.get("password")) != self._target.login:
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "login failed")

    def _refuse(self, path: gnmi_pb2.Path, more: tuple[str, ...], context: grpc.ServicerContext) -> None:
        strange = {bare(step.name) for step in path.elem} & {*self._target.refuses, *more}
        if strange:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"unknown element {min(strange)}")

    def _lying_under(self, path: gnmi_pb2.Path) -> list[gnmi_pb2.Update]:
        with self._target.changed:
            leaves = dict(self._target.leaves)
        return [self._update(text, value) for text, value in leaves.items() if _under(parse_path(text), path)]

    def _update(self, path: str, value: Plain) -> gnmi_pb2.Update:
        steps = [gnmi_pb2.PathElem(name=step.name, key=dict(step.keys)) for step in parse_path(path)]
        kind = "json_ietf_val" if "JSON_IETF" in self._target.encodings else "json_val"
        typed = gnmi_pb2.TypedValue(**{kind: json.dumps(value).encode()})
        return gnmi_pb2.Update(path=gnmi_pb2.Path(elem=steps), val=typed)


_NOTHING = object()


def _under(leaf: tuple[Element, ...], asked: gnmi_pb2.Path) -> bool:
    """Whether a subscription requests a leaf, or a tree above it."""
    for have, want in zip(leaf, asked.elem, strict=False):
        if have.name != bare(want.name):
            return False
        if any(value not in ("*", have.keys.get(key)) for key, value in want.key.items()):
            return False
    return True


@contextmanager
def gnmi_target(target: GnmiTarget, key: bytes | None = None, certificate: bytes | None = None) -> Iterator[GnmiTarget]:
    """Serve ``target`` on a free port of 127.0.0.1, with TLS if key and certificate (PEM) are given."""
    server = grpc.server(ThreadPoolExecutor(max_workers=32))
    gnmi_pb2_grpc.add_gNMIServicer_to_server(_Servicer(target), server)
    if key is not None and certificate is not None:
        target.port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(key, certificate)]))
    else:
        target.port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield target
    finally:
        target.ending = True
        target.hang_up()
        server.stop(grace=0.2).wait(5)
