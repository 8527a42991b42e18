"""InfluxDB 2, or what takes its write API: InfluxDB 1.8, VictoriaMetrics.

In a plan: ``sinks: [{influxdb: {url: http://127.0.0.1:8086, org: lab, bucket: soak, token: env:INFLUX_TOKEN}}]``.
``write.py`` writes lines; ``read/`` reads back runs and series that others collected.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field

from soakwatch.core.secrets import SecretRef
from soakwatch.plan.parts import Duration, Text
from soakwatch.plan.sink_plan import SinkConfig
from soakwatch.transfer.sinks.abc import RefusedLine
from soakwatch.transfer.sinks.replay import REPLAY_S

if TYPE_CHECKING:
    from soakwatch.transfer.sinks.influxdb.write import Writer

GRAINS_NS = {"ns": 1, "us": 1_000, "ms": 1_000_000}
"""The plan's precisions of sample times."""

_URL = re.compile(r"https?://[^\s/?#]+(/[^\s?#]*)?")


def _url(value: str) -> str:
    if _URL.fullmatch(value) is None:
        raise ValueError("is not an address of InfluxDB: write http://HOST:8086 or https://HOST and nothing else")
    return value.rstrip("/")


class Config(SinkConfig):
    """The keys in a plan."""

    url: Annotated[Text, AfterValidator(_url), Field(description="address", examples=["http://127.0.0.1:8086"])]
    org: Annotated[Text, Field(description="organisation")]
    bucket: Annotated[Text, Field(description="bucket that exists")]
    token: Annotated[SecretRef, Field(description="token that may write there")]
    timeout: Annotated[Duration, Field(ge=1, le=600, description="longest answer")] = 30.0
    ca: Annotated[Text | None, Field(description="CA bundle (PEM) for https")] = None
    replay: Annotated[Duration, Field(ge=0, le=600, description="sent again after the connection broke")] = REPLAY_S
    precision: Annotated[
        Literal["ns", "us", "ms"],
        Field(description="of a sample's time; ms takes a third of the disk, but cuts the record's times"),
    ] = "ns"


@dataclass(frozen=True, slots=True)
class Influxdb:
    """Where to write. ``token`` is a reference (``env:NAME``, ``file:PATH``), ``ca`` a certificate file; ``replay_s``
    seconds before a broken connection are sent again; sample times are rounded down to ``grain_ns``."""

    url: str
    org: str
    bucket: str
    token: str
    timeout_s: float = 30.0
    ca: str | None = None
    replay_s: float = REPLAY_S
    grain_ns: int = 1

    @property
    def where(self) -> str:
        """Address, organisation and bucket."""
        return f"{self.url} {self.org}/{self.bucket}"

    @property
    def secrets(self) -> tuple[str, ...]:
        """The reference of the token."""
        return (self.token,)

    def open(self, refuse: Callable[[RefusedLine], None], timeout_s: float | None = None) -> Writer:
        """A writer to the bucket. Raises PlanError if the token cannot be read."""
        from soakwatch.transfer.sinks.influxdb.write import Writer

        return Writer(self if timeout_s is None else replace(self, timeout_s=min(self.timeout_s, timeout_s)), refuse)


def destination(config: Config) -> Influxdb:
    """Where a plan's sink writes."""
    grain_ns = GRAINS_NS[config.precision]
    return Influxdb(
        config.url, config.org, config.bucket, config.token, config.timeout, config.ca, config.replay, grain_ns
    )
