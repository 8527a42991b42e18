"""``soakwatch serve --plans`` with real runs: killed and started again, verdicts as exit codes, a lab that is full."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest
from tests.collector.conftest import record_run
from tests.commands import Command, Started, Tally, command_in, starting_in, wait_until
from tests.in_process import command_here

from soakwatch.record import RecordView

LONG = """\
name: {name}
duration: {length}
{more}targets:
  me: {{role: dut, shared: true, sources: [{{local: {{interval: 1s}}}}]}}
"""
SHORT = """\
name: {name}
duration: 3s
labels: {{testbed: {name}}}
targets:
  me:
    role: dut
    sources:
      - command: {{interval: 1s, run: [sh, -c, "while :; do echo system.uptime 77; sleep 1; done"]}}
"""


PASSES = """\
name: pass
duration: 4s
rules: {coverage: {floor: 1%, gap: 100%}}
watch: {processes: [{pid: 1, name: first}]}
targets:
  me: {role: dut, shared: true, sources: [{local: {interval: 200ms, probes: [process]}}]}
"""
FAILS = """\
name: fail
duration: 6s
rules: {coverage: {floor: 1%, gap: 100%}, level: {temperature: 80}}
targets:
  me:
    role: dut
    sources:
      - command: {interval: 500ms, run: [sh, -c, "while :; do echo 'system.temperature 99'; sleep 0.2; done"]}
"""
"""What a busy machine answers in time is not what is asked here."""


class LabServer:
    """A real server of a folder; its runs are ended at the end."""

    def __init__(self, folder: Path, start: Started) -> None:
        self.folder, self._start = folder, start
        self.soakwatch: Command = command_in(folder)
        self.listen = "127.0.0.1:0"
        self.process = self._started()

    def _started(self) -> subprocess.Popen[str]:
        process = self._start("serve", "runs", "--plans", "plans", "--listen", self.listen)
        assert process.stdout is not None
        said = process.stdout.readline()
        assert "and runs plans of plans" in said, said
        self.listen = (self.folder / "runs" / "web.url").read_text().strip().removeprefix("http://")
        return process

    def kill(self) -> None:
        """As the kernel does when memory runs out."""
        self.process.kill()
        self.process.wait()

    def again(self) -> None:
        """Start it again at the same address."""
        self.process = self._started()

    def state(self) -> dict[str, list[dict[str, object]]]:
        """The queue as JSON."""
        done = self.soakwatch("queue", "list", "--json")
        assert done.returncode == 0, done.stderr
        listed: dict[str, list[dict[str, object]]] = json.loads(done.stdout)
        return listed

    def ids(self, table: str) -> list[object]:
        """The jobs or schedules of a table."""
        return [one["id"] for one in self.state()[table]]

    def end_everything(self) -> None:
        """Leave no run behind."""
        for process in psutil.process_iter(["cmdline"]):
            if str(self.folder) in " ".join(process.info["cmdline"] or []) and process.pid != os.getpid():
                process.kill()


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LabServer]:
    """A server of an empty folder of runs."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.delenv("SOAKWATCH_TOKEN", raising=False)
    (tmp_path / "plans").mkdir()
    (tmp_path / "plans" / "long.yaml").write_text(LONG.format(name="long", length="1h", more=""))
    with starting_in(tmp_path) as start:
        server = LabServer(tmp_path, start)
        yield server
        server.kill()
        server.end_everything()


