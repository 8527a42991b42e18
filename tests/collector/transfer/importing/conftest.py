"""A real InfluxDB for reading back: one for all tests of a module, with a bucket for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from soakwatch_testing.influxd import Influxd, start_influxd

Address = Callable[..., str]


@pytest.fixture(scope="module")
def influxd(influxd_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Influxd]:
    """A server that stays up."""
    with ExitStack() as stack:
        yield start_influxd(influxd_program, tmp_path_factory.mktemp("influxd"), stack)


@pytest.fixture
def address_of(influxd: Influxd, monkeypatch: pytest.MonkeyPatch) -> Address:
    """The address of a bucket that is made if it is new, with keys behind it."""

    def address(bucket: str, **keys: str) -> str:
        monkeypatch.setenv("READ_TOKEN", influxd.token)
        if bucket not in [row["name"] for row in influxd.influxql("SHOW DATABASES")]:
            influxd.make_bucket(bucket)
        query = "&".join(f"{name}={value}" for name, value in {"token": "env:READ_TOKEN", **keys}.items())
        return f"influxdb://127.0.0.1:{influxd.port}/{bucket}?{query}"

    return address
