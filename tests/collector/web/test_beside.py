"""The server beside a run is a process of its own: what becomes of it costs no poll, and it ends with the run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import psutil
import pytest

from soakwatch.record import RecordView

Started = Callable[..., "subprocess.Popen[str]"]
_DEADLINE_S = 240.0

LONG = ("run", "--process", f"pid:{os.getpid()}", "--interval", "200ms", "--duration", "5m", "--into", "run")


def until(happened: Callable[[], bool], what: str) -> None:
    """Wait for something that must happen; to end, judge and report a run takes a while where others work."""
    deadline = time.monotonic() + _DEADLINE_S
    while not happened():
        assert time.monotonic() < deadline, f"{what} did not happen within {_DEADLINE_S:g} s"
        time.sleep(0.1)


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
        return httpx.get(f"{url}/api/health", timeout=5, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


@pytest.fixture
def run(started: Started, tmp_path: Path) -> tuple[subprocess.Popen[str], str]:
    """A run that goes on, and where its server answers."""
    process = started(*LONG)
    until(lambda: url_of(tmp_path / "run") != "" and answers(url_of(tmp_path / "run")), "the run's server")
    return process, url_of(tmp_path / "run")


def test_a_server_that_is_killed_comes_back_on_its_address(
    run: tuple[subprocess.Popen[str], str], tmp_path: Path
) -> None:
    """Whoever asks meanwhile waits and is answered; the run goes on with its polls and ends as ever."""
    process, url = run
    before = server_of(process)
    assert before is not None
    before.kill()
    assert httpx.get(f"{url}/api/health", timeout=_DEADLINE_S, trust_env=False).status_code == 200
    after = server_of(process)
    assert after is not None
    assert after.pid != before.pid
    assert url_of(tmp_path / "run") == url

    def polled() -> int:
        with RecordView.open(tmp_path / "run") as view:
            return view.counts().polls

    seen = polled()
    until(lambda: polled() > seen + 10, "more polls")
    process.send_signal(signal.SIGINT)
    process.wait(timeout=_DEADLINE_S)
    assert process.returncode in {0, 1, 3}
    with RecordView.open(tmp_path / "run") as view:
        assert len(view.spans()) == 1, "one life of the monitor, without a gap"


@pytest.mark.slow
def test_it_ends_with_a_run_that_ends(run: tuple[subprocess.Popen[str], str], tmp_path: Path) -> None:
    """Also with a page open that goes on asking; nothing is left behind that tells of it."""
    process, url = run
    server = server_of(process)
    assert server is not None
    process.send_signal(signal.SIGINT)
    until(lambda: not answers(url) and process.poll() is not None, "the end of the run and its server")
    assert not server.is_running()
    assert not {"web.url", "web.token"} & {file.name for file in (tmp_path / "run").iterdir()}


def test_it_ends_with_a_run_that_is_killed(run: tuple[subprocess.Popen[str], str]) -> None:
    """Nobody is left to tell it so."""
    process, url = run
    server = server_of(process)
    assert server is not None
    process.kill()
    process.wait()
    until(lambda: not server.is_running() or server.status() == psutil.STATUS_ZOMBIE, "the end of the server")
    assert not answers(url)


def test_a_run_is_stopped_from_its_page_and_seen_to_its_end(
    run: tuple[subprocess.Popen[str], str], tmp_path: Path
) -> None:
    """It is judged and reported with the reason; a page that is open sees the verdict and can take the report along."""
    process, url = run
    token = (tmp_path / "run" / "web.token").read_text(encoding="ascii").strip()
    seen: dict[str, object] = {}
    with httpx.Client(
        base_url=url, headers={"authorization": f"Bearer {token}"}, timeout=_DEADLINE_S, trust_env=False
    ) as client:

        def begun() -> bool:
            return bool(client.get("/api/runs/last/state").json()["sources"][0]["got"] > 5)

        until(begun, "some polls")
        assert client.post("/api/runs/last/stop", json={"reason": "the lab is needed"}).status_code == 202

        def reported() -> bool:
            seen.update(client.get("/api/runs/last/state").json())
            return bool(seen["report"])

        until(reported, "the report")
        assert seen["state"] == "ended"
        assert seen["verdict"] in {"pass", "fail", "inconclusive"}
        page = client.get("/runs/last/report").text
    process.wait(timeout=_DEADLINE_S)
    assert process.returncode in {0, 1, 3}
    verdict = json.loads((tmp_path / "run" / "verdict.json").read_text(encoding="utf-8"))
    assert "ended early" in str(verdict)
    assert "the lab is needed" in page
