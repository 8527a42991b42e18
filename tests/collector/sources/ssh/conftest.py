"""Real SSH servers for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.needs import needs

from soakwatch_testing.sshd import SSHD, Sshd, run_sshd

Make = Callable[..., Sshd]


@pytest.fixture
def make_sshd(tmp_path: Path) -> Iterator[Make]:
    """Starts servers, each with a folder, keys and options of its own."""
    needs(SSHD, "ssh-keygen")
    with ExitStack() as stack:
        servers: list[Sshd] = []

        def make(**options: str) -> Sshd:
            servers.append(stack.enter_context(run_sshd(tmp_path / f"sshd{len(servers)}", **options)))
            return servers[-1]

        yield make


@pytest.fixture
def sshd(make_sshd: Make) -> Sshd:
    """One server with nothing special."""
    return make_sshd()
