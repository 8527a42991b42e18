"""A TRex server on loopback: JSON-RPC on a ZeroMQ socket, and the publisher of older releases, with faults.

Messages are compressed like the real server's: published ones, and replies to compressed requests.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import zmq

from soakwatch_testing.trex_model import TrexModel, WrongError
from soakwatch_trex.frame import MAGIC, pack, unpack
from soakwatch_trex.json_values import mapping

_MESSAGES = {-32602: "Bad paramters for method", -32000: "Failed To Execute Method", -32603: "Internal Server Error"}
_COMPRESSED_FROM = 256


@dataclass
class TrexServer:
    """A server and its faults: ``manners`` names a fault of ``reply``, ``lies`` are results by method, and ``extra`` is
    published as it is. ``speed`` is seconds of traffic for each published message or status; 0 is none."""

    model: TrexModel
    manners: str = "good"
    lies: dict[str, object] = field(default_factory=dict)
    extra: list[bytes] = field(default_factory=list)
    publishing: bool = True
    speed: float = 0.0
    port: int = 0
    publisher: int = 0
    # due to those who requested an immediate publication
    barriers: list[Mapping[str, object]] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def reply(self, body: bytes) -> bytes | None:
        """The reply to one message; None if the server stays silent."""
        compressed = body[:4] == MAGIC.to_bytes(4, "big")
        value = unpack(body)
        asks = [dict(mapping(ask)) for ask in (value if isinstance(value, list) else [value])]
        with self.lock:
            self.barriers += [mapping(ask["params"]) for ask in asks if ask["method"] == "publish_now"]
            if self.speed and any(ask["method"] == "get_global_stats" for ask in asks):
                self.model.advance(self.speed)
            answers = [self._reply_to(ask) for ask in asks]
        text = json.dumps(answers if isinstance(value, list) else answers[0]).encode()
        match self.manners:
            case "silent":
                return None
            case "garbage":
                return b"\x00\xff not JSON"
            case "half":
                return text[: len(text) // 2]
            case "other":
                return json.dumps([{"jsonrpc": "2.0", "id": 1, "result": {}}]).encode()
            case "torn":  # a compressed message shorter than its header says
                return pack(text)[:-4]
            case "bomb":
                return MAGIC.to_bytes(4, "big") + (2**31).to_bytes(4, "big") + pack(text)[8:]
            case "deep":
                return b"[" * 100_000
            case _:
                return pack(text) if compressed and len(text) >= _COMPRESSED_FROM else text

    def messages(self) -> list[bytes]:
        """The messages of one publication."""
        with self.lock:
            if self.speed:
                self.model.advance(self.speed)
            whole = {"baseline": True} if any(asked.get("baseline") for asked in self.barriers) else {}
            texts = [json.dumps({**message, **whole}).encode() for message in self.model.published()]
            barriers = [{"name": "trex-barrier", "type": asked["key"], "data": {}} for asked in self.barriers]
            texts += [json.dumps(barrier).encode() for barrier in barriers]
            extra, self.extra, self.barriers = self.extra, [], []
        return [*extra, *(pack(text) if len(text) >= _COMPRESSED_FROM else text for text in texts)]

    def _reply_to(self, ask: dict[str, object]) -> dict[str, object]:
        method, params = str(ask["method"]), ask["params"]
        assert isinstance(params, dict)
        begin: dict[str, object] = {"jsonrpc": "2.0", "id": ask["id"]}
        try:
            result = self.model.answer(method, params)
        except WrongError as wrong:
            message = _MESSAGES.get(wrong.code, wrong.text)
            specific = {} if wrong.code == -32601 else {"specific_err": wrong.text}
            return {**begin, "error": {"code": wrong.code, "message": message, **specific}}
        return {**begin, "result": self.lies.get(method, result)}


@contextmanager
def trex_server(
    server: TrexServer, *, period_s: float = 0.1, host: str = "127.0.0.1", port: int = 0
) -> Iterator[TrexServer]:
    """Run the server in a thread within the block, on free ports (or its requests on ``port``) of ``host``."""
    context = zmq.Context()
    router, publisher = context.socket(zmq.ROUTER), context.socket(zmq.PUB)
    ending = threading.Event()
    try:
        for socket in (router, publisher):
            socket.setsockopt(zmq.LINGER, 0)
        router.bind(f"tcp://{host}:{port or '*'}")
        publisher.bind(f"tcp://{host}:*")
        server.port, server.publisher = (
            int(each.getsockopt_string(zmq.LAST_ENDPOINT).rpartition(":")[2]) for each in (router, publisher)
        )
        thread = threading.Thread(target=_serve, args=(server, router, publisher, ending, period_s), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            ending.set()
            thread.join(10)
    finally:
        router.close(linger=0)
        publisher.close(linger=0)
        context.term()


def _serve(
    server: TrexServer,
    router: zmq.Socket[bytes],
    publisher: zmq.Socket[bytes],
    ending: threading.Event,
    period_s: float,
) -> None:
    while not ending.is_set():
        if router.poll(round(period_s * 1000)):
            *envelope, body = router.recv_multipart()
            reply = server.reply(body)
            if reply is not None:
                router.send_multipart([*envelope, reply])
        elif server.model.old and server.publishing:
            for message in server.messages():
                publisher.send(message)
