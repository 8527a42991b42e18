"""What becomes of a job whose processes are killed, as by a power failure: it goes on, or says why it does not."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from tests.collector.conftest import record_run
from tests.collector.lab.conftest import ANNA, BERT, NOON, LabOf, Work
from tests.commands import wait_until

from soakwatch.lab.dispatcher import MOST_RESUMED, command_of
from soakwatch.lab.job_files import is_alive, job_folder, log_tail
from soakwatch.lab.lab import Lab
from soakwatch.lab.lab_model import Job, JobState
from soakwatch.lab.plans_folder import begun_plan
from soakwatch.plan import load_plan
from soakwatch.record import Record


def lose_power(work: Work, number: int) -> None:
    """Kill both processes of a job."""
    folder = job_folder(work.lab.runs, number)
    held = subprocess.run(["pgrep", "-f", str(folder)], capture_output=True, text=True, check=True).stdout
    for pid in held.split():
        os.kill(int(pid), signal.SIGKILL)
    wait_until(lambda: not is_alive(folder), "the end of the job's processes")


def recorded(work: Work, number: int) -> Path:
    """The folder of a job's run, in which it has recorded its plan and some polls."""
    job = work.lab.job(number)
    folder = record_run(work.lab.runs / job.folder)
    with Record.open(folder) as record:
        record.set_meta("plan", load_plan(work.lab.plans.file(job.order.plan)).text)
    return folder


def begun_again(work: Work, number: int) -> Job:
    """The job, which the next step lets go on."""
    (job_folder(work.lab.runs, number) / "runs").unlink()
    work.dispatcher.step()
    wait_until((job_folder(work.lab.runs, number) / "runs").exists, "the process of the job")
    job = work.lab.job(number)
    assert job.state is JobState.RUNNING
    return job


def test_a_run_that_is_cut_off_goes_on_before_all_that_wait(server: LabOf) -> None:
    """The same job, in the same folder, by the plan that it began with; the audit and the job say so. Whoever waits for
    it learns its verdict."""
    work = server()
    number, waiting = work.submit("a.yaml"), work.submit("a.yaml")
    work.step(number)
    work.lab.move(waiting, "top", ANNA)
    folder = recorded(work, number)
    lose_power(work, number)
    (work.lab.plans.path / "a.yaml").unlink()
    work.clock[0] += 3600 * 10**9
    work = server()  # the machine is there again
    job = begun_again(work, number)
    assert work.ids(JobState.QUEUED) == [waiting]
    assert (job.folder, job.resumes, job.resumed) == (folder.name, folder.name, 1)
    assert job.begin_ns == NOON, "when its run began"
    assert job.note == "its processes were killed; it goes on by itself, 1 of 3 times"
    assert work.audit()[-2:] == [("soakwatch", "resume", number), ("soakwatch", "start", number)]
    command = command_of(job, begun_plan(job, work.lab.plans.path), folder, work.lab.runs)
    assert command[2:] == ("soakwatch.cli", "resume", str(folder), "--no-web")
    assert work.ends(number, 1).verdict == "fail"


def test_a_run_that_is_cut_off_again_and_again_is_left(server: LabOf) -> None:
    """What kills it each time would do so for ever. What it printed each time is kept."""
    work = server()
    number = work.submit("a.yaml")
    work.step(number)
    folder = recorded(work, number)
    for _ in range(MOST_RESUMED):
        with open(job_folder(work.lab.runs, number) / "run.log", "a") as log:
            log.write("once\n")
        lose_power(work, number)
        begun_again(work, number)
    lose_power(work, number)
    work.dispatcher.step()
    job = work.lab.job(number)
    assert (job.state, job.exit_code) == (JobState.BROKEN, 4)
    words = f"its processes were killed; it went on 3 times by itself: soakwatch resume {folder} goes on with it"
    assert job.reason == words
    assert work.all_audit()[-1].words == f"broken off: {words}"
    assert log_tail(job_folder(work.lab.runs, number), 1000) == "once\n" * MOST_RESUMED


def test_a_run_that_had_recorded_nothing_begins_again(server: LabOf) -> None:
    """In a folder of its own: there is nothing to go on with."""
    work = server()
    number = work.submit("a.yaml")
    work.step(number)
    lose_power(work, number)
    job = begun_again(work, number)
    assert (job.resumes, job.resumed) == ("", 1)
    assert ("soakwatch", "requeue", number) in work.audit()
    assert work.ends(number, 0).verdict == "pass"


def test_a_run_that_was_to_end_does_not_go_on(server: LabOf) -> None:
    """Somebody stopped it before the power failed."""
    work = server()
    number = work.submit("a.yaml")
    work.step(number)
    folder = recorded(work, number)
    work.lab.cancel(number, BERT, "enough")
    lose_power(work, number)
    work.dispatcher.step()
    assert work.lab.job(number).reason == (
        f"its processes were killed; bert (admin) wanted it to end: soakwatch resume {folder} goes on with it"
    )


def test_a_run_whose_record_is_of_no_use_does_not_go_on(server: LabOf) -> None:
    """Why is what ``soakwatch resume`` says."""
    work = server()
    number = work.submit("a.yaml")
    work.step(number)
    folder = record_run(work.lab.runs / work.lab.job(number).folder)  # without its plan
    lose_power(work, number)
    work.dispatcher.step()
    job = work.lab.job(number)
    assert job.state is JobState.BROKEN
    assert job.reason.startswith("its processes were killed; ")
    assert "plan" in job.reason, folder


def test_a_server_without_plans_resumes_nothing_and_says_so(server: LabOf) -> None:
    """It is the viewer of a folder; the next server with plans shows why."""
    work = server()
    number = work.submit("a.yaml")
    work.step(number)
    folder = recorded(work, number)
    lose_power(work, number)
    work.lab.close()
    viewer = Work(Lab(work.lab.runs, None, lambda: work.clock[0]), work.clock)
    try:
        viewer.dispatcher.step()
        assert viewer.lab.job(number).reason == (
            f"its processes were killed; this server runs no plans: soakwatch resume {folder} goes on with it"
        )
    finally:
        viewer.lab.close()
