"""The wall clock of the monitor is set while a run goes on: it is reported, and is nobody's failure."""

from __future__ import annotations

import asyncio
import io
import os
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from rich.console import Console
from tests.needs import needs

from soakwatch.cli.display.progress import Lines
from soakwatch.core.errors import RecordError
from soakwatch.core.event_kinds import CLOCK_STEP
from soakwatch.engine.self_monitor import LoopLag, SelfWatch
from soakwatch.record import RecordView, StoredEvent
from soakwatch.runs.clock_steps import step_words
from soakwatch.runs.run_status import Status
from soakwatch_model.event import Event
from soakwatch_model.finding import Outcome

SECOND, HOUR = 10**9, 3600 * 10**9
T0 = 1_795_204_800 * SECOND


class SteppingClock:
    """A steady clock whose wall clock is set as the test says."""

    def __init__(self) -> None:
        self.now, self.ahead = T0, 0

    def now_ns(self) -> int:
        """Steady time."""
        return self.now

    def wall_ns(self) -> int:
        """The wall clock."""
        return self.now + self.ahead


@pytest.mark.parametrize("step_ns", [HOUR, -HOUR, SECOND])
def test_a_step_is_one_event_and_a_return_another(tmp_path: Path, step_ns: int) -> None:
    """With how far and in which direction; a clock that drifts is none."""
    clock = SteppingClock()
    watch = SelfWatch(clock, tmp_path, LoopLag(clock.now_ns), lambda: [Counter()], tells=False)
    seen = []
    for ahead in (0, SECOND // 100, step_ns, step_ns, 0):
        clock.now, clock.ahead = clock.now + 5 * SECOND, ahead
        seen.append([(e.kind, e.detail["seconds"]) for e in asyncio.run(watch.poll(clock.now)).events])
    moved = (step_ns - SECOND // 100) * 1e-9
    assert seen == [[], [], [(CLOCK_STEP, f"{moved:+.3f}")], [], [(CLOCK_STEP, f"{-step_ns * 1e-9:+.3f}")]]


def test_a_step_is_a_line_of_the_run_once() -> None:
    """With the time of day, the direction, and that the run is not harmed."""
    stored = StoredEvent(1, "monitor", Event(CLOCK_STEP, "", "", T0, T0, {"seconds": "+3600.000"}))
    status = Status("night", "soak", 60.0, 60.0, (), {}, (), None, (), None, clock_steps=(step_words(stored),))
    out = io.StringIO()
    lines = Lines(Console(file=out, width=200))
    lines.show(status)
    lines.show(status)
    said = "the wall clock of the monitor was set forward by 1 h at 2026-11-20 20:00:00 UTC; the run keeps its own time"
    assert out.getvalue().count(said) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("by", "words"), [("+1h", "set forward by 1 h"), ("-1h", "set back by 1 h")])
def test_a_run_under_a_clock_that_is_set_says_so(tmp_path: Path, by: str, words: str) -> None:
    """A whole run: its lines and reports say it, every poll is on its grid, and nothing fails for it."""
    needs("faketime")
    control = tmp_path / "faketime"
    control.write_text("+0", encoding="utf-8")
    (library,) = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    environment = {
        **os.environ,
        "LD_PRELOAD": str(library),
        "FAKETIME_TIMESTAMP_FILE": str(control),
        "FAKETIME_NO_CACHE": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }
    words_of_run = ["run", "--target", "local", "--duration", "40s", "--no-web", "--into", str(tmp_path / "run")]
    command = [sys.executable, "-m", "soakwatch.cli", *words_of_run]
    with (tmp_path / "lines").open("w") as out, subprocess.Popen(command, env=environment, stdout=out) as run:
        _until_polled(tmp_path / "run")
        control.write_text(by, encoding="utf-8")
    lines = (tmp_path / "lines").read_text(encoding="utf-8")
    assert run.returncode in {0, 3}, lines
    assert words in lines, lines
    assert lines.count("the run keeps its own time") == 1, lines
    with RecordView.open(tmp_path / "run") as view:
        assert [f.rule for f in view.findings(live=False) if f.outcome is Outcome.FAIL] == []
        assert [s.event.kind for s in view.events() if s.event.kind == CLOCK_STEP] == [CLOCK_STEP]
    assert words in (tmp_path / "run" / "report.md").read_text(encoding="utf-8")


def _until_polled(folder: Path) -> None:
    """Wait until the monitor has looked at its clock twice."""
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        with suppress(RecordError), RecordView.open(folder) as view:
            if any(key.metric == "monitor.clock.offset" and len(view.series(key)) > 1 for key in view.keys()):  # noqa: SIM118
                return
        time.sleep(0.2)
    raise AssertionError("the monitor did not look at its clock")
