"""Jobs and commands on a real scheduler with two workers on loopback: results, files both ways, dead workers, TLS."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import dask
import pytest
from tests.collector.cluster import jobs
from tests.collector.cluster.conftest import ROOT
from tests.collector.cluster.jobs import Step
from tests.collector.cluster.test_campaign_on import CAMPAIGN
from tests.collector.sources.net.conftest import make
from tests.commands import Command, wait_until

from soakwatch.core.errors import PlanError
from soakwatch.core.registry import INSTALLED, PluginFolder
from soakwatch.core.workers import choose
from soakwatch.core.workers.choose import executor_for
from soakwatch.core.workers.executor import ClusterError, Executor, JobLostError, completed
from soakwatch.core.workers.testbeds import require_testbeds
from soakwatch.record import Record
from soakwatch_dask.cluster import DaskCluster
from soakwatch_dask.parcel import CHUNK
from soakwatch_testing.dask_servers import DaskServers

DRIVER = """
import sys
from pathlib import Path
from soakwatch.core.workers.choose import executor_for
from tests.collector.cluster import jobs
with executor_for(sys.argv[1]) as executor:
    executor.submit_into(jobs.wait_until_unwanted, jobs.Step(Path(sys.argv[2])), Path(sys.argv[2]) / "to").result()
"""


@pytest.fixture
def cluster(lab: DaskServers) -> Iterator[Executor]:
    """The two workers."""
    with executor_for(lab.address) as executor:
        yield executor


@pytest.mark.slow
def test_jobs_are_done_once_by_both(cluster: Executor, tmp_path: Path) -> None:
    """Each result is that of its argument, and each job has begun once."""
    done = completed(
        lambda step: cluster.submit(jobs.square, step), (Step(tmp_path, n) for n in range(12)), lambda: cluster.slots
    )
    assert {step.number: future.result() for step, future in done} == {n: n**2 for n in range(12)}
    begun = [file.name.rpartition("-")[2] for file in tmp_path.iterdir()]
    assert len(begun) == 12
    assert len(set(begun)) == 2  # processes
    assert (cluster.slots, cluster.same_machine) == (2, False)


@pytest.mark.slow
def test_errors_come_out_of_futures(cluster: Executor, tmp_path: Path) -> None:
    """With all their sentences."""
    refused = cluster.submit(jobs.refuse, Step(tmp_path, 7)).exception(120)
    assert isinstance(refused, PlanError)
    assert refused.problems == ("plan.yaml:7: no", "and more")
    assert isinstance(cluster.submit(jobs.stumble, Step(tmp_path)).exception(120), ZeroDivisionError)
    with pytest.raises(ClusterError, match=r"^<lambda> cannot be sent to a worker"):
        cluster.submit(lambda _: 1, 1)


@pytest.mark.slow
def test_files_are_read_where_they_are_or_sent(
    cluster: Executor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that sees the file uses it in its place; one that does not gets the bytes, in pieces."""
    place = tmp_path / "in"
    place.mkdir()
    (place / "record").write_bytes(os.urandom(CHUNK + 5))
    (place / "beside").touch()
    seen = cluster.submit_files(jobs.sums, Step(tmp_path, 1), [place / "record"]).result(120)
    assert seen == {"record": CHUNK + 5, "beside": 0}  # it is the folder itself
    monkeypatch.chdir(place)
    here = Path("/proc/self/cwd")  # each process has its own
    files = [here / "record", here / "beside"]
    for number in (2, 3):  # once it was not seen, it is not asked again
        sent = cluster.submit_files(jobs.sums, Step(tmp_path, number), files[: number - 1])
        assert sent.result(120) == dict([("record", CHUNK + 5), ("beside", 0)][: number - 1])
    assert len(list(tmp_path.glob("[123]-*"))) == 3


@pytest.mark.slow
def test_what_a_job_writes_comes_back_as_it_was(cluster: Executor, tmp_path: Path) -> None:
    """In pieces, with folders and empty files, verified; nothing of it is left on the worker."""
    step = Step(tmp_path, 3, size=2 * CHUNK + 1)
    future = cluster.submit_into(jobs.write, step, tmp_path / "runs" / "cell", resource="testbed-b")
    assert future.result(120) == "written"
    assert sorted(path.name for path in (tmp_path / "runs").rglob("*")) == ["cell", "empty", "inner", "large"]
    assert (tmp_path / "runs" / "cell" / "large").read_bytes() == bytes([3]) * step.size
    refused = cluster.submit_into(jobs.write_and_refuse, Step(tmp_path, 4, size=3), tmp_path / "refused")
    with pytest.raises(PlanError, match=r"^no verdict$"):
        refused.result(120)
    assert (tmp_path / "refused" / "large").read_bytes() == bytes([4]) * 3
    with pytest.raises(ClusterError, match="refused is not empty"):
        cluster.submit_into(jobs.write, step, tmp_path / "refused")