def test_a_server_that_is_killed_loses_neither_runs_nor_queue_nor_schedules(lab: LabServer) -> None:
    """The run goes on and is stopped by the next server; who waits for it learns the verdict all the same. The record
    has who asked for what."""
    lab.soakwatch("token", "add", "anna", "--role", "operator")
    waiting = lab._start("submit", "long.yaml", "--label", "release=7.2", "--wait")
    wait_until(lambda: lab.ids("running") == [1], "the start of the run")
    folder = lab.folder / "runs" / str(lab.state()["running"][0]["run"])
    lab.soakwatch("submit", "long.yaml")
    lab.soakwatch("submit", "long.yaml", "--cron", "0 20 * * mon-fri")
    wait_until((folder / "record.sqlite").is_file, "the record of the run")
    lab.kill()
    assert waiting.stdout is not None
    assert any("waiting for it" in line for line in waiting.stdout), "who waits for the job waits for the server"
    (run,) = [
        process
        for process in psutil.process_iter(["cmdline", "name"])
        if (process.info["cmdline"] or [])[1:4] == ["-m", "soakwatch.cli", "run"]
        and str(folder) in process.info["cmdline"]
        and process.info["name"] != "soakwatch-judge"  # a copy of the run's process
    ]
    lab.again()
    state = lab.state()
    assert ([one["id"] for one in state["running"]], [one["id"] for one in state["queue"]]) == ([1], [2])
    assert ([one["id"] for one in state["schedules"]], run.is_running()) == (["s1"], True)
    assert lab.soakwatch("queue", "cancel", "2").stdout == "job 2 is cancelled\n"
    assert lab.soakwatch("queue", "cancel", "1", "--reason", "the rack is needed").returncode == 0
    out, _ = waiting.communicate(timeout=240)
    assert waiting.returncode in {0, 1, 3}, out
    assert lab.ids("running") == []
    with RecordView.open(folder) as view:
        events = [stored.event for stored in view.events() if stored.event.kind.startswith("run.")]
        assert (view.meta("verdict") is not None, view.labels["release"]) == (True, "7.2")
    told = [
        (event.detail["action"], event.detail["user"], event.detail["job"])
        for event in events
        if event.kind == "run.action"
    ]
    assert told == [("submit", "server token", "1"), ("start", "soakwatch", "1"), ("stop", "server token", "1")]
    (stop,) = [event.detail for event in events if event.kind == "run.stop"]
    assert stop == {"reason": "the rack is needed", "by": "server token (admin)"}


@pytest.mark.slow
def test_a_run_goes_on_by_itself_after_a_power_failure(lab: LabServer) -> None:
    """Server and run are gone at once; the next server resumes the run in its folder, whose record says who did so, and
    that nobody looked meanwhile. The list says it too."""
    lab.soakwatch("submit", "long.yaml")
    wait_until(lambda: lab.ids("running") == [1], "the start of the run")
    folder = lab.folder / "runs" / str(lab.state()["running"][0]["run"])

    def polled() -> bool:
        if not (folder / "record.sqlite").is_file():
            return False
        with RecordView.open(folder) as view:
            return any(view.last_due_ns().values())

    wait_until(polled, "the first poll")
    lab.kill()
    lab.end_everything()
    lab.again()
    wait_until(lambda: "goes on by itself" in str(lab.state()["running"]), "the run going on")
    assert "its processes were killed; it goes on by itself, 1 of 3 times" in lab.soakwatch("queue", "list").stdout

    def told() -> list[str]:
        with RecordView.open(folder) as view:
            events = [stored.event for stored in view.events()]
        return [event.detail.get("action", event.kind) for event in events if event.kind in {"run.action", "gap"}]

    wait_until(lambda: {"resume", "gap"} <= set(told()), "the record says so")
    assert told().count("start") == 2
    assert lab.soakwatch("queue", "cancel", "1").returncode == 0
    wait_until(lambda: lab.ids("running") == [], "the end of the run")
    with RecordView.open(folder) as view:
        assert view.meta("verdict") is not None


