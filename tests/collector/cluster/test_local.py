"""Processes of this machine: jobs in the order in which they end, processes that die, an end that leaves nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path

import pytest
from tests.collector.cluster import jobs
from tests.collector.cluster.jobs import Step
from tests.commands import wait_until

from soakwatch.core.errors import PlanError
from soakwatch.core.workers.choose import executor_for
from soakwatch.core.workers.executor import ClusterError, Executor, JobLostError, completed
from soakwatch.core.workers.local import LocalProcesses

DRIVER = """
import sys
from pathlib import Path
from soakwatch.core.workers.local import LocalProcesses
from tests.collector.cluster import jobs
if __name__ == "__main__":
    with LocalProcesses(1) as executor:
        executor.submit_into(jobs.wait_until_unwanted, jobs.Step(Path(sys.argv[1])), Path(sys.argv[1]) / "to").result()
"""


def test_every_job_is_done_once(tmp_path: Path) -> None:
    """More jobs than processes: each result is that of its argument, each job has begun once, and at most twice as many
    as processes were taken from the source at a time."""
    taken: list[int] = []

    def source() -> list[Step]:
        return [Step(tmp_path, number) for number in range(9)]

    with LocalProcesses(2) as executor:

        def submit(step: Step) -> Future[int]:
            taken.append(step.number)
            return executor.submit(jobs.square, step)

        under_way = []
        found = {}
        for step, future in completed(submit, source(), lambda: executor.slots):
            found[step.number] = future.result()
            under_way.append(len(taken) - len(found) + 1)
    assert found == {number: number**2 for number in range(9)}
    assert max(under_way) <= 4
    assert len(list(tmp_path.iterdir())) == 9


def test_a_job_whose_process_died_is_begun_once_more(tmp_path: Path) -> None:
    """What died by chance is done by another process; what kills each is named, and costs the others nothing."""
    with LocalProcesses(1) as executor:
        chance = executor.submit(jobs.fall_once, Step(tmp_path, 1))
        deadly = executor.submit(jobs.fall, Step(tmp_path, 2), label="judging runs/b")
        after = executor.submit(jobs.square, Step(tmp_path, 3))
        assert chance.result(120) == 1
        with pytest.raises(JobLostError, match=r"^judging runs/b has no result: the process .* killed by SIGKILL$"):
            deadly.result(120)
        assert after.result(120) == 9
    assert sorted(file.name[0] for file in tmp_path.iterdir()) == ["1", "1", "2", "2", "3"]


def test_what_writes_files_is_begun_at_most_once(tmp_path: Path) -> None:
    """A run that was broken off is the ledger's to repeat."""
    with LocalProcesses(1) as executor:
        with pytest.raises(JobLostError):
            executor.submit_into(_fall_into, Step(tmp_path, 1), tmp_path / "to").result(120)
        step = Step(tmp_path, 2, size=10)
        assert executor.submit_into(jobs.write, step, tmp_path / "to").result(120) == "written"
    assert (tmp_path / "to" / "large").read_bytes() == bytes([2]) * 10
    assert len(list(tmp_path.glob("1-*"))) == 1


def _fall_into(step: Step, _: Path) -> int:
    return jobs.fall(step)


def test_errors_come_out_of_futures(tmp_path: Path) -> None:
    """With all their sentences, and with the place for what nobody foresaw."""
    with LocalProcesses(1) as executor:
        refused = executor.submit(jobs.refuse, Step(tmp_path, 7)).exception(120)
        stumbled = executor.submit(jobs.stumble, Step(tmp_path, 7)).exception(120)
        with pytest.raises(ClusterError, match=r"^<lambda> cannot be sent to another process"):
            executor.submit(lambda _: 1, 1)
    assert isinstance(refused, PlanError)
    assert refused.problems == ("plan.yaml:7: no", "and more")
    assert isinstance(stumbled, ZeroDivisionError)
    assert "jobs.py" in stumbled.__notes__[0]
    with pytest.raises(ClusterError, match="too late"):
        executor.submit(jobs.square, Step(tmp_path))


def test_files_of_a_job_are_where_they_are(tmp_path: Path) -> None:
    """On this machine nothing is copied."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "record").write_bytes(b"12")
    with LocalProcesses(1) as executor:
        future = executor.submit_files(jobs.sums, Step(tmp_path), [tmp_path / "in" / "record"])
        assert future.result(120) == {"record": 2}


def test_one_job_at_a_time_holds_a_resource(tmp_path: Path) -> None:
    """And those that hold nothing go past."""
    with LocalProcesses(3) as executor:
        futures = [executor.submit(jobs.both_at_once, Step(tmp_path), resource="testbed-a") for _ in range(4)]
        free = executor.submit(jobs.square, Step(tmp_path, 5))
        assert free.result(120) == 25
        assert [future.result(120) for future in futures] == [False] * 4


def test_leaving_ends_what_runs(tmp_path: Path) -> None:
    """A job that asks sees that it is not wanted and ends by itself; one that has not begun never does."""
    with LocalProcesses(1) as executor:
        running = executor.submit_into(jobs.wait_until_unwanted, Step(tmp_path, 1), tmp_path / "to")
        waiting = executor.submit(jobs.square, Step(tmp_path, 2))
        wait_until(lambda: running.done() or any(tmp_path.glob("1-*")), "the first job")
    assert (tmp_path / "unwanted").exists()
    assert waiting.cancelled()
    assert running.done()
    assert not list(tmp_path.glob("2-*"))


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_behind_a_driver_that_is_ended(tmp_path: Path, how: signal.Signals) -> None:
    """By Ctrl-C, or killed: the process that works sees it."""
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    driver = subprocess.Popen([sys.executable, script, tmp_path], env=environment, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: any(tmp_path.glob("0-*")), "the job")
        driver.send_signal(how)
        wait_until((tmp_path / "unwanted").exists, "the end of the job")
        assert driver.wait(120) != 0
    finally:
        driver.kill()
        driver.wait()


def test_where_work_is_done() -> None:
    """Without an address here; an address that is none is one sentence."""
    with executor_for(None, 3) as executor:
        assert isinstance(executor, LocalProcesses)
        seam: Executor = executor
        assert (seam.slots, seam.resources(), seam.same_machine) == (3, None, True)
    for wrong in ("lab7:8786", "http://lab7", "dask://", "dask://lab7:99999", "dask://a b"):
        with pytest.raises(ClusterError, match="write dask://HOST:8786, or tls://HOST:8786"):
            executor_for(wrong)
    with pytest.raises(ClusterError, match="give at least 1"):
        LocalProcesses(0)
