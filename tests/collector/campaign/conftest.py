"""Campaigns of short runs on this machine, with locks of their own."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from soakwatch.cli.main import run

PLAN = """\
name: tiny
phases: [{baseline: 500ms}, {soak: 700ms}]
targets:
  dut: {role: dut, sources: [{local: {interval: 300ms}}]}
rules: {coverage: {required: true}}
"""
Here = Callable[..., "Said"]
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


@dataclass(frozen=True)
class Said:
    """What a command printed, and its exit code."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    """Runs a command line in this process, in an empty folder: much faster than a process for each."""
    monkeypatch.chdir(tmp_path)

    def call(*words: object) -> Said:
        capsys.readouterr()
        code = run([*map(str, words)])
        printed = capsys.readouterr()
        return Said(code, printed.out, printed.err)

    return call


@pytest.fixture
def ledger_of() -> Entries:
    """The lines of a campaign's ledger."""

    def read(folder: Path) -> list[dict[str, object]]:
        return [json.loads(line) for line in (folder / "ledger.jsonl").read_text(encoding="utf-8").splitlines()]

    return read
