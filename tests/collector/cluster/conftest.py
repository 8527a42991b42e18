"""A scheduler and two workers, and records to be judged on them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from soakwatch.testing.dask_servers import DaskServers

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def _jobs_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes import the jobs of tests by name."""
    monkeypatch.syspath_prepend(str(ROOT))


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskServers]:
    """A scheduler with the workers one (testbed a) and two (testbed b)."""
    with DaskServers(tmp_path_factory.mktemp("lab"), environment={"PYTHONPATH": str(ROOT)}) as servers:
        servers.add_worker("one", "a")
        servers.add_worker("two", "b")
        yield servers
