"""A real run whose live judge is woken: what happens is judged while a run lasts that ends before its first minute."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.collector.cli.terminals import SOAKWATCH

from soakwatch.core.errors import SoakwatchError
from soakwatch.judge.live.client import JUDGE_EVERY_S
from soakwatch.record import RecordView
from soakwatch.runs.mark_event import EventRequest, record_event
from soakwatch.runs.state import RunState, StateReader
from soakwatch.runs.stop import stop_run
from soakwatch_rules.rule import Outcome

LASTS_S = 50
assert LASTS_S < JUDGE_EVERY_S  # so that no evaluation falls due by itself


def state_when(
    soak: subprocess.Popen[bytes], folder: Path, happened: Callable[[RunState], bool], what: str
) -> RunState:
    """The state of the run in which something has happened, while it goes on."""
    reader = StateReader(folder)
    while True:
        time.sleep(0.1)
        assert soak.poll() is None, f"the run ended without {what}"
        try:
            state = reader.read(time.time_ns())
        except SoakwatchError:
            continue  # it is only beginning
        assert state.standing != "ended", f"the run ended without {what}"
        if happened(state):
            return state


def test_a_killed_process_and_an_event_are_judged_while_a_short_run_goes_on(tmp_path: Path) -> None:
    """The finding is in the record, and the judging came after what woke the judge, before any evaluation was due."""
    run = tmp_path / "run"
    worker = subprocess.Popen([sys.executable, "-c", "import time\nwhile True:\n    time.sleep(1)"])
    command = [
        str(SOAKWATCH),
        "run",
        "--process",
        f"pid:{worker.pid}",
        "--interval",
        "500ms",
        "--duration",
        f"{LASTS_S}s",
        "--into",
        str(run),
        "--no-web",
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as soak:
        try:
            state_when(soak, run, lambda state: any(source.got > 2 for source in state.sources), "answered polls")
            worker.kill()
            worker.wait()
            failing = state_when(
                soak,
                run,
                lambda state: any(finding.outcome is Outcome.FAIL for finding in state.findings),
                "a live failure",
            )
            assert {finding.rule for finding in failing.findings if finding.outcome is Outcome.FAIL} == {
                "process_restart"
            }
            event = record_event(run, EventRequest("mark", "config"), time.time_ns()).event
            state_when(soak, run, lambda state: (state.judged_ns or 0) >= event.begin_ns, "a look after the event")
            stop_run(run, StateReader(run).read(time.time_ns()), "seen", "test")
            assert soak.wait(240) == 1
        finally:
            worker.kill()
            soak.kill()
    with RecordView.open(run) as view:
        assert view.meta("verdict") == "fail"
