"""The queue with real processes that do nothing: order, testbeds, ends, and what a server finds that follows one that
was killed."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.collector.conftest import record_run
from tests.collector.lab.conftest import ANNA, BERT, FAKE, LabOf, end_with, plan_text
from tests.commands import wait_until

from soakwatch.campaign.locks import testbed_file as lock_of
from soakwatch.core.errors import PlanError
from soakwatch.lab.dispatcher import command_of
from soakwatch.lab.job_files import is_alive, job_folder, log_tail, take_lock
from soakwatch.lab.lab import Lab
from soakwatch.lab.lab_model import ConflictError, Job, JobState, LabError, NotAllowedError, Order, UnknownError
from soakwatch.lab.plans_folder import PlansFolder


def test_one_run_at_a_time_goes_on_on_a_testbed(server: LabOf) -> None:
    """Of one host one at a time, in their order; others beside it. A name of a testbed counts instead of hosts."""
    work = server()
    first, again, other = work.submit("a.yaml"), work.submit("a.yaml"), work.submit("b.yaml")
    work.step(first, other)
    assert work.ids(JobState.QUEUED) == [again]
    assert work.ends(first, 0).verdict == "pass"
    work.step(again, other)
    named, host, elsewhere = work.submit("a.yaml", testbed="rack-3"), work.submit("rack.yaml"), work.submit("rack.yaml")
    work.step(again, other)  # the first of them has the host of a job without a name, the others its name
    work.ends(again, 1)
    work.step(other, named)
    work.ends(named, 3)
    work.step(other, host)
    assert work.ids(JobState.QUEUED) == [elsewhere]


def test_a_job_that_waits_keeps_its_place_before_later_ones(server: LabOf, plans: Path) -> None:
    """One of both devices is not overtaken for ever by jobs of one of them."""
    both = plan_text("192.0.2.1") + "  tg: {role: generator, sources: [{snmp: {host: 192.0.2.2, community: env:X}}]}\n"
    (plans / "both.yaml").write_text(both)
    work = server()
    first, pair, later = work.submit("a.yaml"), work.submit("both.yaml"), work.submit("b.yaml")
    work.step(first)
    work.ends(first, 0)
    work.step(pair)
    assert work.ids(JobState.QUEUED) == [later]


def test_so_many_go_on_at_once(server: LabOf, plans: Path) -> None:
    for number in range(6):
        (plans / f"{number}.yaml").write_text(plan_text(f"192.0.2.{100 + number}"))
    work = server()
    jobs = [work.submit(f"{number}.yaml") for number in range(6)]
    work.step(*jobs[:4])
    work.ends(jobs[2], 0)
    work.step(jobs[0], jobs[1], jobs[3], jobs[4])


def test_jobs_are_moved_and_cancelled(server: LabOf) -> None:
    """And who did so is kept."""
    work = server()
    first, second, third = (work.submit("a.yaml") for _ in range(3))
    work.lab.move(third, "up", BERT)
    assert work.ids(JobState.QUEUED) == [first, third, second]
    work.lab.move(second, "top", BERT)
    assert work.ids(JobState.QUEUED) == [second, first, third]
    work.lab.move(second, "down", BERT)
    work.lab.move(first, "up", BERT)
    assert work.ids(JobState.QUEUED) == [first, second, third]
    gone = work.lab.cancel(second, BERT, "not today")
    assert (gone.state, gone.exit_code, gone.reason) == (JobState.CANCELLED, 3, "cancelled by bert: not today")
    with pytest.raises(ConflictError):
        work.lab.cancel(second, ANNA)
    with pytest.raises(ConflictError):
        work.lab.move(second, "up", ANNA)
    with pytest.raises(UnknownError, match="there is no job 99"):
        work.lab.cancel(99, ANNA)
    with pytest.raises(LabError, match="write up, down or top"):
        work.lab.move(third, "sideways", ANNA)
    assert work.audit()[-1] == ("bert", "cancel", second)
    assert work.audit().count(("bert", "move", second)) == 2


@pytest.mark.parametrize(
    ("code", "state", "verdict", "exit_code"),
    [
        (0, "ended", "pass", 0),
        (1, "ended", "fail", 1),
        (3, "ended", "inconclusive", 3),
        (2, "refused", None, 2),
        (4, "broken off", None, 4),
        (99, "broken off", None, 4),
    ],
)
def test_how_a_job_ends(server: LabOf, code: int, state: str, verdict: str | None, exit_code: int) -> None:
    work = server()
    number = work.submit("a.yaml")
    work.step(number)
    job = work.ends(number, code)
    assert (job.state.value, job.verdict, job.exit_code) == (state, verdict, exit_code)
    assert log_tail(job_folder(work.lab.runs, number), 100) == "the end\n"
    if code == 2:
        assert (job.reason, job.folder) == ("the end", "")
    if state == "broken off":
        assert job.reason == f"its command ended with code {code} before its first poll (the end): submit it again"


def test_a_server_that_follows_one_that_was_killed_knows_everything(server: LabOf) -> None:
    """What runs, what waits and what ended meanwhile, each once."""
    work = server()
    going, ended, waiting = work.submit("a.yaml"), work.submit("b.yaml"), work.submit("a.yaml")
    work.step(going, ended)
    folder = job_folder(work.lab.runs, ended)
    end_with(folder, 1)
    wait_until(lambda: not is_alive(folder), "the end of a run while no server is there")
    work = server()
    work.step(going)
    assert (work.lab.job(ended).verdict, work.ids(JobState.QUEUED)) == ("fail", [waiting])
    assert work.ends(going, 0).verdict == "pass"
    work.step(waiting)
    assert [job for _, action, job in work.audit() if action == "start"] == [going, ended, waiting]


def test_a_job_whose_process_never_began_is_queued_again(server: LabOf) -> None:
    """The server was killed between keeping that it starts and starting it."""
    work = server()
    number = work.submit("a.yaml")
    started = replace(work.lab.job(number), state=JobState.RUNNING, folder="20261129T115959Z-night", begin_ns=1)
    work.lab.store.put_job(started)
    (work.lab.runs / started.folder).mkdir()
    work = server()
    work.step(number)
    assert work.lab.job(number).folder != started.folder
    assert not (work.lab.runs / started.folder).exists()


def test_the_run_goes_on_when_only_the_process_that_watches_it_is_killed(server: LabOf) -> None:
    """Both hold the job's lock; with neither of them it is broken off, and somebody may let it go on."""
    work = server()
    number = work.submit("a.yaml")
    work.step(number)
    (watcher,) = work.dispatcher._children
    run = int(subprocess.run(["pgrep", "-P", str(watcher.pid)], capture_output=True, text=True, check=True).stdout)
    os.kill(watcher.pid, signal.SIGKILL)
    watcher.wait()
    work.step(number)
    os.kill(run, signal.SIGKILL)
    wait_until(lambda: not is_alive(job_folder(work.lab.runs, number)), "the end of the run")
    record_run(work.lab.runs / work.lab.job(number).folder)
    work.dispatcher.step()
    job = work.lab.job(number)
    assert (job.state, job.exit_code) == (JobState.BROKEN, 4)
    assert "its processes were killed; " in job.reason, "its record has no plan"
    again = work.lab.resume(number, BERT)
    with pytest.raises(ConflictError, match=f"job {again.id} goes on with job {number} already"):
        work.lab.resume(number, BERT)
    work.step(again.id)
    assert work.lab.job(again.id).folder == job.folder
    plans = PlansFolder(work.lab.plans.path)
    command = command_of(again, plans.read(again.order), work.lab.runs / again.resumes, work.lab.runs)
    assert command[2:] == ("soakwatch.cli", "resume", str(work.lab.runs / job.folder), "--no-web")
    assert work.ends(again.id, 0).verdict == "pass"
    with pytest.raises(ConflictError, match="was not broken off"):
        work.lab.resume(again.id, BERT)


