"""JSON-RPC 2.0 over a ZeroMQ request socket, as TRex has it: one message at a time, with several requests."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import zmq
import zmq.asyncio

from soakwatch.core.text import one_line
from soakwatch.sources.abc import SourceError
from soakwatch_trex.frame import MAX_MESSAGE_BYTES, BadFrameError, unpack
from soakwatch_trex.json_values import mapping, number, word

UNKNOWN_METHOD: Final = -32601


@dataclass(frozen=True, slots=True)
class Request:
    """One request."""

    method: str
    params: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error that TRex answers instead of a result; ``text`` may be shown."""

    code: int
    text: str


class RefusedError(Exception):
    """TRex answered a request with an error."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.text)
        self.refusal = refusal


class Rpc:
    """One connection to the synchronous port. ``handle`` is sent with every request once it is known."""

    def __init__(self, host: str, port: int, patience_s: float, context: zmq.asyncio.Context) -> None:
        self.where = f"{host} port {port}"
        self.handle = ""
        self.host = host
        self._port, self._patience_s, self._context = port, patience_s, context
        self._socket: zmq.asyncio.Socket | None = None
        self._ids = itertools.count(1)
        self._one_at_a_time = asyncio.Lock()

    @property
    def connected(self) -> bool:
        """Whether the last request was answered over a connection that is still open."""
        return self._socket is not None

    async def ask(self, method: str, **params: object) -> object:
        """The result of one request. Raises RefusedError for an error, SourceError for a missing or invalid answer."""
        (result,) = await self.ask_all([Request(method, params)])
        if isinstance(result, Refusal):
            raise RefusedError(result)
        return result

    async def ask_all(self, asks: Sequence[Request]) -> list[object]:
        """Results (or Refusals) in the order of the requests. Raises SourceError for a missing or invalid answer."""
        numbered = [(next(self._ids), ask) for ask in asks]
        handle = {"api_h": self.handle} if self.handle else {}
        bodies = [
            {"jsonrpc": "2.0", "id": number, "method": ask.method, "params": {**ask.params, **handle}}
            for number, ask in numbered
        ]
        raw = await self._exchange(json.dumps(bodies if len(bodies) > 1 else bodies[0]).encode())
        try:
            value = unpack(raw)
        except BadFrameError as bad:
            raise SourceError(f"TRex at {self.where} sent {bad}") from None
        replies = {
            mapping(part).get("id"): mapping(part)
            for part in (value if isinstance(value, list) else [value])
            if isinstance(mapping(part).get("id"), int)
        }
        if not replies and (refusal := _refusal(mapping(value))) is not None:
            raise SourceError(f"TRex at {self.where} refused the message: {refusal.text}")
        return [self._result(replies.get(number), ask.method) for number, ask in numbered]

    def drop(self) -> None:
        """Close the connection; the next request opens another."""
        socket, self._socket = self._socket, None
        if socket is not None:
            socket.close(linger=0)

    def _result(self, reply: Mapping[str, object] | None, method: str) -> object:
        if reply is None:
            raise SourceError(f"TRex at {self.where} did not answer {method}")
        refusal = _refusal(reply)
        if refusal is None and "result" not in reply:
            raise SourceError(f"TRex at {self.where} answered {method} with neither a result nor an error")
        return reply["result"] if refusal is None else refusal

    async def _exchange(self, body: bytes) -> bytes:
        async with self._one_at_a_time:
            try:
                async with asyncio.timeout(self._patience_s):
                    socket = self._socket or await self._open()
                    await socket.send(body)
                    return bytes(await socket.recv())
            except TimeoutError:
                self.drop()
                raise SourceError(f"TRex at {self.where} did not answer within {self._patience_s:g} s") from None
            except zmq.ZMQError as error:
                self.drop()
                raise SourceError(f"the connection to TRex at {self.where} failed: {error.strerror}") from None
            except BaseException:
                self.drop()  # a request socket that still waits for a reply cannot send again
                raise

    async def _open(self) -> zmq.asyncio.Socket:
        """Check with a plain connection that the port is open, as a ZeroMQ socket retries silently for ever."""
        try:
            _, writer = await asyncio.open_connection(self.host, self._port)
        except OSError as error:
            why = error.strerror or type(error).__name__
            raise SourceError(
                f"cannot reach TRex at {self.where}: {one_line(why, 80)}: does it run in interactive mode (-i)?"
            ) from None
        writer.close()
        socket = self._context.socket(zmq.REQ)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.MAXMSGSIZE, MAX_MESSAGE_BYTES)
        socket.setsockopt(zmq.IPV6, 1)
        try:
            socket.connect(endpoint(self.host, self._port))
        except zmq.ZMQError:
            socket.close(linger=0)
            raise
        self._socket = socket
        return socket


def endpoint(host: str, port: int) -> str:
    """The ZeroMQ name of a port.

    >>> endpoint("::1", 4501), endpoint("tg", 4501)
    ('tcp://[::1]:4501', 'tcp://tg:4501')
    """
    return f"tcp://[{host}]:{port}" if ":" in host else f"tcp://{host}:{port}"


def _refusal(reply: Mapping[str, object]) -> Refusal | None:
    if "error" not in reply:
        return None
    error = mapping(reply["error"])
    text = word(error.get("specific_err")) or word(error.get("message")) or "an error without a reason"
    return Refusal(int(number(error.get("code")) or 0), one_line(text, 200))
