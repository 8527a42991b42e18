"""OpenTelemetry: a Collector, or what else takes OTLP over HTTP (Prometheus 3, Grafana Alloy, Mimir).

In a plan: ``sinks: [{otlp: {url: http://127.0.0.1:4318}}]``; ``/v1/metrics`` is appended. Gauges are gauges, counters
monotonic cumulative sums with a start time. Run, target, role and the labels of the run are attributes of the resource;
the labels of the object and the phase are attributes of the point. Polls, findings and the verdict are gauges
(``soakwatch.poll.ok``, ``soakwatch.finding.rank``, ``soakwatch.verdict.rank``: 3 fail, 2 warn, 1 inconclusive, 0 pass).
A Prometheus needs ``--web.enable-otlp-receiver`` (2.47 to 2.55: ``--enable-feature=otlp-write-receiver``; Debian's is
built without it), the URL ``http://HOST:9090/api/v1/otlp``, and ``out_of_order_time_window`` for what is sent again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from soakwatch.core.secrets import SecretRef
from soakwatch.plan.parts import Duration, Text
from soakwatch.plan.sink_plan import SinkConfig
from soakwatch.sources.transport.http_client import LOOPBACK
from soakwatch.transfer.sinks.abc import RefusedLine

if TYPE_CHECKING:
    from soakwatch_otlp.write import Writer

PATH = "/v1/metrics"
REPLAY_S = 30.0
_URL = re.compile(r"https?://[^\s/?#@]+(/[^\s?#]*)?")


def _url(value: str) -> str:
    if _URL.fullmatch(value) is None:
        raise ValueError("is not an address of an OTLP receiver: write http://HOST:4318 or https://HOST, no more")
    bare = value.rstrip("/")
    return bare if bare.endswith(PATH) else bare + PATH


class Config(SinkConfig):
    """The keys in a plan."""

    url: Annotated[
        Text,
        AfterValidator(_url),
        Field(description="address, without /v1/metrics", examples=["http://127.0.0.1:4318"]),
    ]
    token: Annotated[SecretRef | None, Field(description="bearer token")] = None
    headers: Annotated[
        dict[str, SecretRef],
        Field(default_factory=dict, description="headers with secret values, such as {X-Scope-OrgID: env:TENANT}"),
    ]
    resource: Annotated[
        dict[str, str],
        Field(
            default_factory=dict,
            description="more attributes of the resource, such as {deployment.environment: lab}",
        ),
    ]
    timeout: Annotated[Duration, Field(ge=1, le=600, description="longest answer")] = 30.0
    ca: Annotated[Text | None, Field(description="CA bundle (PEM) for https")] = None
    compression: Annotated[Literal["gzip", "none"], Field(description="of requests")] = "gzip"
    replay: Annotated[Duration, Field(ge=0, le=600, description="sent again after the connection broke")] = REPLAY_S

    @model_validator(mode="after")
    def _kept_secret(self) -> Self:
        parts = urlsplit(self.url)
        if (self.token or self.headers) and parts.scheme == "http" and parts.hostname not in LOOPBACK:
            raise ValueError("a secret would cross the network in the clear: use https in url")
        return self


@dataclass(frozen=True, slots=True)
class Otlp:
    """Where to write. ``token`` and the values of ``headers`` are references (``env:NAME``, ``file:PATH``), ``ca`` a
    certificate file."""

    url: str
    token: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    resource: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = 30.0
    ca: str | None = None
    gzip: bool = True
    replay_s: float = REPLAY_S

    @property
    def where(self) -> str:
        """The address."""
        return self.url.removesuffix(PATH)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The references of token and headers."""
        return (*((self.token,) if self.token else ()), *self.headers.values())

    @property
    def grain_ns(self) -> int:
        """Times are kept."""
        return 1

    def open(self, refuse: Callable[[RefusedLine], None], timeout_s: float | None = None) -> Writer:
        """A writer. Raises PlanError if a secret cannot be read."""
        from soakwatch_otlp.write import Writer

        return Writer(self if timeout_s is None else replace(self, timeout_s=min(self.timeout_s, timeout_s)), refuse)


def destination(config: Config) -> Otlp:
    """Where a plan's sink writes."""
    return Otlp(
        config.url,
        config.token,
        config.headers,
        config.resource,
        config.timeout,
        config.ca,
        config.compression == "gzip",
        config.replay,
    )
