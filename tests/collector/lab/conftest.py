"""A lab of a test: a folder of plans, a clock that the test sets, and runs that end when the test says so."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.commands import wait_until

from soakwatch.lab.dispatcher import Dispatcher
from soakwatch.lab.job_files import STOP, is_alive, job_folder
from soakwatch.lab.lab import Lab
from soakwatch.lab.lab_model import AuditEntry, Job, JobState, Order, User
from soakwatch.lab.plans_folder import Planned, PlansFolder
from soakwatch.runs.mark_event import moment

ANNA, BERT = User("anna", "operator"), User("bert", "admin")
NOON = moment("2026-11-29T12:00:00Z")
PLAN = """\
name: {name}
duration: 1h
{more}targets:
  dut: {{role: dut, sources: [{{snmp: {{host: {host}, community: "env:COMMUNITY"}}}}]}}
"""
FAKE = """\
import pathlib, signal, sys, time
folder = pathlib.Path(sys.argv[1])
asked = []
signal.signal(signal.SIGINT, lambda *_: asked.append(1))
(folder / "runs").touch()
while not (folder / "code").exists() and not asked:
    time.sleep(0.02)
print("the end", flush=True)
sys.exit(int((folder / "code").read_text()) if not asked else 3)
"""
"""Stands for ``soakwatch run``: goes on until the file ``code`` says how it ends, or it is interrupted."""
LabOf = Callable[[], "Work"]


def end_with(folder: Path, code: int) -> None:
    """Let the process of a job end, which never sees half of the file."""
    new = folder / "code.new"
    new.write_text(str(code))
    new.replace(folder / "code")


def plan_text(host: str, name: str = "night", more: str = "") -> str:
    """A plan of a device."""
    return PLAN.format(host=host, name=name, more=more)


@dataclass
class Work:
    """A server's part of the lab, which the test moves step by step."""

    lab: Lab
    clock: list[int]
    at_once: int = 4
    dispatcher: Dispatcher = field(init=False)

    def __post_init__(self) -> None:
        self.dispatcher = Dispatcher(self.lab, self.at_once, command=self._command)

    def _command(self, job: Job, _planned: Planned, _place: Path, runs: Path) -> tuple[str, ...]:
        return (sys.executable, "-c", FAKE, str(job_folder(runs, job.id)))

    def submit(self, plan: str, user: User = ANNA, **labels: str) -> int:
        """The number of a job."""
        return self.lab.submit(Order(plan, labels), user).id

    def step(self, *running: int) -> None:
        """Do what there is to do, until exactly these jobs run, each with its process at work."""
        self.dispatcher.step()
        assert self.ids(JobState.RUNNING) == list(running)
        for number in running:
            wait_until((job_folder(self.lab.runs, number) / "runs").exists, f"the process of job {number}")

    def ends(self, number: int, code: int) -> Job:
        """Let a job end with an exit code."""
        folder = job_folder(self.lab.runs, number)
        end_with(folder, code)
        wait_until(lambda: not is_alive(folder), f"the end of job {number}")
        self.dispatcher.step()
        return self.lab.job(number)

    def ids(self, state: JobState) -> list[int]:
        """The jobs in a state."""
        return [job.id for job in self.lab.store.jobs(state)]

    def audit(self) -> list[tuple[str, str, int | None]]:
        """Who did what to which job, oldest first."""
        return [(entry.user.name, entry.action, entry.job) for entry in self.all_audit()]

    def all_audit(self) -> list[AuditEntry]:
        """Every entry, oldest first."""
        return self.lab.store.audit(1000)[::-1]


@pytest.fixture
def plans(tmp_path: Path) -> Path:
    """A folder with plans of three devices, one of them on a testbed with a name."""
    folder = tmp_path / "plans"
    folder.mkdir()
    (folder / "a.yaml").write_text(plan_text("192.0.2.1"))
    (folder / "b.yaml").write_text(plan_text("192.0.2.2"))
    (folder / "rack.yaml").write_text(plan_text("192.0.2.3", more="labels: {testbed: rack-3}\n"))
    return folder


@pytest.fixture
def server(tmp_path: Path, plans: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LabOf]:
    """Starts the server's part; started again, the one before is as if it were killed: nothing tells its processes."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    clock = [NOON]
    started: list[Work] = []

    def start() -> Work:
        for before in started:
            before.lab.close()
        started.append(Work(Lab(tmp_path / "runs", PlansFolder(plans), lambda: clock[0]), clock))
        return started[-1]

    yield start
    started[-1].lab.close()
    for folder in (tmp_path / "runs" / ".lab" / "jobs").glob("*"):
        (folder / STOP).touch()
        end_with(folder, 3)
        wait_until(lambda folder=folder: not is_alive(folder), "the end of all jobs")  # type: ignore[misc]
    for child in (child for work in started for child in work.dispatcher._children):
        child.wait()
