"""An exporter's page (Prometheus text or OpenMetrics), or what a Prometheus scraped, mapped to the catalogue.

node_exporter, process_exporter, nginx and others are mapped by ``maps/``; ``metrics`` maps what they leave out, and
``keep`` keeps names as they are (``exporter.gauge``, ``exporter.counter``). Counters stay raw: a restart shows.
Example: ``prometheus: {url: "http://198.18.0.1:9100/metrics", interval: 5s, keep: ["vpp_*"]}``.

With ``query`` the URL is that of a Prometheus (Thanos, Mimir, VictoriaMetrics), so its exporters need no second poller:
``prometheus: {url: "http://prom:9090", query: '{instance="fw1:9100"}', step: 15s}``. A selector gives each sample once,
with the time it was scraped; an expression (``query: [{name: fw_rate, expr: "sum(rate(x_total[1m]))"}]``) its value at
each step. A step without a scrape is a gap, and never the value before.

The exporter of a traffic generator is a load, under a target with ``role: generator`` and with mappings of its own:
``metrics: [{from: gen_tx_packets_total, metric: load.tx.packets, total: true}, {from: gen_latency_us, where:
{quantile: "0.99"}, metric: load.latency, labels: {quantile: p99}, scale: 1e-6}]``. ``total`` adds up its ports.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from soakwatch.core.errors import PlanError
from soakwatch.core.suggest import hint
from soakwatch.core.units import Seconds
from soakwatch.core.validation import Several, Short
from soakwatch.sources.abc import Facts, LoginRefusedError, SourceContext, SourceError, timing
from soakwatch.sources.pollers.prometheus.exposition_page import ACCEPT, read_page
from soakwatch.sources.pollers.prometheus.map_file import MapEntry, installed_maps
from soakwatch.sources.pollers.prometheus.query_api import Query, QueryApi
from soakwatch.sources.pollers.prometheus.sample_mapping import Mapped, Mapper
from soakwatch.sources.pollers.prometheus.series_poller import Cadence, SeriesPoller
from soakwatch.sources.transport.http import WebAccess, WebConfig, shown, web_access
from soakwatch_model.sample import Answer

_SHOWN_NAMES = 8


class QueryConfig(BaseModel):
    """A query of a Prometheus."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    expr: Annotated[str, Field(min_length=1, max_length=4000, description="selector or expression of PromQL")]
    name: Annotated[
        str,
        Field(default="", description="name of an expression's values, for from: of metrics and for keep"),
    ]

    @model_validator(mode="after")
    def _named(self) -> Self:
        if not self.name and not Query(self.expr).raw:
            raise ValueError(
                f"the values of an expression have no name: write {{name: NAME, expr: {self.expr!r}}}, and NAME in "
                "from: of metrics, or in keep"
            )
        return self


class Config(WebConfig):
    """Keys of the source ``prometheus``."""

    asks_management = True
    resting = "silent"

    query: Annotated[
        Several[Annotated[QueryConfig, Short("expr")]],
        Field(
            default_factory=list,
            description="PromQL to ask the Prometheus at url for, such as '{instance=\"fw1:9100\"}'; without it url is"
            " that of an exporter's page",
        ),
    ]
    step: Annotated[
        Seconds | None,
        Field(
            default=None,
            ge=0.2,
            le=86400,
            description="with query: time between values there (its scrape interval); default: interval, and the other"
            " way round",
        ),
    ]
    delay: Annotated[
        Seconds,
        Field(default=2.0, ge=0, le=600, description="with query: an expression is evaluated so long after its step"),
    ]
    maps: Annotated[list[str] | None, Field(default=None, description="only these maps; default: all that fit")]
    metrics: Annotated[list[MapEntry], Field(default_factory=list, description="own mappings, before the others")]
    keep: Annotated[list[str], Field(default_factory=list, description="names or globs kept without a mapping")]

    @model_validator(mode="before")
    @classmethod
    def _one_pace(cls, data: object) -> object:
        if isinstance(data, Mapping) and data.get("query") and "step" in data and "interval" not in data:
            return {**data, "interval": data["step"]}
        return data

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if not self.query and (self.step is not None or "delay" in self.model_fields_set):
            raise ValueError("step and delay are of query: a page is asked at each interval")
        if self.query and not {"step", "interval"} & self.model_fields_set:
            raise ValueError("step is missing: write how often that Prometheus scrapes, such as step: 15s")
        return self

    def require_known(self) -> None:
        """Raises PlanError for an unknown map."""
        installed = installed_maps()
        for name in self.maps or ():
            if name not in installed:
                raise PlanError(f"unknown map {name!r}{hint(name, installed)}")

    @property
    def asks_device(self) -> bool:
        """A page is the device's; a Prometheus has polled it before."""
        return not self.query

    @property
    def step_s(self) -> float:
        """Seconds between values."""
        return self.interval if self.step is None else self.step


class PrometheusPoller:
    """One page, asked at each poll over a connection that is kept."""

    def __init__(self, config: Config, access: WebAccess, mapper: Mapper) -> None:
        self._config, self._access, self._mapper = config, access, mapper
        self._last: Mapped | None = None

    async def poll(self, now_ns: int) -> Answer:
        """One scrape. Raises SourceError for a missing page or one that is not a metrics page."""
        page = await self._access.get(ACCEPT)
        if page.status != 200:
            hints = {401: ": give token, or user and password", 403: ": the secret is not accepted"}
            refused = page.status == 401 and self._config.user is not None  # a token locks no account
            raise (LoginRefusedError if refused else SourceError)(
                f"{shown(self._config.url)} answers with status {page.status}{hints.get(page.status, '')}"
            )
        # A page of megabytes takes a second to read: the other sources must not wait for it.
        read = await asyncio.to_thread(read_page, page.text, page.headers.get("content-type", ""))
        mapped = self._mapper.map(read, now_ns)
        self._last = mapped
        return Answer(mapped.samples, (), mapped.faults)

    def facts(self) -> Facts:
        """How much of the page is mapped."""
        notes = []
        if self._last is not None and self._last.unused:
            names = sorted(self._last.unused)
            some = ", ".join(names[:_SHOWN_NAMES]) + (" …" if len(names) > _SHOWN_NAMES else "")
            notes.append(f"{len(names)} names of the page are not sampled ({some}): add them, or globs, to keep")
        used = len(self._last.used) if self._last else 0
        return Facts({"page": shown(self._config.url), "mapped names": str(used)}, (), tuple(notes))


def chosen_entries(config: Config) -> list[MapEntry]:
    """The mappings of a source, its own first. Raises PlanError for an unknown map."""
    config.require_known()
    installed = installed_maps()
    chosen = [installed[name] for name in (installed if config.maps is None else config.maps)]
    return [*config.metrics, *(entry for each in chosen for entry in each.metrics)]


async def start(config: Config, site: SourceContext, stack: AsyncExitStack) -> PrometheusPoller | SeriesPoller:
    """Opens the client. Raises PlanError for an unknown map, SourceError for a pinned server that is another, and for a
    Prometheus that does not answer as one."""
    entries = chosen_entries(config)
    access = await web_access(config, site.target, timing(0, site.interval_s, config.timeout).timeout_s, stack)
    if not config.query:
        return PrometheusPoller(config, access, Mapper(entries, config.keep))
    poller = SeriesPoller(
        config.url,
        [Query(each.expr, each.name) for each in config.query],
        QueryApi(access, config.url),
        lambda: Mapper(entries, config.keep),
        Cadence(config.step_s, site.interval_s, config.delay),
        site.now_ns,
        site.unpolled_ns,
    )
    await poller.prepare()
    return poller