@pytest.mark.slow
def test_nothing_is_left_on_a_worker(cluster: Executor, lab: DaskServers, tmp_path: Path) -> None:
    """Neither of what was sent nor of what was fetched."""
    cluster.submit_into(jobs.write, Step(tmp_path, 3, size=5), tmp_path / "to").result(120)
    wait_until(lambda: not list(lab.folder.rglob("soakwatch-*")), "the end of the worker's files")


@pytest.mark.slow
def test_one_job_at_a_time_holds_a_testbed(cluster: Executor, tmp_path: Path) -> None:
    """Only where it is; a testbed that nobody has is one sentence with those that exist."""
    futures = [cluster.submit(jobs.both_at_once, Step(tmp_path), resource="testbed-a") for _ in range(4)]
    assert [future.result(120) for future in futures] == [False] * 4
    assert sorted(cluster.resources() or ()) == ["testbed-a", "testbed-b"]
    require_testbeds(cluster, ["a", "b", ""])
    with pytest.raises(ClusterError, match=r"^no worker has the testbed c: there are a, b; .*testbed-c=1"):
        require_testbeds(cluster, ["a", "c"])


@pytest.mark.slow
def test_leaving_ends_what_runs(lab: DaskServers, tmp_path: Path) -> None:
    """A job that asks sees that nobody wants its result any longer."""
    with executor_for(lab.address) as executor:
        future = executor.submit_into(jobs.wait_until_unwanted, Step(tmp_path, 1), tmp_path / "to")
        wait_until(lambda: any(tmp_path.glob("1-*")), "the job")
    assert isinstance(future.exception(0), JobLostError)
    wait_until((tmp_path / "unwanted").exists, "the end of the job")


@pytest.mark.slow
def test_nothing_is_left_behind_a_driver_that_is_killed(lab: DaskServers, tmp_path: Path) -> None:
    """Its job on a worker sees it."""
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    driver = subprocess.Popen([sys.executable, script, lab.address, tmp_path], env=environment)
    try:
        wait_until(lambda: any(tmp_path.glob("0-*")), "the job")
        driver.kill()
        wait_until((tmp_path / "unwanted").exists, "the end of the job")
    finally:
        driver.kill()
        driver.wait()


@pytest.mark.slow
def test_records_are_sent_where_a_worker_does_not_see_them(lab: DaskServers, runs: Path, soakwatch: Command) -> None:
    """The same verdicts; a run that goes on is not sent."""
    with Record.open(runs / "most"):
        here = f"/proc/self/cwd/{runs.relative_to(runs.parent)}"  # each process has its own
        done = soakwatch("judge", here, "--plan", "tolerant.yaml", "--on", lab.address)
    assert done.stderr == ""
    assert f"{here}/much  ✗ fail  ✓ pass  memory_growth on dut" in done.stdout
    assert f"{here}/most could not be judged: a run is writing it" in done.stdout
    assert done.stdout.splitlines()[-1] == "4 records: 1 verdict changed; now 3 pass, 1 could not be judged"
    assert done.returncode == 2


@pytest.mark.slow
def test_a_testbed_that_nobody_has_is_one_sentence(lab: DaskServers, tmp_path: Path, soakwatch: Command) -> None:
    """Before anything is begun, with those that exist."""
    (tmp_path / "short.yaml").write_text(CAMPAIGN.format(values="40%", beds="{c: {}}"))
    done = soakwatch("campaign", "run", "short.yaml", "--on", lab.address)
    assert done.returncode == 2
    assert "no worker has the testbed c: there are a, b; start one with dask worker" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
def test_a_worker_that_dies_gives_its_job_back(lab: DaskServers, tmp_path: Path) -> None:
    """What may be begun again is, by another one; what writes files is told to be lost, and is begun once."""
    third = lab.add_worker("third", "c")
    with executor_for(lab.address) as executor:
        lost = executor.submit_into(
            jobs.wait_until_unwanted, Step(tmp_path, 1), tmp_path / "to", resource="testbed-c", label="cell one"
        )
        wait_until(lambda: any(tmp_path.glob("1-*")), "the job")
        assert f"-{third.pid}" in next(iter(tmp_path.glob("1-*"))).name
        lab.kill_worker("third")
        lab.add_worker("fourth", "c")
        with pytest.raises(JobLostError, match=r"^cell one was lost: the worker that had begun it died$"):
            lost.result(120)
        again = executor.submit(jobs.fall_once, Step(tmp_path, 2), resource="testbed-c")
        wait_until(lambda: lab.workers["fourth"].poll() is not None, "the fall")
        lab.kill_worker("fourth")
        lab.add_worker("fifth", "c")
        assert again.result(120) == 2
        lab.kill_worker("fifth")
    assert len(list(tmp_path.glob("1-*"))) == 1
    assert len(list(tmp_path.glob("2-*"))) == 2


