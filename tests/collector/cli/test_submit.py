"""``submit``, ``queue`` and ``token`` as commands, at a server whose runs are processes that end as the test says."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.collector.lab.conftest import plan_text
from tests.commands import Command, wait_until
from tests.in_process import command_here

from soakwatch.lab.dispatcher import Dispatcher
from soakwatch.lab.job_files import is_alive, job_folder, log_tail
from soakwatch.lab.lab import Lab
from soakwatch.lab.lab_model import JobState
from soakwatch.lab.plans_folder import PlansFolder
from soakwatch.plan.web import WebPlan
from soakwatch.web.access import token_for, write_address
from soakwatch.web.named_tokens import NamedTokens
from soakwatch.web.run_folder import RunFolder
from soakwatch.web.server import serve

TALK = """\
import os, sys, time
print('said so', os.environ.get('SOAK_TOKEN', ''), flush=True)
time.sleep({s})
sys.exit({code})
"""


@pytest.fixture
def soakwatch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Commands beside the runs of a server of this test."""
    for name in ("SOAKWATCH_SERVER", "SOAKWATCH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr("soakwatch.cli.lab_jobs._ASK_EVERY_S", 0.05)
    return command_here(tmp_path)


@contextmanager
def lab_of(folder: Path, code: int = 0, seconds: float = 0.0, *, works: bool = True) -> Iterator[Lab]:
    """A served lab whose runs end with a code after some seconds."""
    plans, runs = folder / "plans", folder / "runs"
    plans.mkdir()
    runs.mkdir()
    (plans / "night.yaml").write_text(plan_text("192.0.2.1"))
    lab = Lab(runs, PlansFolder(plans))
    command = (sys.executable, "-c", TALK.format(s=seconds, code=code))
    dispatcher = Dispatcher(lab, hidden=["SOAK_TOKEN"], command=lambda *_: command)
    web = WebPlan(listen="127.0.0.1:0")
    with serve(web, token_for(web, runs), RunFolder(runs, (lab, dispatcher)), people=NamedTokens(runs)) as served:
        write_address(runs, served.url)
        if not works:
            yield lab
        else:
            with dispatcher.working():
                yield lab
                for job in lab.store.jobs(JobState.RUNNING):
                    lab.cancel(job.id, job.user)
    lab.close()


@pytest.mark.parametrize(
    ("code", "exit_code", "words"),
    [
        (0, 0, "job 1 pass"),
        (1, 1, "job 1 fail"),
        (3, 3, "job 1 inconclusive"),
        (2, 2, "job 1 refused: said so"),
        (4, 4, "job 1 broken off: its command ended with code 4"),
        (-9, 4, "job 1 broken off: its command ended with code"),
    ],
)
def test_the_exit_code_of_waiting_is_the_verdict(
    tmp_path: Path, soakwatch: Command, code: int, exit_code: int, words: str
) -> None:
    with lab_of(tmp_path, code):
        done = soakwatch("submit", "night.yaml", "--label", "release=7.2", "build=9", "--wait")
    assert done.returncode == exit_code, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("job 1: night.yaml on 192.0.2.1, ")
    assert next(line for line in lines if line.startswith(words))


def test_a_job_that_is_cancelled_while_it_waits_is_not_a_pass(tmp_path: Path, soakwatch: Command) -> None:
    with lab_of(tmp_path, works=False) as lab:
        assert soakwatch("submit", "night.yaml").returncode == 0
        cancelled = soakwatch("queue", "cancel", "1", "--reason", "not today")
        assert cancelled.stdout == "job 1 is cancelled\n"
        assert lab.job(1).exit_code == 3
        assert "is over already (cancelled)" in soakwatch("queue", "cancel", "1").stderr


def test_the_queue_is_listed_and_changed(tmp_path: Path, soakwatch: Command) -> None:
    """Jobs, schedules with when they come, and what is over; as a table and as JSON."""
    with lab_of(tmp_path, works=False):
        assert "nothing runs, waits or is scheduled" in soakwatch("queue", "list").stdout
        for _ in range(3):
            soakwatch("submit", "night.yaml")
        assert soakwatch("queue", "move", "3").stdout == "job 3 is at place 2 of the queue\n"
        assert soakwatch("queue", "move", "2", "top").stdout == "job 2 is at place 1 of the queue\n"
        soakwatch("queue", "cancel", "1")
        made = soakwatch("submit", "night.yaml", "--cron", "0 20 * * mon-fri", "--zone", "Europe/Vienna")
        assert made.stdout.startswith("schedule s1: night.yaml, next at ")
        assert soakwatch("queue", "disable", "s1").stdout == "schedule s1 of night.yaml is disabled\n"
        listed = soakwatch("queue", "list").stdout
        state = json.loads(soakwatch("queue", "list", "--json").stdout)
        assert soakwatch("queue", "enable", "s1").stdout.startswith("schedule s1 of night.yaml is enabled, next at ")
        assert soakwatch("queue", "remove", "s1").stdout == "schedule s1 of night.yaml is removed\n"
        for words, sentence in (
            (("cancel", "x"), "'x' is neither a job (17) nor a schedule (s3)"),
            (("move", "99"), "there is no job 99: soakwatch queue list shows them"),
            (("disable", "s9"), "there is no schedule s9"),
        ):
            assert sentence in soakwatch("queue", *words).stderr
    rows = [line.split() for line in listed.splitlines() if line]
    assert [row[:3] for row in rows if row[0] in "23"] == [["2", "place", "1"], ["3", "place", "2"]]
    assert "Europe/Vienna" in listed
    assert "disabled" in listed
    assert [job["id"] for job in state["recent"]] == [1]


def test_a_plan_at_a_time_is_waited_for(tmp_path: Path, soakwatch: Command) -> None:
    with lab_of(tmp_path, 1):
        done = soakwatch("submit", "night.yaml", "--at", "+0.2s", "--wait")
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.startswith("schedule s1: night.yaml, next at ")
    assert "job 1 fail" in done.stdout


def test_what_makes_no_sense_is_refused_with_the_remedy(tmp_path: Path, soakwatch: Command) -> None:
    with lab_of(tmp_path, works=False) as lab:
        for words, sentence in (
            (("night.yml",), "there is no plan 'night.yml' in the plans folder; did you mean 'night.yaml'?"),
            (("../night.yaml",), "write its path in the plans folder, such as fw/night.yaml"),
            (("night.yaml", "--set", "duratoin=2h"), "duratoin needs the role admin"),
            (("night.yaml", "--set", "duration=2 weeks"), "duration"),
            (("night.yaml", "--label", "Release=7"), "'Release' cannot name a label"),
            (("night.yaml", "--at", "tomorrow"), "--at: 'tomorrow' is not ISO 8601"),
            (("night.yaml", "--at", "2020-01-01T00:00:00Z"), "name a time to come"),
            (("night.yaml", "--at", "20:00", "--cron", "@daily"), "give one of them"),
            (("night.yaml", "--cron", "@daily", "--wait"), "leave one of them out"),
            (("night.yaml", "--zone", "UTC"), "--zone belongs to --cron"),
            (("night.yaml", "--server", "lab:8720"), "is not the address of a server: write http://HOST:PORT"),
            (
                ("night.yaml", "--server", "http://lab:8720"),
                "the token would cross the network in clear text: use https",
            ),
            (("night.yaml", "--token", "secret"), "write env:NAME or file:PATH"),
            (("night.yaml", "--server", "http://127.0.0.1:1"), "requires a token: export SOAKWATCH_TOKEN"),
        ):
            viewer = NamedTokens(lab.runs).add(f"v{abs(hash(words))}", "operator")
            (tmp_path / "token").write_text(viewer)
            own = () if "--token" in words or "--server" in words else ("--token", "file:token")
            done = soakwatch("submit", *words, *own)
            assert (done.returncode, sentence in done.stderr) == (2, True), done.stderr
        assert lab.store.jobs(JobState.QUEUED) == []
    gone = soakwatch("submit", "night.yaml", "--runs", "elsewhere")
    assert gone.stderr == (
        "soakwatch: no server serves elsewhere: start soakwatch serve elsewhere --plans DIR, or name one with"
        " --server URL\n"
    )


def test_a_server_is_named_by_its_address_and_a_token_of_a_person(tmp_path: Path, soakwatch: Command) -> None:
    """By options or by the environment; a wrong token is not a server that is gone."""
    with lab_of(tmp_path, works=False) as lab:
        url = (lab.runs / "web.url").read_text().strip()
        anna = NamedTokens(lab.runs).add("anna", "viewer")
        listed = soakwatch("queue", "list", SOAKWATCH_SERVER=url, SOAKWATCH_TOKEN=anna)
        refused = soakwatch("submit", "night.yaml", "--server", url, "--token", "env:MINE", MINE=anna)
        wrong = soakwatch("queue", "list", "--server", url, SOAKWATCH_TOKEN="wrong")
    assert listed.returncode == 0, listed.stderr
    assert refused.stderr == "soakwatch: anna has the role viewer: this action needs the role operator\n"
    assert "rejects the token of env:SOAKWATCH_TOKEN: ask its admin for one" in wrong.stderr
    assert anna not in listed.stdout + refused.stderr + wrong.stderr


def test_a_run_that_goes_on_is_stopped_and_its_process_gets_no_token(
    tmp_path: Path, soakwatch: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the server itself is given as its token is not in the environment of what it starts."""
    monkeypatch.setenv("SOAK_TOKEN", "the-token-of-the-server-itself")
    with lab_of(tmp_path, 0, 600) as lab:
        soakwatch("submit", "night.yaml")
        folder = job_folder(lab.runs, 1)
        wait_until(lambda: lab.job(1).state is JobState.RUNNING and is_alive(folder), "the start of the job")
        assert soakwatch("queue", "cancel", "1").stdout == "job 1 is stopping, and is judged then\n"
        assert "stopping" in soakwatch("queue", "list").stdout
        wait_until(lambda: log_tail(folder, 99) != "", "the output of the job")
        assert soakwatch("queue", "log", "1").stdout == "said so \n"
        assert "there is no job 9" in soakwatch("queue", "log", "9").stderr
        assert "job 1 was not broken off (running)" in soakwatch("queue", "resume", "1").stderr
        (folder / "stop").touch()
        wait_until(lambda: lab.job(1).over, "the end of the job")
