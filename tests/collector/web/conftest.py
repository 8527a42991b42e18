"""Commands beside the pages, run in this process; and a run that is only asked, and not changed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.collector.conftest import record_run
from tests.commands import Command
from tests.in_process import command_here

from soakwatch.plan.web import WebPlan
from soakwatch_testing.served import ServedRun, serve_run


@pytest.fixture
def soakwatch(tmp_path: Path) -> Command:
    """Run a command in an empty folder and return what it printed."""
    return command_here(tmp_path)


@pytest.fixture(scope="session")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedRun]:
    """A server of a run for questions that change nothing: it is there once."""
    folder = record_run(tmp_path_factory.mktemp("standing") / "run")
    with serve_run(WebPlan(listen="127.0.0.1:0"), folder, time.time_ns) as server:
        yield server


@pytest.fixture(scope="session")
def asking(standing: ServedRun) -> Iterator[httpx.Client]:
    """Someone who has its token."""
    assert standing.token_file is not None
    headers = {"authorization": f"Bearer {standing.token_file.read_text(encoding='ascii').strip()}"}
    with httpx.Client(
        base_url=f"{standing.url}/api", headers=headers, trust_env=False, verify=False, timeout=240
    ) as connection:
        yield connection
