"""Statistics that an older TRex publishes to all subscribers: totals, flows and latency, each about once a second.

Flows are sent as changes, which are merged here. Nothing is requested: the answer to a request for everything would
also reach TRex's consoles and reset their counts.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

import zmq
import zmq.asyncio

from soakwatch.core.text import one_line
from soakwatch.sources.abc import SourceError, SourceUnreadyError
from soakwatch_trex.frame import MAX_MESSAGE_BYTES, BadFrameError, unpack
from soakwatch_trex.json_values import mapping, word
from soakwatch_trex.rpc import endpoint

SILENT_S = 3.0
_MAX_GROUPS = 4096
_MAX_HELD_MESSAGES = 64


class Published:
    """One subscription, read by a task; the newest message of each kind is kept."""

    def __init__(self, host: str, port: int, context: zmq.asyncio.Context, now_ns: Callable[[], int]) -> None:
        self.totals: Mapping[str, object] = {}
        self.totals_ns = 0  # when they arrived
        self.flows: dict[str, dict[str, object]] = {}
        self.latency: Mapping[str, object] = {}
        self.unread = 0
        self.trouble = ""  # the first unreadable message
        self._where, self._now_ns = f"{host} port {port}", now_ns
        self._heard_s = time.monotonic()
        self._news = asyncio.Event()
        self._socket = context.socket(zmq.SUB)
        for option, value in (
            (zmq.LINGER, 0),
            (zmq.MAXMSGSIZE, MAX_MESSAGE_BYTES),
            (zmq.IPV6, 1),
            (zmq.RCVHWM, _MAX_HELD_MESSAGES),
        ):
            self._socket.setsockopt(option, value)
        self._socket.setsockopt(zmq.SUBSCRIBE, b"")
        self._socket.connect(endpoint(host, port))
        self._task = asyncio.create_task(self._read())

    async def fresh(self, patience_s: float) -> None:
        """Wait for the first totals. Raises SourceUnreadyError if there are none yet, SourceError if none came for 3
        s."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience_s / 2):
                await self._news.wait()
        if time.monotonic() - self._heard_s > SILENT_S:
            raise SourceError(f"TRex publishes nothing at {self._where}: is that port open too?")
        if not self.totals:
            raise SourceUnreadyError(f"TRex has published nothing at {self._where} yet")

    async def close(self) -> None:
        """End the subscription."""
        self._task.cancel()
        await asyncio.wait([self._task])
        self._socket.close(linger=0)

    async def _read(self) -> None:
        while True:
            raw = bytes(await self._socket.recv())
            try:
                self._take(mapping(unpack(raw)))
            except BadFrameError as bad:
                self.unread += 1
                self.trouble = self.trouble or one_line(str(bad), 100)

    def _take(self, message: Mapping[str, object]) -> None:
        name, data = word(message.get("name")), mapping(message.get("data"))
        if not name:
            raise BadFrameError("a message without a name")
        if name == "trex-global" and data:
            self.totals, self.totals_ns, self._heard_s = data, self._now_ns(), time.monotonic()
            self._news.set()
        elif name == "flow_stats":
            self.flows = put_together(self.flows, data)
        elif name == "latency_stats":
            self.latency = data


def put_together(before: Mapping[str, dict[str, object]], news: Mapping[str, object]) -> dict[str, dict[str, object]]:
    """Merge a message, which has all existing groups, each with what changed.

    >>> put_together({"7": {"tx_pkts": {"0": 5, "1": 0}}, "8": {}}, {"7": {"tx_pkts": {"0": 6}}})
    {'7': {'tx_pkts': {'0': 6, '1': 0}}}
    """
    now: dict[str, dict[str, object]] = {}
    for group, raw in list(news.items())[:_MAX_GROUPS]:
        if not group.isdecimal():
            continue
        fields = {} if mapping(raw).get("first_time") else dict(before.get(group, {}))
        for field, ports in mapping(raw).items():
            if isinstance(ports, dict):
                fields[field] = {**mapping(fields.get(field)), **ports}
        now[group] = fields
    return now
