"""Polls a TRex with one or two messages, and converts the answers to samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import zmq.asyncio

from soakwatch.core.text import one_line
from soakwatch.sources.abc import Facts, SourceError
from soakwatch.sources.answer_builder import AnswerBuilder
from soakwatch.sources.generator_tree import generator
from soakwatch_model.event import Event
from soakwatch_model.sample import Answer
from soakwatch_model.tree import Tree
from soakwatch_trex import astf
from soakwatch_trex.driver import Driver
from soakwatch_trex.flows import Flow, FlowHistory, parse_pgid_stats, published
from soakwatch_trex.json_values import count, listing, mapping
from soakwatch_trex.published import Published
from soakwatch_trex.rpc import Refusal, RefusedError, Request, Rpc
from soakwatch_trex.session import Server, greet
from soakwatch_trex.totals import by_port, put_port, put_state, put_whole

_BUCKETS = (
    "latency quantiles are read from TRex's histogram, whose buckets are one digit wide (10-19 us, 100-199 us ...)"
)
_DRAIN = "packets under way when the traffic stops come back later: totals are final after that drain"
_NO_TRAFFIC = "not initialized"  # ASTF's error before its first traffic
_PROFILE = {"profile_id": "_"}  # the default of TRex's consoles
_SYSTEM: Final = ("hostname", "core_type", "dp_core_count", "dp_core_count_per_port", "is_multiq_mode")
_PORT: Final = ("driver", "description", "pci_addr", "numa", "speed", "supp_speeds", "hw_mac", "is_virtual")
_PROMISED = ("load.tx.packets", "load.rx.packets", "load.tx.packet.rate", "load.queue_full", "load.cpu.utilization")


class Reader:
    """A TRex that is only read. After a failed poll it repeats the handshake, as it may be another process."""

    def __init__(
        self,
        rpc: Rpc,
        publisher: int,
        most_flows: int,
        patience_s: float,
        now_ns: Callable[[], int],
        context: zmq.asyncio.Context,
    ) -> None:
        self._rpc, self._publisher, self._most_flows = rpc, publisher, most_flows
        self._patience_s, self._now_ns, self._context = patience_s, now_ns, context
        self._server: Server | None = None
        self._published: Published | None = None
        self._published_ns = 0
        self._flows, self._probes = FlowHistory(), astf.Probes()
        self._numbers: dict[str, int] = {}
        self._counted: dict[str, int] = {}
        self._starved = False
        self._events: list[Event] = []
        self._unsampled, self._factor = 0, 1.0

    async def server(self, *, anew: bool = False) -> Server:
        """The server; shakes hands if there is no connection, or if ``anew``. Raises SourceError."""
        if anew or self._server is None or not self._rpc.connected:
            await self._greet()
        assert self._server is not None
        return self._server

    async def poll(self, now_ns: int) -> Answer:
        """One poll. Raises SourceError."""
        return await self.read(now_ns, None)

    async def read(self, now_ns: int, driver: Driver | None) -> Answer:
        """One poll, with the offered rate of a driver, which drives again if TRex restarted. Raises SourceError."""
        builder = AnswerBuilder(now_ns)
        server = await self.server()
        results = await self._rpc.ask_all(self._questions(server))
        if all(isinstance(each, Refusal) for each in results):  # as if the handle is another process's
            server = await self.server(anew=True)
            results = await self._rpc.ask_all(self._questions(server))
        self._put_states(builder, server, results)
        if server.asked:
            await self._put_asked(builder, server, results[len(server.ports) :])
        else:
            await self._put_published(builder, server, results[len(server.ports) :])
        if driver is not None:
            if driver.behind(server):
                try:
                    await driver.drive(server, driver.level or 0.0)
                except SourceError as failure:
                    builder.fault("load.offered.packet.rate", f"TRex was restarted and is not driven: {failure}")
            driver.put(builder)
        events, self._events = tuple(self._events), []
        return builder.answer(*events)

    def facts(self) -> Facts:
        """The identity that TRex reports."""
        server = self._server
        if server is None:
            return Facts({})
        identity = {
            "generator": f"TRex {server.version} {server.mode}".strip(),
            "host": server.host,
            "interface": server.api,
            "ports": ", ".join([str(len(server.ports)), *filter(None, server.drivers)]),
            "statistics": "requested" if server.asked else "published",
        }
        notes = [_DRAIN, _BUCKETS]
        if server.newer:
            notes.append(f"its interface {server.api} is newer than the known one: figures may be missing")
        if self._unsampled:
            notes.append(f"{self._unsampled} flows are not sampled: raise flows")
        if self._factor != 1.0:
            notes.append(f"TRex multiplies its rates (and not its totals) by its platform factor of {self._factor:g}")
        return Facts({key: value for key, value in identity.items() if value}, _PROMISED, tuple(notes))

    async def fingerprint(self) -> Mapping[str, Tree]:
        """See Fingerprints: the result of the handshake, and TRex's description of machine and ports."""
        server = await self.server()
        config: dict[str, Tree] = {"mode": server.mode, "interface": server.api}
        try:
            system = mapping(await self._rpc.ask("get_system_info"))
        except RefusedError as refused:
            return generator("TRex", server.version, config, [f"TRex refuses get_system_info: {refused}"])
        config |= _described(system, _SYSTEM)
        ports = [mapping(port) for port in listing(system.get("ports"))][: len(server.ports)]
        config["ports"] = [
            {"name": f"port {number}", **_described(port, _PORT)}
            for number, port in zip(server.ports, ports, strict=False)
        ]
        return generator("TRex", server.version, config)

    async def close(self) -> None:
        """End the subscription, if there is one."""
        if self._published is not None:
            await self._published.close()
            self._published = None

    async def _greet(self) -> None:
        before, now = self._server, await greet(self._rpc)
        if before is not None and before.handle != now.handle:
            detail = {"source": f"TRex at {self._rpc.where}", "version": now.version, "was": before.version}
            self._events.append(Event("generator.restart", "", "", self._now_ns(), None, detail))
            self._flows, self._probes, self._numbers, self._counted = FlowHistory(), astf.Probes(), {}, {}
            self._starved = False
        self._server = now
        if not now.asked and self._published is None:
            host = self._rpc.host
            self._published = Published(host, self._publisher, self._context, self._now_ns)

    def _questions(self, server: Server) -> list[Request]:
        asks = [Request("get_port_status", {"port_id": port}) for port in server.ports]
        if server.asked:
            asks.append(Request("get_global_stats", {}))
            asks += [Request("get_port_stats", {"port_id": port}) for port in server.ports]
        if server.mode == "ASTF":
            total = "get_total_counter_values"
            asks.append(Request(total if total in server.methods else "get_counter_values", _PROFILE))
            asks += [Request("get_latency_stats", {})] if "get_latency_stats" in server.methods else []
            asks += [Request("get_counter_desc", _PROFILE)] if not self._numbers else []
        elif self._most_flows and "get_pgid_stats" in server.methods:
            asks.append(Request("get_active_pgids", {}))
        return asks

    def _put_states(self, builder: AnswerBuilder, server: Server, results: Sequence[object]) -> None:
        sending: list[bool] = []
        for port, status in zip(server.ports, results, strict=False):
            if isinstance(status, Refusal):
                builder.fault("load.port.up", f"TRex refuses the state of the port: {status.text}", port=port)
                continue
            sends = put_state(builder, port, mapping(status))
            sending += [sends] if sends is not None else []
        if any(sending) or len(sending) == len(server.ports):
            builder.put("load.sending", int(any(sending)))

    async def _put_asked(self, builder: AnswerBuilder, server: Server, results: Sequence[object]) -> None:
        whole, *rest = results
        if isinstance(whole, Refusal):
            raise SourceError(f"TRex at {self._rpc.where} refuses get_global_stats: {whole.text}")
        ports = dict(zip(server.ports, rest, strict=False))
        for port, raw in ports.items():
            if isinstance(raw, Refusal):
                builder.fault("load.port.tx.packets", f"TRex refuses the counters of the port: {raw.text}", port=port)
        self._put_totals(builder, mapping(whole), {port: mapping(raw) for port, raw in ports.items()})
        special = rest[len(server.ports) :]
        if server.mode == "ASTF":
            self._put_astf(builder, mapping(whole), special, latency="get_latency_stats" in server.methods)
        elif special:
            await self._put_flows(builder, special[0])

    async def _put_published(self, builder: AnswerBuilder, server: Server, results: Sequence[object]) -> None:
        news = self._published
        assert news is not None
        await news.fresh(self._patience_s)
        if news.unread:
            builder.fault("load.lines.unread", f"unreadable message: {news.trouble}")
        builder.put("load.lines.unread", news.unread)
        if results:
            await self._put_flows(builder, results[0])  # releases in between publish only their totals
        if news.totals_ns == self._published_ns:
            return  # it publishes less often than it is polled
        self._published_ns = news.totals_ns
        ports = by_port(news.totals)
        then = AnswerBuilder(news.totals_ns)
        self._put_totals(then, news.totals, {port: ports.get(port, {}) for port in server.ports})
        if not results:
            self._put_flow_samples(then, published(news.flows, news.latency))
        builder.extend(then)

    def _put_totals(
        self, builder: AnswerBuilder, whole: Mapping[str, object], ports: Mapping[int, Mapping[str, object]]
    ) -> None:
        put_whole(builder, whole, ports)
        for port, raw in ports.items():
            put_port(builder, port, raw)
        factor = whole.get("m_platform_factor")
        self._factor = float(factor) if isinstance(factor, int | float) and factor > 0 else 1.0
        starved = bool(count(whole.get("m_total_alloc_error")))
        if starved and not self._starved:
            detail = {"source": f"TRex at {self._rpc.where}", "errors": str(whole.get("m_total_alloc_error"))}
            self._events.append(Event("generator.out_of_buffers", "", "", builder.time_ns, None, detail))
        self._starved = starved

    async def _put_flows(self, builder: AnswerBuilder, active: object) -> None:
        if isinstance(active, Refusal):
            builder.fault("load.flow.tx.packets", f"TRex refuses the list of its flows: {active.text}")
            return
        raw = mapping(active).get("ids")  # one list, or one for each kind
        kinds = [raw] if isinstance(raw, list) else [mapping(raw).get("latency"), mapping(raw).get("flow_stats")]
        groups = [group for kind in kinds for each in listing(kind) if (group := count(each)) is not None]
        chosen = list(dict.fromkeys(groups))[: self._most_flows]
        self._unsampled = len(set(groups)) - len(chosen)
        if not chosen:
            self._put_flow_samples(builder, {})
            return
        (reply,) = await self._rpc.ask_all([Request("get_pgid_stats", {"pgids": chosen})])
        if isinstance(reply, Refusal):
            builder.fault("load.flow.tx.packets", f"TRex refuses the figures of its flows: {reply.text}")
            return
        self._put_flow_samples(builder, parse_pgid_stats(reply))

    def _put_flow_samples(self, builder: AnswerBuilder, flows: Mapping[int, Flow]) -> None:
        chosen = dict(list(flows.items())[: self._most_flows])
        anew = self._flows.put(builder, chosen)
        if anew:
            detail = {"source": f"TRex at {self._rpc.where}", "flows": ", ".join(map(str, anew[:20]))}
            self._events.append(Event("generator.cleared", "", "", builder.time_ns, None, detail))

    def _put_astf(
        self, builder: AnswerBuilder, whole: Mapping[str, object], special: Sequence[object], *, latency: bool
    ) -> None:
        answers = [None if isinstance(each, Refusal) else each for each in special]
        if special and isinstance(special[0], Refusal) and _NO_TRAFFIC not in special[0].text:
            builder.fault("load.connections.opened", f"TRex refuses its counters: {special[0].text}")
        if not self._numbers and len(answers) > 1 + latency:
            self._numbers = astf.described(answers[1 + latency])
        counted = astf.put_counters(builder, answers[0], self._numbers)
        astf.put_open(builder, answers[0], self._numbers, whole)
        if latency and len(answers) > 1:
            self._probes.put(builder, answers[1])
        fell = [metric for metric, value in counted.items() if value < self._counted.get(metric, 0)]
        if fell:  # TRex's epoch changes with every start, whether or not counters are cleared
            detail = {"source": f"TRex at {self._rpc.where}", "counters": ", ".join(fell)}
            self._events.append(Event("generator.cleared", "", "", builder.time_ns, None, detail))
        self._counted.update(counted)


def _described(words: Mapping[str, object], names: Sequence[str]) -> dict[str, Tree]:
    """The named values that are texts, numbers, flags, or lists of numbers."""
    told: dict[str, Tree] = {}
    for name in names:
        value = words.get(name)
        if isinstance(value, str) and value:
            told[name] = one_line(value, 100)
        elif isinstance(value, bool | int | float):
            told[name] = value
        elif isinstance(value, list):
            told[name] = [each for each in value[:16] if isinstance(each, int)]
    return told
