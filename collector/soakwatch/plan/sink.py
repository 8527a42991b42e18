"""Where a run's samples are also written while it goes on, as a plan says it: ``sinks: [{influxdb: {…}}]``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from soakwatch.core.secrets import SecretRef
from soakwatch.plan.parts import Duration, Shape, Text

REPLAY_S = 30.0

GRAINS_NS = {"ns": 1, "us": 1_000, "ms": 1_000_000}
"""A plan's words for how exact a sample's time is written."""

_URL = re.compile(r"https?://[^\s/?#]+(/[^\s?#]*)?")


def _url(value: str) -> str:
    if _URL.fullmatch(value) is None:
        raise ValueError("is no address of InfluxDB: write http://HOST:8086 or https://HOST, and nothing behind it")
    return value.rstrip("/")


class InfluxdbShape(Shape):
    """InfluxDB 2, or what takes its write API: InfluxDB 1.8, VictoriaMetrics."""

    url: Annotated[Text, AfterValidator(_url), Field(description="address", examples=["http://127.0.0.1:8086"])]
    org: Annotated[Text, Field(description="organisation")]
    bucket: Annotated[Text, Field(description="bucket that exists")]
    token: Annotated[SecretRef, Field(description="token that may write there")]
    timeout: Annotated[Duration, Field(ge=1, le=600, description="longest answer")] = 30.0
    ca: Annotated[Text | None, Field(description="certificates (PEM) by which https is trusted")] = None
    replay: Annotated[Duration, Field(ge=0, le=600, description="sent again after the connection broke")] = 30.0
    precision: Annotated[
        Literal["ns", "us", "ms"],
        Field(description="of a sample's time; ms takes a third of the disk, but cuts the record's times"),
    ] = "ns"


class SinkShape(Shape):
    """One sink: its kind, and where it is."""

    influxdb: Annotated[InfluxdbShape, Field(description="InfluxDB 2, by line protocol")]


@dataclass(frozen=True, slots=True)
class Influxdb:
    """Where to write. ``token`` is a reference (``env:NAME``, ``file:PATH``); ``ca`` a file of certificates;
    ``replay_s`` how many seconds before a break of the connection are sent again after it; to ``grain_ns`` the times
    of samples are cut."""

    url: str
    org: str
    bucket: str
    token: str
    timeout_s: float = 30.0
    ca: str | None = None
    replay_s: float = REPLAY_S
    grain_ns: int = 1
