"""The server beside a run is a process of its own: what becomes of it costs no poll, and it ends with the run."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
from pathlib import Path

import httpx
import psutil
import pytest
from tests.commands import MAX_WAIT_S, Started, wait_until

from soakwatch.api import attach, mark
from soakwatch.record import RecordView

Run = tuple["subprocess.Popen[str]", str]

LONG = ("run", "--process", f"pid:{os.getpid()}", "--interval", "1s", "--duration", "5m", "--into", "run")


def server_of(run: subprocess.Popen[str]) -> psutil.Process | None:
    """The process that serves a run; None while there is none."""
    for child in psutil.Process(run.pid).children():
        try:
            if "soakwatch.web" in child.cmdline() and child.status() != psutil.STATUS_ZOMBIE:
                return child
        except psutil.NoSuchProcess:
            continue
    return None


def url_of(folder: Path) -> str:
    """Where a run says that it is served; "" before it does."""
    file = folder / "web.url"
    return file.read_text(encoding="ascii").strip() if file.is_file() else ""


def answers(url: str) -> bool:
    """Whether someone answers there."""
    try:
        return httpx.get(f"{url}/api/health", timeout=5, trust_env=False, verify=False).status_code == 200
    except httpx.HTTPError:
        return False


def first_line(process: subprocess.Popen[str]) -> str:
    """What a command says first."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def polls(folder: Path) -> int:
    """Committed polls of a record that is being written."""
    with RecordView.open(folder) as view:
        return view.counts().polls


def bearer(folder: Path) -> dict[str, str]:
    """The header that a run wants."""
    return {"authorization": f"Bearer {(folder / 'web.token').read_text().strip()}"}


@pytest.fixture
def run(started: Started, tmp_path: Path) -> Run:
    """A run that goes on, and where its server answers."""
    process = started(*LONG)
    line = first_line(process)
    said = re.fullmatch(r"recording to run\. API: (http://127\.0\.0\.1:\d+) \(token in run/web\.token\)", line)
    assert said is not None, line
    wait_until(lambda: answers(said[1]), "the run's server")
    return process, said[1]


@pytest.mark.slow
def test_a_run_is_served_told_of_events_and_stopped_from_its_page(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first line and a file say where; a server that is killed comes back there, and costs no poll; what was
    reported is in record and report; a page that is open sees the verdict and takes the report along; nothing of the
    server stays behind."""
    (process, url), folder = run, tmp_path / "run"
    assert url_of(folder) == url
    assert stat.S_IMODE((folder / "web.token").stat().st_mode) == 0o600
    token = (folder / "web.token").read_text(encoding="ascii").strip()
    monkeypatch.setenv("SOAKWATCH_TOKEN", token)

    before = server_of(process)
    assert before is not None
    before.kill()
    assert httpx.get(f"{url}/api/health", timeout=MAX_WAIT_S, trust_env=False, verify=False).status_code == 200, (
        "whoever asks waits"
    )
    server = server_of(process)
    assert server is not None
    assert server.pid != before.pid
    assert url_of(folder) == url

    assert (
        httpx.post(
            f"{url}/api/runs/last/events", json={"kind": "failover"}, trust_env=False, verify=False, timeout=240
        ).status_code
        == 401
    )
    with mark(url, "failover", target="local", labels={"ticket": "4711"}):
        pass
    with pytest.raises(ZeroDivisionError), mark(folder, "upgrade"):
        raise ZeroDivisionError
    assert attach(url).name == "run"

    with httpx.Client(
        base_url=url, headers=bearer(folder), timeout=MAX_WAIT_S, trust_env=False, verify=False
    ) as client:
        seen = polls(folder)
        wait_until(lambda: polls(folder) > seen + 2, "more polls")
        assert client.post("/api/runs/last/stop", json={"reason": "the lab is needed"}).status_code == 202
        state: dict[str, object] = {}

        def reported() -> bool:
            state.update(client.get("/api/runs/last/state").json())
            return bool(state["report"])

        wait_until(reported, "the report")
        assert state["state"] == "ended"
        assert state["verdict"] in {"pass", "fail", "inconclusive"}
        page = client.get("/runs/last/report").text
    assert process.stdout is not None
    output = process.stdout.read()
    process.wait(timeout=MAX_WAIT_S)
    assert process.returncode in {0, 1, 3}, output
    assert not server.is_running()
    assert not answers(url)

    assert "ended early" in str(json.loads((folder / "verdict.json").read_text(encoding="utf-8")))
    assert "the lab is needed" in page
    assert "failover" in page
    with RecordView.open(folder) as view:
        kept = {stored.event.kind: stored.event for stored in view.events() if stored.origin == "user"}
        assert len(view.spans()) == 1, "one life of the monitor, without a gap"
    assert kept["failover"].detail == {"ticket": "4711"}
    assert kept["failover"].end_ns is not None
    assert kept["upgrade"].detail == {"error": "ZeroDivisionError"}
    assert [path.name for path in folder.iterdir() if "web" in path.name] == []
    assert [path for path in folder.iterdir() if token.encode() in path.read_bytes()] == []
    assert token not in output


def test_a_server_ends_with_a_run_that_is_killed_and_the_resumed_run_keeps_the_token(
    run: Run, started: Started, tmp_path: Path
) -> None:
    """Nobody is left to tell the server so; scripts that hold the token go on, at the address that is told anew."""
    (process, _), folder = run, tmp_path / "run"
    server = server_of(process)
    assert server is not None
    wait_until(lambda: polls(folder) > 0, "polls")
    before = bearer(folder)
    process.kill()
    process.wait()
    wait_until(lambda: not server.is_running() or server.status() == psutil.STATUS_ZOMBIE, "the end of the server")
    assert (folder / "web.token").exists()

    again = started("resume", "run")
    address = re.search(r"http://\S+", line := first_line(again))
    assert address is not None, line
    assert bearer(folder) == before
    answer = httpx.post(
        f"{address[0]}/api/runs/current/events",
        json={"kind": "failover"},
        headers=before,
        timeout=MAX_WAIT_S,
        trust_env=False,
        verify=False,
    )
    assert answer.status_code == 201


@pytest.mark.slow
def test_it_ends_with_a_run_that_is_interrupted(run: Run, tmp_path: Path) -> None:
    """Also with a page open that goes on asking; nothing is left behind that tells of it."""
    process, url = run
    server = server_of(process)
    assert server is not None
    process.send_signal(signal.SIGINT)
    wait_until(lambda: not answers(url) and process.poll() is not None, "the end of the run and its server")
    assert not server.is_running()
    assert not {"web.url", "web.token"} & {file.name for file in (tmp_path / "run").iterdir()}
