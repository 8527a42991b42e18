"""Campaigns of short runs on this machine, with locks of their own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.commands import Command
from tests.in_process import command_here

PLAN = """\
name: tiny
phases: [{baseline: 500ms}, {soak: 700ms}]
targets:
  dut: {role: dut, sources: [{local: {interval: 300ms, probes: [cpu, memory, process]}}]}
rules: {coverage: {required: true}}
"""
Here = Command
Write = Callable[..., Path]
Entries = Callable[[Path], list[dict[str, object]]]


@pytest.fixture(autouse=True)
def _own_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests' campaigns hold this machine too."""
    runtime = tmp_path / "run-user"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a campaign, and a plan beside it."""

    def to_files(text: str, plan: str = PLAN, name: str = "campaign.yaml") -> Path:
        (tmp_path / "plan.yaml").write_text(plan, encoding="utf-8")
        file = tmp_path / name
        file.write_text(text, encoding="utf-8")
        return file

    return to_files


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    """Runs a command line in this process, in an empty folder, where relative paths of the test begin too."""
    monkeypatch.chdir(tmp_path)
    return command_here(tmp_path)


@pytest.fixture
def soakwatch(tmp_path: Path) -> Command:
    """Runs a command in an empty folder, in this process; the runs of a campaign are processes of their own."""
    return command_here(tmp_path)


@pytest.fixture
def ledger_of() -> Entries:
    """The lines of a campaign's ledger."""

    def read(folder: Path) -> list[dict[str, object]]:
        return [json.loads(line) for line in (folder / "ledger.jsonl").read_text(encoding="utf-8").splitlines()]

    return read