def test_a_run_that_does_not_see_the_request_is_interrupted(server: LabOf) -> None:
    """After 30 s, as by Ctrl-C: it is judged by what it has."""
    work = server()
    number = work.submit("a.yaml")
    work.step(number)
    assert work.lab.cancel(number, BERT, "enough").stop_ns is not None
    work.step(number)
    with pytest.raises(ConflictError, match="asked to stop already"):
        work.lab.cancel(number, ANNA)
    work.clock[0] += 31 * 10**9
    work.step(number)
    wait_until(lambda: not is_alive(job_folder(work.lab.runs, number)), "the end of the run")
    work.dispatcher.step()
    assert work.lab.job(number).verdict == "inconclusive"


def test_a_run_that_hangs_is_killed_when_that_is_asked_for(server: LabOf, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not before it had a minute to end; what was recorded is kept, and another job goes on with it."""
    monkeypatch.setattr("tests.collector.lab.conftest.FAKE", FAKE.replace("asked.append(1)", "None"))
    work = server()
    number = work.submit("a.yaml")
    work.step(number)
    record_run(work.lab.runs / work.lab.job(number).folder, ended=True)
    work.lab.cancel(number, ANNA)
    work.clock[0] += 59 * 10**9
    work.step(number)
    with pytest.raises(ConflictError, match="if it hangs, ask again 1 min after that, and it is killed"):
        work.lab.cancel(number, BERT, "it hangs")
    work.clock[0] += 2 * 10**9
    assert is_alive(job_folder(work.lab.runs, number)), "it heeds no interrupt"
    assert work.lab.cancel(number, BERT, "it hangs").kill
    work.dispatcher.step()
    wait_until(lambda: not is_alive(job_folder(work.lab.runs, number)), "the end of the run")
    work.dispatcher.step()
    job = work.lab.job(number)
    assert (job.state, job.exit_code) == (JobState.BROKEN, 4)
    assert job.reason.startswith("killed by bert (admin): soakwatch resume ")
    assert [action for name, action, _ in work.audit() if name != "soakwatch"] == ["submit", "stop", "kill"]
    assert work.lab.resume(number, BERT).resumes == job.folder


def test_a_testbed_that_something_else_holds_is_waited_for(server: LabOf) -> None:
    """A campaign that was started by hand, say: the job says who has it."""
    work = server()
    number = work.submit("rack.yaml")
    lock = take_lock(lock_of("rack-3"))
    assert lock is not None
    os.write(lock, b"campaign overload (pid 12)\n")
    work.step()
    assert work.dispatcher.waits == {number: "rack-3 is held by campaign overload (pid 12)"}
    os.close(lock)
    work.step(number)
    assert take_lock(lock_of("rack-3")) is None, "a campaign would wait for the job"


def test_a_plan_that_was_changed_while_it_waited_is_run_as_it_is_and_said(server: LabOf, plans: Path) -> None:
    """One that cannot be run any more is refused then; nothing else waits for it."""
    work = server()
    changed, spoilt = work.submit("a.yaml"), work.submit("b.yaml")
    (plans / "a.yaml").write_text(plan_text("192.0.2.9"))
    (plans / "b.yaml").write_text("nothing: [")
    work.step(changed)
    job = work.lab.job(changed)
    assert (job.note, job.testbed.hosts) == ("the plan was changed while it waited", ("192.0.2.9",))
    refused = work.lab.job(spoilt)
    assert (refused.state, refused.exit_code) == (JobState.REFUSED, 2)
    assert refused.reason.startswith("b.yaml:1:")


def test_what_cannot_be_run_is_refused_when_it_is_submitted(server: LabOf, plans: Path) -> None:
    """With the place in the plan, below the folder; an operator cannot change what a plan asks, and of whom."""
    (plans / "bad.yaml").write_text(plan_text("192.0.2.1").replace("duration", "duratoin"))
    work = server()
    with pytest.raises(PlanError, match=r"^bad\.yaml:2:1: unknown key 'duratoin'"):
        work.submit("bad.yaml")
    with pytest.raises(LabError, match="'Release' cannot name a label"):
        work.lab.submit(Order("a.yaml", {"Release": "7"}), ANNA)
    host = Order("a.yaml", values=("targets.dut.sources.snmp.host=192.0.2.66",))
    with pytest.raises(NotAllowedError, match=r"--set targets\.dut\.sources\.snmp\.host needs the role admin"):
        work.lab.submit(host, ANNA)
    job = work.lab.submit(host, BERT, any_value=True)
    assert job.testbed.hosts == ("192.0.2.66",)
    assert work.lab.submit(Order("a.yaml", values=("duration=2h",)), ANNA).planned_s == 7200


def test_a_folder_has_one_server(server: LabOf, plans: Path) -> None:
    work = server()
    with pytest.raises(LabError, match="another server has the queue of"):
        Lab(work.lab.runs, PlansFolder(plans))
    assert (work.lab.runs / ".lab" / "queue.sqlite").stat().st_mode & 0o777 == 0o600
    assert (work.lab.runs / ".lab").stat().st_mode & 0o777 == 0o700


def test_what_goes_wrong_is_told_and_the_queue_is_worked_on_again(
    server: LabOf, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once on the terminal, and on the page until it is over."""
    work = server()
    real = work.lab.store.jobs

    def full(state: JobState) -> list[Job]:
        raise OSError(28, "No space left on device", "queue.sqlite")

    with work.dispatcher.working():
        monkeypatch.setattr(work.lab.store, "jobs", full)
        wait_until(lambda: work.dispatcher.trouble != "", "what is wrong")
        assert work.dispatcher.trouble == "queue.sqlite: No space left on device"
        monkeypatch.setattr(work.lab.store, "jobs", real)
        wait_until(lambda: work.dispatcher.trouble == "", "work as before")
    told = capsys.readouterr().err
    assert told == "soakwatch: warning: the queue is not worked on: queue.sqlite: No space left on device\n"
