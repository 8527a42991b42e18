"""Open Traffic Generator REST (ixia-c, IxNetwork and others behind snappi): metrics of ports and flows.

Example: ``otg: {url: "https://198.18.0.3:8443", interval: 1s, pin: "sha256:…"}``. Controllers mostly have a
self-signed certificate, which ``pin`` trusts. Flows count once ``metrics.enable`` is set in their configuration. The
whole generator is the sum of its flows, or of its ports where no flow counts (``total`` chooses); traffic of protocols
is counted by the ports alone.

With ``drive: true`` the run starts and stops the flows that the test's own script has configured, at the phase's share
of their rates, and at the end stops them and restores their rates. Rates are changed in flight (``PATCH /config``);
a controller that cannot do that supports loads of 0 and 100 % only, and a note says so.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Annotated, Literal

from pydantic import Field

from soakwatch.sources.abc import Facts, SourceContext, SourceError, timing
from soakwatch.sources.answer_builder import AnswerBuilder, restarted, rests
from soakwatch.sources.generator_tree import generator
from soakwatch.sources.transport.http import WebConfig
from soakwatch_model.sample import Answer
from soakwatch_model.tree import Tree
from soakwatch_otg.api import OtgApi, RefusedError, otg_api
from soakwatch_otg.metrics import Row, Rows, is_sending, put_flows, put_ports, put_whole, rows_of
from soakwatch_otg.rates import flows_of, offered, scaled
from soakwatch_otg.settings import configured

_LOG = logging.getLogger("soakwatch")
_STOP_S = 5.0
_UNKNOWN = frozenset({404, 405, 501})
_VERSIONS = {"api_spec_version": "API", "app_version": "application", "sdk_version": "SDK"}
_TOLD_FIRST = ("application", "SDK", "API")  # for the version of the generator, in order of preference


class Config(WebConfig):
    """Keys of the source ``otg``."""

    flows: Annotated[
        list[str] | None,
        Field(default=None, min_length=1, max_length=1000, description="names of flows; default: all"),
    ]
    total: Annotated[
        Literal["auto", "flows", "ports"],
        Field(default="auto", description="parts whose sum is the whole; auto: flows where they count, else ports"),
    ]
    drive: Annotated[bool, Field(default=False, description="the run starts, changes and stops the flows")]


class OtgLoad:
    """One controller, polled for ports and flows."""

    def __init__(self, config: Config, api: OtgApi) -> None:
        self._config, self._api = config, api
        self._identity: dict[str, str] = {}
        self._by_flows: bool | None = {"flows": True, "ports": False}.get(config.total)

    @property
    def reached(self) -> bool:
        """Whether it answered the last request."""
        return bool(self._identity)

    async def greet(self) -> None:
        """Request the version, which not every controller has. Raises SourceError if nothing answers."""
        try:
            answer = await self._api.call("GET", "/capabilities/version")
        except RefusedError as refused:
            if refused.status not in _UNKNOWN:
                raise
            answer = None
        versions = answer if isinstance(answer, Mapping) else {}
        self._identity = {"generator": "Open Traffic Generator", "address": self._api.where}
        for key, name in _VERSIONS.items():
            version = versions.get(key)
            if isinstance(version, str) and version:
                self._identity[name] = version[:100]

    async def poll(self, now_ns: int) -> Answer:
        """One poll. Raises SourceError if it does not answer, or has no ports."""
        try:
            if not self._identity:
                await self.greet()
            ports = rows_of(await self._metrics("port", {}), "port_metrics")
        except SourceError:
            self._identity = {}  # it may come back with another version
            raise
        if ports is None:
            raise SourceError(
                f"{self._api.where} does not answer with port metrics: check that url is the controller's"
            )
        figures = AnswerBuilder(now_ns)
        flows = await self._flow_rows(figures)
        if not ports.named and (flows is None or not flows.named):
            raise SourceError(f"{self._api.where} has no ports and no flows: push the test's configuration first")
        put_ports(figures, ports)
        if flows is not None:
            put_flows(figures, flows)
        self._put_whole(figures, ports, flows)
        sending = is_sending(ports, flows)
        if sending is None:
            figures.fault("load.sending", "the controller does not report whether it sends")
        else:
            figures.put("load.sending", int(sending))
        return figures.answer()

    def facts(self) -> Facts:
        """The identity that the controller reports."""
        by = {None: "unknown so far", True: "the sum of its flows", False: "the sum of its ports"}[self._by_flows]
        return Facts({**self._identity, "the whole": by})

    async def fingerprint(self) -> Mapping[str, Tree]:
        """See Fingerprints: versions, ports and flows of the configuration; protocols are left out, as they contain
        keys.

        Rates are left out where the run drives them: they change with the phases.
        """
        version = next((self._identity[name] for name in _TOLD_FIRST if name in self._identity), "")
        config: dict[str, Tree] = {name: self._identity[name] for name in _VERSIONS.values() if name in self._identity}
        try:
            answer = await self._api.call("GET", "/config")
        except RefusedError as refused:
            return generator("Open Traffic Generator", version, config, [f"its configuration: {refused}"])
        config |= configured(answer, rates=not self._config.drive)
        return generator("Open Traffic Generator", version, config)

    async def _metrics(self, kind: str, request: Mapping[str, Tree]) -> Tree:
        return await self._api.call("POST", "/monitor/metrics", {"choice": kind, kind: dict(request)})

    async def _flow_rows(self, figures: AnswerBuilder) -> Rows | None:
        names: list[Tree] = list(self._config.flows or ())
        try:
            flows = rows_of(await self._metrics("flow", {"flow_names": names} if names else {}), "flow_metrics")
        except RefusedError as refused:  # ports without flows are a valid poll
            figures.fault("load.flow.tx.packets", str(refused))
            return None
        if flows is None:
            figures.fault("load.flow.tx.packets", "the controller does not answer with flow metrics")
        return flows

    def _put_whole(self, figures: AnswerBuilder, ports: Rows, flows: Rows | None) -> None:
        """The total over flows or ports, as settled for the whole run by the plan or by whether the first flows
        count."""
        if self._by_flows is None and flows is not None:
            counts = [row.get("frames_tx") for rows in flows.named.values() for row in rows]
            self._by_flows = any(count is not None for count in counts)
        if self._by_flows is None:
            return  # flows were refused, which is a fault already; the next poll may get them
        if not self._by_flows:
            put_whole(figures, ports, flows=False)
        elif flows is not None and flows.named:
            put_whole(figures, flows, flows=True)
        else:
            figures.fault("load.tx.packets", "the controller reports no flows any more, whose sum is the whole")


class DrivenOtg:
    """A polled controller whose flows the run drives."""

    def __init__(self, config: Config, api: OtgApi, load: OtgLoad) -> None:
        self._config, self._api, self._load = config, api, load
        self._flows: tuple[Row, ...] = ()
        self._applied: float | None = 1.0  # share of the configured rates; None: unknown
        self._sending: bool | None = None  # as commanded by the run; None: no command yet
        self._level = 0.0
        self._fixed = False

    async def poll(self, now_ns: int) -> Answer:
        """A poll, with the offered load. A controller that comes back idle though it should send is started again.

        Raises SourceError.
        """
        away = not self._load.reached
        answer = await self._load.poll(now_ns)
        if away and self._sending and rests(answer):
            if not self._fixed and self._level != 1.0:
                self._applied = None  # its configuration may have been pushed again
                await self._apply(self._level)
            await self._transmit("start")
            answer = restarted(answer, now_ns, f"{self._level:.0%} of its rates")
        if not self._flows or self._sending is None or self._applied is None:
            return answer
        offer = offered(self._flows, self._applied)
        if offer is None:
            return answer
        figures = AnswerBuilder(now_ns)
        figures.put(offer[0], offer[1] if self._sending else 0)
        return Answer((*answer.samples, *figures.answer().samples), answer.events, answer.faults)

    async def drive(self, level: float) -> None:
        """Send at ``level`` times the configured rates; 0 stops. Raises SourceError, and then changes nothing more."""
        if not self._flows:
            self._flows = flows_of(await self._api.call("GET", "/config"), self._config.flows)
        if level > 0:
            await self._apply(level)
            self._level = level
        if level > 0 and not self._sending:
            self._sending = True  # from here on it may send, whatever it answers
            await self._transmit("start")
        elif level <= 0 and self._sending is not False:
            await self._transmit("stop")
            self._sending = False

    async def rest(self) -> None:
        """At the end of the run stop the flows it started, and restore the rates; a failure is logged."""
        try:
            async with asyncio.timeout(_STOP_S):
                if self._sending:
                    await self._transmit("stop")
                    self._sending = False
                if self._flows:
                    await self._apply(1.0)
        except (SourceError, TimeoutError) as failure:
            what = "may still send: stop it by hand" if self._sending else "keeps the rates of the last phase"
            _LOG.warning("%s %s (%s)", self._api.where, what, str(failure) or f"no answer within {_STOP_S:g} s")

    def facts(self) -> Facts:
        """Its identity, and a note if its rates are fixed."""
        facts = self._load.facts()
        if not self._fixed:
            return facts
        note = "rates cannot be changed in flight: loads of 0 and 100 % only"
        return Facts({**facts.identity, "rates": "fixed"}, (), (note,))

    async def fingerprint(self) -> Mapping[str, Tree]:
        """See Fingerprints."""
        return await self._load.fingerprint()

    async def _apply(self, level: float) -> None:
        if level == self._applied:
            return
        flows: list[Tree] = [scaled(flow, level) for flow in self._flows]
        body: Tree = {"choice": "flows", "flows": {"property_names": ["rate"], "flows": flows}}
        before, self._applied = self._applied, None
        try:
            await self._api.call("PATCH", "/config", body)
        except RefusedError as refused:
            self._applied = before
            self._fixed = refused.status in _UNKNOWN
            if self._fixed:
                raise SourceError(
                    f"{self._api.where} cannot change rates in flight (status {refused.status}): "
                    "use phases with loads of 0 and 100 % only"
                ) from None
            raise
        self._applied = level

    async def _transmit(self, state: str) -> None:
        names: Sequence[Tree] = self._config.flows or ()
        order: dict[str, Tree] = {"state": state}
        if names:
            order["flow_names"] = list(names)
        traffic: Tree = {"choice": "flow_transmit", "flow_transmit": order}
        await self._api.call("POST", "/control/state", {"choice": "traffic", "traffic": traffic})


async def start(config: Config, site: SourceContext, stack: AsyncExitStack) -> OtgLoad | DrivenOtg:
    """Request the version. Raises SourceError if nothing answers, PlanError for contradictory keys."""
    limit_s = timing(0, site.interval_s, config.timeout).timeout_s
    api = await otg_api(config, site.target, limit_s, stack)
    load = OtgLoad(config, api)
    await load.greet()
    if not config.drive:
        return load
    driven = DrivenOtg(config, api, load)
    stack.push_async_callback(driven.rest)
    return driven
