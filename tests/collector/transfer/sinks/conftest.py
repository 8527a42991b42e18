"""A real InfluxDB for the sinks: one for all tests that only write, another for those that kill it or spoil it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from tests.commands import Command
from tests.in_process import command_here

from soakwatch.transfer.sinks.influxdb import Influxdb
from soakwatch_testing.influxd import BUCKET, ORG, Influxd, start_influxd


@pytest.fixture
def soakwatch(tmp_path: Path) -> Command:
    """Runs a command in an empty folder, in this process."""
    return command_here(tmp_path)


@pytest.fixture(scope="session")
def influxd(influxd_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Influxd]:
    """A server that stays up; each test has buckets of its own."""
    with ExitStack() as stack:
        yield start_influxd(influxd_program, tmp_path_factory.mktemp("influxd"), stack)


@pytest.fixture(scope="session")
def _killed_influxd(influxd_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Influxd]:
    """A server that one test after the other kills."""
    with ExitStack() as stack:
        yield start_influxd(influxd_program, tmp_path_factory.mktemp("killed"), stack)


@pytest.fixture
def own_influxd(_killed_influxd: Influxd) -> Influxd:
    """A server to be killed: it is up, and its bucket is empty, whatever became of it before."""
    server = _killed_influxd
    if server.process is None:
        server.start()
    with suppress(IndexError, KeyError):  # there is none
        server.delete_bucket(BUCKET)
    server.make_bucket(BUCKET)
    return server


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
