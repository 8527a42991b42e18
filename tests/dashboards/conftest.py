"""A database to ask, with runs in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from soakwatch_testing.influxd import Influxd, run_influxd


@pytest.fixture(scope="module")
def influx(influxd_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Influxd]:
    """A server with the runs of ``filling`` in it."""
    from tests.dashboards.filling import fill

    folder = tmp_path_factory.mktemp("influx")
    with run_influxd(influxd_program, folder / "server") as server:
        fill(server, folder)
        yield server
