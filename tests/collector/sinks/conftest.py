"""A real InfluxDB for the sinks: one for all tests of a module that only write, one of its own for those that kill."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from soakwatch.sinks.influxdb import Influxdb
from soakwatch.testing.influxd import BUCKET, ORG, Influxd, start_influxd


@pytest.fixture(scope="module")
def influxd(influxd_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Influxd]:
    """A server that stays up."""
    with ExitStack() as stack:
        yield start_influxd(influxd_program, tmp_path_factory.mktemp("influxd"), stack)


@pytest.fixture
def own_influxd(influxd_program: Path, tmp_path: Path) -> Iterator[Influxd]:
    """A server of this test, to be killed."""
    with ExitStack() as stack:
        yield start_influxd(influxd_program, tmp_path / "influxd", stack)


@pytest.fixture
def bucket_of(influxd: Influxd, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Influxdb]:
    """A new bucket of the server that stays up, as a sink's address."""

    def address(name: str) -> Influxdb:
        monkeypatch.setenv("SINK_TOKEN", influxd.token)
        influxd.make_bucket(name)
        return Influxdb(influxd.url, ORG, name, "env:SINK_TOKEN")

    return address


@pytest.fixture
def address(own_influxd: Influxd, monkeypatch: pytest.MonkeyPatch) -> Influxdb:
    """The own server as a sink's address."""
    monkeypatch.setenv("SINK_TOKEN", own_influxd.token)
    return Influxdb(own_influxd.url, ORG, BUCKET, "env:SINK_TOKEN", timeout_s=5)
