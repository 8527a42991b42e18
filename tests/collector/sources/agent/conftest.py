"""Real agents on this machine, and a real sshd."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.needs import needs

from soakwatch.sources.pollers.agent.certificate import CertificateFiles, write_certificate
from soakwatch_testing.agents import LocalAgent
from soakwatch_testing.sshd import SSHD, Sshd, run_sshd


@pytest.fixture
def make_agent(tmp_path: Path) -> Iterator[Callable[..., LocalAgent]]:
    """Starts agents; each has a folder of its own."""
    agents: list[LocalAgent] = []

    def make(*arguments: str) -> LocalAgent:
        agent = LocalAgent(tmp_path / f"agent{len(agents)}", arguments)
        agents.append(agent)
        agent.start()
        return agent

    yield make
    for agent in agents:
        agent.kill()


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[Sshd]:
    """A server that runs until the test ends."""
    needs(SSHD, "ssh-keygen")
    with run_sshd(tmp_path / "sshd") as server:
        yield server


@pytest.fixture
def papers(tmp_path: Path) -> CertificateFiles:
    """Certificate, key and token."""
    return write_certificate(tmp_path / "papers", "localhost")
