"""A real agent for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.collector.sources.snmp.snmpd import AUTH, PRIV, Snmpd


@pytest.fixture(scope="module")
def snmpd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snmpd]:
    """An agent that lives through the tests."""
    agent = Snmpd(tmp_path_factory.mktemp("snmpd"))
    agent.start()
    yield agent
    agent.kill()


@pytest.fixture
def fragile(tmp_path: Path) -> Iterator[Snmpd]:
    """An agent to kill and to start; it is not started yet."""
    agent = Snmpd(tmp_path / "snmpd")
    yield agent
    agent.kill()


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pass phrases, where a plan's references find them."""
    monkeypatch.setenv("SOAK_AUTH", AUTH)
    monkeypatch.setenv("SOAK_PRIV", PRIV)
    monkeypatch.setenv("SOAK_WRONG", "quite another phrase")
    monkeypatch.setenv("SOAK_SHORT", "short")
