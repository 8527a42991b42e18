"""An exporter's page (Prometheus text or OpenMetrics), mapped to the catalogue.

node_exporter, process_exporter, nginx and others are mapped by ``maps/``; ``metrics`` maps what they leave out, and
``keep`` keeps names as they are (``exporter.gauge``, ``exporter.counter``). Counters stay raw: a restart shows.
Example: ``prometheus: {url: "http://198.18.0.1:9100/metrics", interval: 5s, keep: ["vpp_*"]}``.

The exporter of a traffic generator is a load, under a target with ``role: generator`` and with mappings of its own:
``metrics: [{from: gen_tx_packets_total, metric: load.tx.packets, total: true}, {from: gen_latency_us, where:
{quantile: "0.99"}, metric: load.latency, labels: {quantile: p99}, scale: 1e-6}]``. ``total`` adds up its ports.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Annotated

from pydantic import Field

from soakwatch.core.errors import PlanError
from soakwatch.core.suggest import hint
from soakwatch.sources.abc import Facts, LoginRefusedError, SourceContext, SourceError, timing
from soakwatch.sources.pollers.prometheus.exposition_page import ACCEPT, read_page
from soakwatch.sources.pollers.prometheus.map_file import MapEntry, installed_maps
from soakwatch.sources.pollers.prometheus.sample_mapping import Mapped, Mapper
from soakwatch.sources.transport.http import WebAccess, WebConfig, shown, web_access
from soakwatch_model.sample import Answer

_SHOWN_NAMES = 8


class Config(WebConfig):
    """Keys of the source ``prometheus``."""

    asks_management = True
    resting = "silent"

    maps: Annotated[list[str] | None, Field(default=None, description="only these maps; default: all that fit")]
    metrics: Annotated[list[MapEntry], Field(default_factory=list, description="own mappings, before the others")]
    keep: Annotated[list[str], Field(default_factory=list, description="names or globs kept without a mapping")]


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


async def start(config: Config, site: SourceContext, stack: AsyncExitStack) -> PrometheusPoller:
    """Opens the client. Raises PlanError for an unknown map, SourceError for a pinned server that is another."""
    installed = installed_maps()
    for name in config.maps or ():
        if name not in installed:
            raise PlanError(f"{site.target}: unknown map {name!r}{hint(name, installed)}")
    chosen = [installed[name] for name in (installed if config.maps is None else config.maps)]
    entries = [*config.metrics, *(entry for each in chosen for entry in each.metrics)]
    access = await web_access(config, site.target, timing(0, site.interval_s, config.timeout).timeout_s, stack)
    return PrometheusPoller(config, access, Mapper(entries, config.keep))
