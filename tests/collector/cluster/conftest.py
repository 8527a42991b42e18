"""A scheduler and two workers, and records to be judged on them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.commands import Command
from tests.in_process import command_here

from soakwatch.judge.record_verdict import judge_record
from soakwatch.record import Record, RecordView
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample
from soakwatch_testing.dask_servers import DaskServers
from soakwatch_testing.records import T0

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def _jobs_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes import the jobs of tests by name."""
    monkeypatch.syspath_prepend(str(ROOT))


@pytest.fixture
def soakwatch(tmp_path: Path) -> Command:
    """Runs a command in an empty folder, in this process."""
    return command_here(tmp_path)


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskServers]:
    """A scheduler with the workers one (testbed a) and two (testbed b)."""
    with DaskServers(tmp_path_factory.mktemp("lab"), environment={"PYTHONPATH": str(ROOT)}) as servers:
        servers.add_worker("one", "a")
        servers.add_worker("two", "b")
        yield servers


PLAN = """name: soak
duration: 2h
phases: [{soak: 2h}]
targets: {dut: {role: dut, sources: [{local: {interval: 60s}}]}}
rules: {growth: false}
"""
TOLERANT = PLAN.replace("growth: false", "growth: false, memory_growth: {tolerance: 20%}")
STRICT = PLAN.replace("growth: false", "growth: false, memory_growth: {tolerance: 1%, width: 0.1}")
MINUTE, MINUTES = 60 * 10**9, 120


def judged_run(folder: Path, growth: float, plan: str = PLAN) -> Path:
    """A run of two hours that was judged: the memory of a process grew by this share."""
    rng = np.random.default_rng(7)
    with Record.create(folder) as record:
        for key, text in {"run": folder.name, "plan": plan, "start_ns": str(T0)}.items():
            record.set_meta(key, text)
        record.target("dut", "dut")
        source = record.source("dut", "local", "local", MINUTE, required=True)
        record.begin_phase("soak", T0)
        polls = []
        for minute in range(MINUTES + 1):
            due = T0 + minute * MINUTE
            bytes_used = 1e8 * (1 + growth * minute / MINUTES) + rng.normal(0, 2e5)
            sample = Sample("process.memory.usage", "process=nginx,instance=0", float(round(bytes_used)), due)
            polls.append(Poll(source.id, due, due, 1, PollOutcome.OK, None, Answer((sample,), (), ())))
        record.put(polls)
        record.end_phase(T0 + MINUTES * MINUTE)
        record.set_meta("ended_ns", str(T0 + MINUTES * MINUTE))
        with RecordView.open(folder) as view:
            verdict = judge_record(view, ended=True)
        record.put_findings(verdict.findings, live=False, judged_ns=T0 + MINUTES * MINUTE)
        record.set_meta("verdict", verdict.outcome.value)
        record.set_meta("reason", verdict.reason)
        record.finish()
    return folder


GROWTH = {"well": 0.0, "little": 0.03, "much": 0.12, "most": 0.4}


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of four runs: two passed, two failed for the growth of a process."""
    folder = tmp_path_factory.mktemp("archive") / "runs"
    for name, growth in GROWTH.items():
        judged_run(folder / name, growth)
    return folder


@pytest.fixture
def runs(archive: Path, tmp_path: Path) -> Path:
    """A copy of them, and the plans that judge more and less strictly."""
    (tmp_path / "tolerant.yaml").write_text(TOLERANT)
    (tmp_path / "strict.yaml").write_text(STRICT)
    return Path(shutil.copytree(archive, tmp_path / "runs"))
