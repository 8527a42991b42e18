"""Drives a stateless TRex: acquires ports without force, starts and updates them, and stops them at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from soakwatch.sources.abc import SourceError
from soakwatch.sources.answer_builder import AnswerBuilder
from soakwatch_trex.json_values import mapping, number, word
from soakwatch_trex.rate import Rate
from soakwatch_trex.rpc import Refusal, RefusedError, Request, Rpc
from soakwatch_trex.session import Server
from soakwatch_trex.totals import SENDING

_ALL_CORES = 2**64 - 1
_FAREWELL_S = 5.0
_ACTIVE = SENDING | {"PAUSE"}


@dataclass(frozen=True, slots=True)
class DriveConfig:
    """From the plan: ports (None: all with streams), full rate, and the user that acquires them."""

    ports: tuple[int, ...] | None
    full: Rate
    user: str
    session: int


class Driver:
    """Ports acquired until ``release``."""

    def __init__(self, rpc: Rpc, config: DriveConfig) -> None:
        self._rpc, self._config = rpc, config
        self._server: Server | None = None
        self._handlers: dict[int, str] = {}
        self._ours: set[int] = set()  # ports that we started or changed
        self._most: dict[int, tuple[float, float]] = {}  # pps and bit/s of a port's streams at factor 1
        self._factor: dict[int, float] = {}
        self.level: float | None = None
        self._followed = ""  # handle of the TRex that last took the level

    async def foresee(self, server: Server) -> None:
        """Check, without changes, that the ports could be acquired. Raises SourceError if not."""
        for port, status in zip(*await self._states(self._wanted(server)), strict=True):
            owner = word(mapping(status).get("owner"))
            if owner not in {"", self._config.user}:
                raise SourceError(self._taken(port, f"it is owned by {owner[:40]!r}"))

    async def take(self, server: Server) -> None:
        """Acquire the ports, without force. Raises SourceError if another user holds one."""
        if self._server is None or self._server.handle != server.handle:  # another process: nothing there is ours
            self._handlers, self._ours, self._factor, self._most = {}, set(), {}, {}
        self._server = server
        for port in self._wanted(server):
            if port in self._handlers:
                continue
            try:
                handler = await self._rpc.ask(
                    "acquire", port_id=port, user=self._config.user, session_id=self._config.session, force=False
                )
            except RefusedError as refused:
                raise SourceError(self._taken(port, str(refused))) from None
            self._handlers[port] = word(handler)

    async def drive(self, server: Server, level: float) -> None:
        """Send ``level`` times the full rate on all ports; 0 stops them. Raises SourceError."""
        self.level = level
        await self.take(server)
        ports, states = await self._states(tuple(self._handlers))
        pairs = [(port, word(mapping(status).get("state"))) for port, status in zip(ports, states, strict=True)]
        loaded = [(port, state) for port, state in pairs if state != "IDLE"]
        if len(loaded) < len(pairs) and (self._config.ports is not None or not loaded):
            empty = next(port for port, state in pairs if state == "IDLE")
            raise SourceError(f"port {empty} of TRex at {self._rpc.where} has no streams: load a profile there first")
        for port, state in loaded:
            try:
                await self._drive_port(port, state, level)
            except RefusedError as refused:
                raise SourceError(f"port {port} of TRex at {self._rpc.where}: {refused}") from None
        self._followed = server.handle

    def behind(self, server: Server) -> bool:
        """Whether TRex restarted since its level was set."""
        return self.level is not None and self._followed not in {"", server.handle}

    def put(self, builder: AnswerBuilder) -> None:
        """Put the offered rates, if TRex reported the rates of the streams."""
        if self._factor and all(port in self._most or not factor for port, factor in self._factor.items()):
            for metric, which in (("load.offered.packet.rate", 0), ("load.offered.bit.rate", 1)):
                rates = [factor * self._most[port][which] if factor else 0.0 for port, factor in self._factor.items()]
                builder.put(metric, sum(rates))

    async def release(self) -> None:
        """Stop what was started and release the ports; takes a few seconds at most, and never fails."""
        with suppress(TimeoutError, SourceError):
            async with asyncio.timeout(_FAREWELL_S):
                params = {port: {"port_id": port, "handler": handler} for port, handler in self._handlers.items()}
                asks = [Request("stop_traffic", params[port]) for port in self._ours]
                asks += [Request("release", each) for each in params.values()]
                if asks:
                    await self._rpc.ask_all(asks)
        self._handlers, self._ours = {}, set()

    async def _drive_port(self, port: int, state: str, level: float) -> None:
        mine: dict[str, object] = {"port_id": port, "handler": self._handlers[port]}
        if level <= 0:
            if state in _ACTIVE:
                self._ours.add(port)
                await self._rpc.ask("stop_traffic", **mine)
            self._factor[port] = 0.0
            return
        if port not in self._most and state not in _ACTIVE:
            with suppress(RefusedError):  # the offered rate is then unknown, but it sends anyway
                most = mapping(mapping(await self._rpc.ask("validate", **mine)).get("rate"))
                packets, bits = number(most.get("max_pps")), number(most.get("max_bps_l2"))
                if packets is not None and bits is not None:
                    self._most[port] = packets, bits
        self._ours.add(port)  # before the request: even if the answer is lost it may be sending
        order: dict[str, object] = {**mine, "mul": self._config.full.at(level), "force": False}
        if state in _ACTIVE:
            answer = await self._rpc.ask("update_traffic", **order)
            if state == "PAUSE":
                await self._rpc.ask("resume_traffic", **mine)
        else:
            answer = await self._rpc.ask("start_traffic", **order, duration=-1.0, core_mask=_ALL_CORES)
        factor = number(mapping(answer).get("multiplier"))
        if factor is None:
            self._most.pop(port, None)
        self._factor[port] = factor or level

    def _wanted(self, server: Server) -> tuple[int, ...]:
        if self._config.ports is None:
            return server.ports
        unknown = [port for port in self._config.ports if port not in server.ports]
        if unknown:
            has = ", ".join(map(str, server.ports))
            raise SourceError(f"TRex at {self._rpc.where} has no port {unknown[0]}: it has {has}")
        return self._config.ports

    async def _states(self, ports: Sequence[int]) -> tuple[Sequence[int], list[object]]:
        asked = await self._rpc.ask_all([Request("get_port_status", {"port_id": port}) for port in ports])
        for port, status in zip(ports, asked, strict=True):
            if isinstance(status, Refusal):
                raise SourceError(f"port {port} of TRex at {self._rpc.where}: {status.text}")
        return ports, asked

    def _taken(self, port: int, why: str) -> str:
        return f"port {port} of TRex at {self._rpc.where} cannot be driven: {why}: have it released first"