def test_who_got_a_token_after_the_server_began_is_in_the_audit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a server without plans, too: from the first token on it keeps who does what, and asks for no new start."""
    monkeypatch.delenv("SOAKWATCH_TOKEN", raising=False)
    record_run(tmp_path / "runs" / "night")
    soakwatch = command_here(tmp_path)
    with starting_in(tmp_path) as start:
        process = start("serve", "runs", "--listen", "127.0.0.1:0")
        assert process.stdout is not None
        process.stdout.readline()
        url = (tmp_path / "runs" / "web.url").read_text().strip()
        own = (tmp_path / "runs" / "web.token").read_text().strip()
        with httpx.Client(base_url=url, trust_env=False, timeout=240) as client:
            client.headers["authorization"] = f"Bearer {own}"
            assert client.get("/api/lab/audit").status_code == 404, "nobody has a role"
            assert not (tmp_path / "runs" / ".lab").exists(), "who only looks changes nothing"
            token = soakwatch("token", "add", "anna", "--role", "operator").stdout.split()[-1]
            client.headers["authorization"] = f"Bearer {token}"
            marked = client.post("/api/runs/night/events", json={"kind": "failover"})
            assert marked.status_code == 201, marked.text
            (entry,) = client.get("/api/lab/audit").json()["audit"]
            assert (entry["user"], entry["role"], entry["action"]) == ("anna", "operator", "mark an event")
        process.terminate()
        assert process.wait(240) == 0


@pytest.mark.slow
def test_the_verdicts_of_real_runs_are_exit_codes(lab: LabServer) -> None:
    """Of one that passes, fails, is inconclusive, cannot start; a campaign's is that of all its runs, and one that is
    killed goes on by itself."""
    plans = lab.folder / "plans"
    (plans / "pass.yaml").write_text(PASSES)
    (plans / "fail.yaml").write_text(FAILS)
    (plans / "short.yaml").write_text(LONG.format(name="short", length="2s", more=""))
    (plans / "secret.yaml").write_text(
        LONG.format(name="secret", length="2s", more="").replace(
            "local: {interval: 1s}", "snmp: {host: 127.0.0.1, community: 'env:NOT_THERE'}"
        )
    )
    (plans / "two.yaml").write_text(
        "plan: fail.yaml\nmatrix: {pace: {set: targets.me.sources.command.interval, values: [500ms, 1s]}}\n"
    )
    codes = {
        name: lab.soakwatch("submit", f"{name}.yaml", "--wait") for name in ("pass", "fail", "short", "secret", "two")
    }
    assert {name: done.returncode for name, done in codes.items()} == {
        "pass": 0,
        "fail": 1,
        "short": 3,
        "secret": 2,
        "two": 1,
    }, {name: done.stdout + done.stderr for name, done in codes.items()}
    assert "NOT_THERE" in codes["secret"].stdout
    assert not list((lab.folder / "runs").glob("*-secret")), "a run that never began leaves no folder"
    waiting = lab._start("submit", "long.yaml", "--wait")
    wait_until(lambda: lab.ids("running") == [6], "the start of the run")
    wait_until(lambda: bool(list((lab.folder / "runs").glob("*-long/record.sqlite"))), "its record")
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        ours = str(lab.folder) in " ".join(words)
        if ours and ("soakwatch.lab.job_process" in words or {"soakwatch.cli", "run"} <= set(words)):
            process.send_signal(signal.SIGKILL)
    (folder,) = (lab.folder / "runs").glob("*-long")

    def gap_is_noted() -> bool:
        with RecordView.open(folder) as view:
            return any(stored.event.kind == "gap" for stored in view.events())

    wait_until(gap_is_noted, "the gap in the record of the run that goes on by itself")
    (job,) = lab.state()["running"]
    assert (job["id"], job["note"]) == (6, "its processes were killed; it goes on by itself, 1 of 3 times")
    assert lab.soakwatch("queue", "cancel", "6").returncode == 0
    out, _ = waiting.communicate(timeout=240)
    assert waiting.returncode == 3, out
    assert lab.state()["recent"][0]["state"] == "ended"


@pytest.mark.slow
def test_a_campaign_is_stopped_and_judged_by_what_it_has(lab: LabServer) -> None:
    """As by Ctrl-C; its runs are in the folder of the campaign, which the pages show."""
    text = "plan: long.yaml\nmatrix: {pace: {set: targets.me.sources.local.interval, values: [1s, 2s]}}\n"
    (lab.folder / "plans" / "sweep.yaml").write_text(text)
    assert lab.soakwatch("submit", "sweep.yaml").returncode == 0
    wait_until(lambda: bool(list((lab.folder / "runs").glob("campaigns/*/runs/*/record.sqlite"))), "its first run")
    lab.kill()
    lab.again()
    (job,) = lab.state()["running"]
    assert (job["kind"], str(job["page"]).startswith("/campaigns/")) == ("campaign", True)
    assert lab.soakwatch("queue", "cancel", "1").stdout == "job 1 is stopping, and is judged then\n"
    wait_until(lambda: lab.ids("running") == [], "the end of the campaign")
    (over,) = lab.state()["recent"]
    assert (over["state"], over["verdict"]) == ("ended", "inconclusive")


@pytest.mark.slow
def test_fifty_plans_and_twenty_viewers_on_two_cores(lab: LabServer, tally: Tally) -> None:
    """Each plan is run once, never two on one testbed; pages are answered all the while; the server is killed in
    between."""
    for number in range(10):
        (lab.folder / "plans" / f"bed{number}.yaml").write_text(SHORT.format(name=f"bed{number}"))
    lab.soakwatch("token", "add", "wall", "--role", "viewer")
    url = f"http://{lab.listen}"
    token = (lab.folder / "runs" / "web.token").read_text().strip()
    headers = {"authorization": f"Bearer {token}"}
    with httpx.Client(base_url=url, headers=headers, trust_env=False, timeout=240) as client:
        for number in range(50):
            answer = client.post("/api/lab/jobs", json={"plan": f"bed{number % 10}.yaml"})
            assert answer.status_code == 201, answer.text
    over, waits, troubles = threading.Event(), list[float](), list[str]()

    def look() -> None:
        tag = ""
        with httpx.Client(base_url=url, headers=headers, trust_env=False, timeout=60) as viewer:
            while not over.wait(2.0):
                begun = time.monotonic()
                try:
                    answer = viewer.get("/api/lab", headers={"if-none-match": tag})
                    runs = viewer.get("/api/summaries")
                except httpx.TransportError:
                    continue  # it is being started again
                waits.append(time.monotonic() - begun)
                tag = answer.headers.get("etag", "")
                if answer.status_code not in {200, 304} or runs.status_code != 200:
                    troubles.append(f"{answer.status_code} {runs.status_code}")
                if answer.status_code == 200:
                    beds = [job["testbed"] for job in answer.json()["running"]]
                    if len(beds) != len(set(beds)) or len(beds) > 4:
                        troubles.append(f"at once: {beds}")

    viewers = [threading.Thread(target=look) for _ in range(20)]
    for viewer in viewers:
        viewer.start()
    begun = time.monotonic()
    try:
        wait_until(lambda: len(lab.state()["recent"]) >= 5, "the first five")
        lab.kill()
        lab.again()
        deadline = time.monotonic() + 3000
        while len(lab.state()["recent"]) < 50 or lab.state()["running"]:
            assert time.monotonic() < deadline, lab.soakwatch("queue", "list").stdout
            time.sleep(3)
    finally:
        over.set()
        for viewer in viewers:
            viewer.join()
    took_s = time.monotonic() - begun
    jobs = lab.state()["recent"]
    assert troubles == []
    assert {job["state"] for job in jobs} == {"ended"}, jobs
    assert len({job["run"] for job in jobs}) == 50
    ordered = sorted(waits)
    median, worst = ordered[len(ordered) // 2], ordered[-1]
    print(f"50 plans in {took_s:.0f} s; {len(waits)} looks of 20 viewers: median {median:.2f} s, worst {worst:.2f} s")
    tally("plans of a queue, with 20 viewers and a kill -9", 50, troubles)