@pytest.mark.slow
def test_tls_is_that_of_dask_s_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker and this process show certificates; without any it is one sentence, and nobody is let in over TCP."""
    (tmp_path / "tls").mkdir()
    own = make(tmp_path / "tls", "lab")
    files = {"ca-file": own.certificate, "cert": own.certificate, "key": own.key}
    with DaskServers(tmp_path / "lab", files, {"PYTHONPATH": str(ROOT)}) as servers:
        servers.add_worker("one")
        with pytest.raises(ClusterError, match=r"needs certificates: name them in DASK_\w+__TLS__CA_FILE, DASK_"):
            executor_for(servers.address)
        names = {"ca-file": own.certificate, "client.cert": own.certificate, "client.key": own.key}
        with dask.config.set({f"distributed.comm.tls.{name}": str(file) for name, file in names.items()}):
            with executor_for(servers.address.replace("tls", "dask+tls")) as executor:
                step = Step(tmp_path, 6, size=9)
                assert executor.submit(jobs.square, step).result(120) == 36
                assert executor.submit_into(jobs.write, step, tmp_path / "to").result(120) == "written"
            with pytest.raises(ClusterError, match="no scheduler answers at tcp"):
                DaskCluster.connect(servers.address.replace("tls", "tcp"), 1)
        with (
            dask.config.set({f"distributed.comm.tls.{name}": str(tmp_path / "none") for name in names}),
            pytest.raises(ClusterError, match=r"none cannot be read: dask's configuration names it for TLS"),
        ):
            executor_for(servers.address)


def test_a_worker_of_another_version_is_one_sentence(tmp_path: Path) -> None:
    """By name and both versions; one that has no soakwatch is another."""
    other = tmp_path / "other" / "scipy-0.0.9.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: scipy\nVersion: 0.0.9\n")
    with DaskServers(tmp_path / "lab", environment={"PYTHONPATH": str(other.parent)}) as servers:
        servers.add_worker("one")
        with pytest.raises(ClusterError, match=r"^the worker tcp://\S+ has scipy 0\.0\.9 and here is \S+: install"):
            executor_for(servers.address)


def test_without_the_plugin_it_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the line that installs it."""
    monkeypatch.setattr(choose, "INSTALLED", replace(INSTALLED, executors=PluginFolder("", "executor")))
    with pytest.raises(ClusterError, match=r"^--on dask://127\.0\.0\.1: the executor 'dask' .*install .*dask"):
        executor_for("dask://127.0.0.1")


@pytest.mark.slow
def test_a_job_that_kills_each_worker_is_named(tmp_path: Path) -> None:
    """After as many as the scheduler allows."""
    environment = {"PYTHONPATH": str(ROOT), "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1"}
    with DaskServers(tmp_path / "lab", environment=environment) as servers:
        servers.add_worker("one")
        servers.add_worker("two")
        with executor_for(servers.address) as executor:
            future = executor.submit(jobs.fall, Step(tmp_path), label="judging runs/b")
            with pytest.raises(JobLostError, match=r"^judging runs/b has no result: 2 workers died while they had it"):
                future.result(120)


@pytest.mark.slow
def test_nobody_there_is_one_sentence(tmp_path: Path) -> None:
    """No scheduler, one without workers, and one that goes away."""
    with DaskServers(tmp_path / "lab", environment={"PYTHONPATH": str(ROOT)}) as servers:
        tcp = servers.address.replace("dask", "tcp")
        with pytest.raises(ClusterError, match=f"^the scheduler at {tcp} has no worker: start one"):
            DaskCluster.connect(tcp, 1)
        servers.add_worker("one")
        with executor_for(servers.address) as executor:
            future = executor.submit_into(jobs.wait_until_unwanted, Step(tmp_path, 1), tmp_path / "to")
            wait_until(lambda: any(tmp_path.glob("1-*")), "the job")
            assert servers.scheduler is not None
            servers.scheduler.send_signal(signal.SIGKILL)
            with pytest.raises(ClusterError, match=f"^the scheduler at {tcp} is gone"):
                future.result(120)
    with pytest.raises(ClusterError, match=f"^no scheduler answers at {tcp} within 1 s: start one"):
        DaskCluster.connect(tcp, 1)
