"""A real run in a browser: opened by the link of the command, its server killed, marked, stopped, ended."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from tests.browser.conftest import Opens
from tests.browser.tab import Tab
from tests.commands import MAX_WAIT_S, Started, wait_until
from tests.in_process import command_here

from soakwatch.record import RecordView

Run = tuple["subprocess.Popen[str]", Path]
_LATEST = """(before) => soakwatchProbe.models().some((one) => one.time.length > 3
  && one.name.startsWith('series:["local","system.cpu') && one.time[one.time.length - 1] > before)"""


@pytest.fixture
def running(started: Started, tmp_path: Path) -> Run:
    """A run of this machine, served as runs are."""
    process = started("run", "--target", "local", "--interval", "500ms", "--duration", "10m", "--into", "run")
    wait_until((tmp_path / "run" / "web.url").is_file, "a server")
    return process, tmp_path / "run"


def link(run: Path) -> str:
    """What ``soakwatch open --print`` says."""
    done = command_here(run.parent)("open", run, "--print")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def servers(process: subprocess.Popen[str]) -> list[int]:
    """The web server's processes beside a run, those that are over excepted."""
    pids = []
    for child in psutil.Process(process.pid).children(recursive=True):
        with suppress(psutil.Error):
            if "soakwatch.web" in child.cmdline():
                pids.append(child.pid)
    return pids


def last_ms(tab: Tab) -> float:
    """The newest reading in the page."""
    return max(float(line.time[-1]) for line in tab.lines())


def test_a_run_is_watched_to_its_end(tabs: Opens, running: Run) -> None:
    """Lines grow; a killed server is reported and restarted; a stopped run shows its report."""
    process, run = running
    tab = tabs()
    tab.page.goto(link(run), wait_until="load")
    tab.page.wait_for_function(_LATEST, arg=0)
    before = last_ms(tab)
    tab.page.wait_for_function(_LATEST, arg=before)

    tab.forgive("ERR_CONNECTION|ERR_EMPTY_RESPONSE|ERR_SOCKET")
    (server,) = servers(process)
    os.kill(server, signal.SIGKILL)
    wait_until(lambda: set(servers(process)) - {server} != set(), "another server")
    gone = last_ms(tab)
    tab.page.wait_for_function(_LATEST, arg=gone)

    tab.page.keyboard.press("m")
    tab.page.locator("#mark-kind").fill("failover")
    tab.page.keyboard.press("Enter")
    tab.page.locator("#events", has_text="failover").wait_for()

    tab.page.get_by_role("button", name="Stop the run…").click()
    tab.page.locator("#stop-reason").fill("seen enough")
    tab.page.locator("#stop-dialog").get_by_role("button", name="Stop the run", exact=True).click()
    tab.page.locator("#standing", has_text="ended").wait_for()
    frame = tab.page.frame_locator("#report-frame iframe")
    frame.locator("#verdict").wait_for()
    assert process.stdout is not None
    process.stdout.read()
    process.wait(timeout=MAX_WAIT_S)
    assert process.returncode in {0, 1, 3}
    with RecordView.open(run) as view:
        kinds = [stored.event.kind for stored in view.events() if stored.origin == "user"]
    assert kinds.count("failover") == 1
    assert re.search(r"seen enough", (run / "report.html").read_text(encoding="utf-8"))
    assert "seen enough" in (frame.locator("body").text_content() or "")
