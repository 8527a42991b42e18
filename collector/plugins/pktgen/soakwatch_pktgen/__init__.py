"""Pktgen-DPDK over its Lua port: packets, rates, errors, links and latency of its ports.

Start Pktgen with ``-G`` (port 22022 of its machine). The port runs any Lua from anyone: keep it inside the lab.
It serves one client at a time, so each poll opens a connection of its own and other clients can connect between.
Example: ``pktgen: {host: 198.18.0.2, interval: 1s}``; with ``drive: true, send: "0", rate: 50`` the run starts port 0,
at half of its link's rate for a level of 100 %, changes it with the phases, and stops it at the end.

Counters restart with Pktgen's ``clr`` and ``clear``, which shows. Versions 23.10 to 24.03 count nothing over Lua, which
is reported. Versions before 22.04 reset their mean latency whenever it is read: ``latency: false`` does not read it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Annotated

from pydantic import Field

from soakwatch.sources.abc import Facts, HostName, SourceConfig, SourceContext, SourceError, timing
from soakwatch.sources.answer_builder import AnswerBuilder, restarted, rests
from soakwatch.sources.generator_tree import generator
from soakwatch_model.sample import Answer
from soakwatch_model.tree import Tree
from soakwatch_pktgen import figures as pg
from soakwatch_pktgen.console import Console, lua_string, table_line
from soakwatch_pktgen.lua_text import LuaTables, Table

_LOG = logging.getLogger("soakwatch")
_STOP_S = 5.0
_MIN_RATE = 0.01  # percent; Pktgen takes 0 for this
_MAX_UNCOUNTED_POLLS = 3  # polls: its figures are a second old, and the first packets take a while

PortList = Annotated[str, Field(max_length=100, pattern=r"^(all|\d{1,3}(-\d{1,3})?(,\d{1,3}(-\d{1,3})?)*)$")]


class Config(SourceConfig):
    """Keys of the source ``pktgen``."""

    host: Annotated[HostName, Field(default="127.0.0.1", description="machine on which Pktgen runs")]
    port: Annotated[int, Field(default=22022, ge=1, le=65535, description="its Lua port")]
    ports: Annotated[PortList, Field(default="all", description="ports that are read, such as 0-3 or 0,2")]
    latency: Annotated[bool, Field(default=True, description="read latency, and packets that could not be sent")]
    offered: Annotated[
        bool,
        Field(default=False, description="take the offered load from its rate setting; wrong for mixed packet sizes"),
    ]
    drive: Annotated[bool, Field(default=False, description="the run starts, changes and stops the traffic")]
    send: Annotated[PortList, Field(default="all", description="ports that are driven")]
    rate: Annotated[float, Field(default=100.0, gt=0, le=100, description="percent of the link at a level of 100 %")]


class PktgenLoad:
    """One Pktgen; each poll has a connection of its own."""

    def __init__(self, config: Config, console: Console) -> None:
        self._config, self._console = config, console
        self._identity: dict[str, str] = {}
        self._one_argument = False  # portStats(ports), since 2026
        self._rates: bool | None = None
        self._nothing_counted = 0

    @property
    def reached(self) -> bool:
        """Whether it answered the last request."""
        return bool(self._identity)

    async def greet(self) -> None:
        """Request the identity, and find out which functions it has. Raises SourceError."""
        answer = await self._console.ask([table_line("about", "pktgen.info"), *self._totals(one_argument=False)])
        about = answer.tables.get("about")
        if about is None:
            raise SourceError(
                f"{self._console.where} answers but is not Pktgen: set host and port to those of its Lua shell"
            )
        self._identity = {
            "generator": "Pktgen-DPDK",
            "address": f"{self._config.host}:{self._config.port}",
            **_texts(about, {"Pktgen_Version": "version", "DPDK_Version": "DPDK", "Lua_Version": "Lua"}),
        }
        self._one_argument = not pg.ports_of(answer).totals

    async def poll(self, now_ns: int) -> Answer:
        """One poll. Raises SourceError if it does not answer, or reports no port."""
        if not self._identity:
            await self.greet()
        try:
            answer = await self._console.ask(self._questions())
        except SourceError:
            self._identity = {}  # it may come back with another version
            raise
        ports = pg.ports_of(answer)
        if not ports.totals:
            raise SourceError(f"{self._console.where} reports nothing of {_of(self._config.ports)}{_because(answer)}")
        builder = AnswerBuilder(now_ns)
        self._nothing_counted = self._nothing_counted + 1 if pg.counts_nothing(ports) else 0
        if self._nothing_counted < _MAX_UNCOUNTED_POLLS:
            pg.put_counters(builder, ports)
        else:
            builder.fault(
                "load.tx.packets", "Pktgen sends but counts nothing over Lua, as 23.10 to 24.03 do: use another version"
            )
        pg.put_rates(builder, ports)
        pg.put_state(builder, ports)
        if self._config.latency:
            pg.put_latency(builder, ports)
        if self._config.offered or self._config.drive:
            pg.put_offered(builder, ports)
        for name, why in answer.unread.items():
            builder.fault("", f"Pktgen's table {name} cannot be read: {why}")
        self._rates = bool(ports.rates)
        return builder.answer()

    def facts(self) -> Facts:
        """The identity that Pktgen reports."""
        notes = []
        if self._rates is False:
            notes.append("this Pktgen reports no rates: they are computed from its counters")
        return Facts(self._identity, (), tuple(notes))

    async def fingerprint(self) -> Mapping[str, Tree]:
        """See Fingerprints: versions, and the settings of each port that phases do not change."""
        if not self._identity:
            await self.greet()
        config: dict[str, Tree] = {name: self._identity[name] for name in ("DPDK", "Lua") if name in self._identity}
        question = table_line(pg.INFO, f"pktgen.portInfo({lua_string(self._config.ports)})")
        ports = pg.ports_of(await self._console.ask([question]))
        config["ports"] = [{"name": f"port {port}", **pg.port_settings(table)} for port, table in ports.info.items()]
        notes = () if ports.info else ("generator: this Pktgen does not tell the settings of its ports",)
        return generator("Pktgen-DPDK", self._identity.get("version", ""), config, notes)

    def _totals(self, *, one_argument: bool) -> list[str]:
        ports = lua_string(self._config.ports)
        if one_argument:
            return [table_line(pg.TOTALS, f"pktgen.portStats({ports})")]
        return [table_line(pg.TOTALS, f'pktgen.portStats({ports}, "port")')]

    def _questions(self) -> list[str]:
        ports = lua_string(self._config.ports)
        lines = self._totals(one_argument=self._one_argument)
        if not self._one_argument:
            lines.append(table_line(pg.RATES, f'pktgen.portStats({ports}, "rate")'))
        lines.append(table_line(pg.LINKS, f"pktgen.linkState({ports})"))
        lines.append(table_line(pg.SENDING, f"pktgen.isSending({ports})"))
        if self._config.latency and not self._one_argument:
            lines.append(table_line(pg.PACKETS, f"pktgen.pktStats({ports})"))
        if self._config.offered or self._config.drive:
            lines.append(table_line(pg.INFO, f"pktgen.portInfo({ports})"))
        return lines


class DrivenPktgen:
    """A polled Pktgen that the run drives."""

    def __init__(self, config: Config, console: Console, load: PktgenLoad) -> None:
        self._config, self._console, self._load = config, console, load
        self._started = False
        self._level = 0.0

    async def poll(self, now_ns: int) -> Answer:
        """A poll; a Pktgen that comes back idle though it should send is started again. Raises SourceError."""
        away = not self._load.reached
        answer = await self._load.poll(now_ns)
        if not away or not self._started or not rests(answer):
            return answer
        await self.drive(self._level)
        return restarted(answer, now_ns, f"{self._level:.0%} of {self._config.rate:g} % of the link")

    def facts(self) -> Facts:
        """The identity that Pktgen reports."""
        return self._load.facts()

    async def fingerprint(self) -> Mapping[str, Tree]:
        """See Fingerprints."""
        return await self._load.fingerprint()

    async def drive(self, level: float) -> None:
        """Send at ``level`` times the configured rate; 0 stops. Raises SourceError, and then its state is unknown."""
        send, where = lua_string(self._config.send), self._console.where
        check = [table_line(pg.SENDING, f"pktgen.isSending({send})"), table_line(pg.INFO, f"pktgen.portInfo({send})")]
        if level <= 0:
            ports = pg.ports_of(await self._console.order([f"pktgen.stop({send})", *check]))
        else:
            percent = max(_MIN_RATE, self._config.rate * level)
            if percent > 100:
                raise SourceError(
                    f"{where} cannot send {percent:g} % of its link: lower rate, or the load of the phase"
                )
            self._started, self._level = True, level
            orders = [f'pktgen.set({send}, "rate", {percent:.10g})', f"pktgen.start({send})"]
            ports = pg.ports_of(await self._console.order([*orders, *check]))
            wrong = [
                rate for rate in pg.rates_set(ports).values() if abs(rate - percent) >= 1
            ]  # reported without decimals
            if wrong:
                raise SourceError(f"{where} was set to {percent:g} % but reports {wrong[0]:g} %, and sends at that")
        if pg.is_sending(ports) is not (level > 0):
            order = "start" if level > 0 else "stop"
            raise SourceError(
                f"{where} did not {order} {_of(self._config.send)}: check that they exist and have a link"
            )
        self._started = level > 0

    async def rest(self) -> None:
        """At the end of the run stop what it started; a failure is logged."""
        if not self._started:
            return
        try:
            async with asyncio.timeout(_STOP_S):
                await self.drive(0)
        except (SourceError, TimeoutError) as failure:
            why = str(failure) or f"no answer within {_STOP_S:g} s"
            _LOG.warning("%s may still send: stop it by hand (%s)", self._console.where, why)


async def start(config: Config, site: SourceContext, stack: AsyncExitStack) -> PktgenLoad | DrivenPktgen:
    """Request the identity. Raises SourceError if nothing answers, or it is not Pktgen."""
    limit_s = 0.9 * timing(0, site.interval_s, config.timeout).timeout_s
    console = Console(config.host, config.port, limit_s)
    stack.push_async_callback(console.close)
    load = PktgenLoad(config, console)
    await load.greet()
    if not config.drive:
        return load
    driven = DrivenPktgen(config, console, load)
    stack.push_async_callback(driven.rest)
    return driven


def _texts(table: Table, names: dict[str, str]) -> dict[str, str]:
    return {ours: str(table[theirs])[:100] for theirs, ours in names.items() if isinstance(table.get(theirs), str)}


def _of(ports: str) -> str:
    return "its ports" if ports == "all" else f"its ports {ports}"


def _because(answer: LuaTables) -> str:
    return (
        "".join(f": {why}" for name, why in answer.unread.items() if name == pg.TOTALS)
        or ": check that it has them, and name them in ports (0-1)"
    )
