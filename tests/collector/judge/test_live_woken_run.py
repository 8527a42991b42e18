"""A real run whose live judge is woken: what happens is judged at once, in a run in which no evaluation falls due."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.collector.engine.watched_run import acting, wait_for, wait_for_polls
from tests.in_process import command_here

from soakwatch.judge.live import client
from soakwatch.record import RecordView
from soakwatch.runs.mark_event import EventRequest, record_event
from soakwatch.runs.run_state import RunState, StateReader
from soakwatch.runs.stop_run import stop_run
from soakwatch_model.finding import Outcome


def state_when(run: Path, happened: Callable[[RunState], bool], what: str) -> RunState:
    """The state of the run in which something has happened."""
    reader = StateReader(run)
    wait_for(lambda: happened(reader.read(time.time_ns())), what)
    return reader.read(time.time_ns())


@pytest.mark.slow
def test_a_killed_process_and_an_event_are_judged_while_a_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The finding is in the record, and the judging came after what woke the judge, and not because it was time."""
    monkeypatch.setattr(client, "JUDGE_EVERY_S", 86400.0)
    run = tmp_path / "run"
    worker = subprocess.Popen(["sleep", "600"])

    def acts() -> None:
        wait_for_polls(run)
        worker.kill()
        worker.wait()
        failing = state_when(
            run, lambda state: any(finding.outcome is Outcome.FAIL for finding in state.findings), "a live failure"
        )
        assert {finding.rule for finding in failing.findings if finding.outcome is Outcome.FAIL} == {"process_restart"}
        event = record_event(run, EventRequest("mark", "config"), time.time_ns()).event
        seen = state_when(run, lambda state: (state.judged_ns or 0) >= event.begin_ns, "a look after the event")
        assert seen.standing != "ended"
        stop_run(run, seen, "seen", "test")

    words = ("--interval", "500ms", "--duration", "20m", "--into", "run", "--no-web")
    try:
        with acting(acts):
            done = command_here(tmp_path)("run", "--process", f"pid:{worker.pid}", *words)
    finally:
        worker.kill()
        worker.wait()
    assert done.returncode == 1, done.stdout
    with RecordView.open(run) as view:
        assert view.meta("verdict") == "fail"
