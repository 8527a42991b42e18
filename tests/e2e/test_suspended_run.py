"""Runs that stand still, stopped with all their processes or on a suspended machine: what was not polled is told,
nobody else is blamed, and the run ends when it was planned to."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from itertools import pairwise
from pathlib import Path

import pytest
from tests.commands import MAX_WAIT_S, SOAKWATCH, command_in, environment, wait_until
from tests.needs import needs

from soakwatch.core.errors import RecordError
from soakwatch.core.event_kinds import CLOCK_STEP
from soakwatch.record import RecordView
from soakwatch_model.finding import Outcome

SECOND = 10**9
SECONDS = 40
PLAN = f"""\
name: night
duration: {SECONDS}s
targets: {{dut: {{sources: [{{local: {{interval: 1s, probes: [cpu]}}}}]}}}}
"""
SUSPENDED = """\
import time
from pathlib import Path

AHEAD, real = Path("ahead"), time.clock_gettime_ns


def clock_gettime_ns(clock):
    ahead = int(AHEAD.read_text() or 0) if clock == time.CLOCK_BOOTTIME and AHEAD.exists() else 0
    return real(clock) + ahead


time.clock_gettime_ns = clock_gettime_ns
"""
"""Sets CLOCK_BOOTTIME forward, as suspend does: the monotonic clock, by which timers and timeouts run, stands still."""


def _due(run: Path) -> list[int]:
    """The due times of the device's polls so far."""
    due: list[int] = []
    try:
        with RecordView.open(run) as view:
            (source,) = [source.id for source in view.sources() if source.target == "dut"]
            cursor = ""
            while True:
                polls, cursor = view.polls_after(cursor, 5000)
                if not polls:
                    return sorted(due)
                due += [poll.due_ns for poll in polls if poll.source == source]
    except (RecordError, ValueError):
        return []


def _waits_for_polls(run: Path, more: int) -> None:
    before = len(_due(run))
    wait_until(lambda: len(_due(run)) >= before + more, f"{more} polls")


def _started(folder: Path, **variables: str) -> subprocess.Popen[str]:
    (folder / "p.yaml").write_text(PLAN, encoding="utf-8")
    return subprocess.Popen(
        [SOAKWATCH, "run", "p.yaml", "--into", "run", "--no-web"],
        cwd=folder,
        env={**environment(), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _family(process: subprocess.Popen[str]) -> list[int]:
    children = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=False)
    return [process.pid, *map(int, children.stdout.split())]


def _is_honest(run: Path, code: int, said: str, standstills: int) -> None:
    """The gaps are events, each due time has one poll, those that were not asked for are so called, and the verdict is
    inconclusive for the lack of them alone."""
    assert code == 3, said
    with RecordView.open(run) as view:
        gaps = [stored.event for stored in view.events() if stored.event.kind == "gap"]
        findings = view.findings(live=False)
    assert len(gaps) == standstills, gaps
    assert all("stood still" in event.detail["cause"] for event in gaps)
    due = _due(run)
    assert {later - sooner for sooner, later in pairwise(due)} == {SECOND}
    assert len(due) in {SECONDS - 1, SECONDS, SECONDS + 1}
    assert [finding.rule for finding in findings if finding.outcome is Outcome.FAIL] == []
    (coverage,) = [f for f in findings if f.rule == "coverage" and f.target == "dut"]
    assert coverage.outcome is Outcome.INCONCLUSIVE
    assert "missed by the monitor" in coverage.reason
    assert "did not answer" not in said
    assert "because of the device" not in said
    judged = command_in(run.parent)("judge", "run")
    assert judged.returncode == code


@pytest.mark.slow
def test_a_run_that_is_stopped_for_intervals_under_a_clock_that_is_set_blames_nobody(tmp_path: Path) -> None:
    """All its processes stopped twice, and its wall clock set forward by two hours meanwhile."""
    needs("faketime")
    (library,) = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    control, run = tmp_path / "faketime", tmp_path / "run"
    control.write_text("+0", encoding="utf-8")
    faked = {
        "LD_PRELOAD": str(library),
        "FAKETIME_TIMESTAMP_FILE": str(control),
        "FAKETIME_NO_CACHE": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }
    with _started(tmp_path, **faked) as process:
        try:
            for stopped_s, step in ((7.0, "+7200"), (9.0, "+7200")):
                _waits_for_polls(run, 4)
                family = _family(process)
                for pid in family:
                    os.kill(pid, signal.SIGSTOP)
                time.sleep(stopped_s)  # the standstill that is tried
                control.write_text(step, encoding="utf-8")
                for pid in family:
                    os.kill(pid, signal.SIGCONT)
            said, _ = process.communicate(timeout=MAX_WAIT_S)
        finally:
            process.kill()
    _is_honest(run, process.returncode, said, 2)
    with RecordView.open(run) as view:
        steps = [stored.event for stored in view.events() if stored.event.kind == CLOCK_STEP]
    assert [round(float(event.detail["seconds"])) for event in steps] == [7200]


@pytest.mark.slow
@pytest.mark.parametrize("asleep_s", [12, 3600], ids=["within", "beyond-its-end"])
def test_a_run_on_a_machine_that_is_suspended_ends_when_it_was_planned_to(tmp_path: Path, asleep_s: int) -> None:
    """Also if the machine wakes after that: the run is over at once, not by so much later."""
    (tmp_path / "sitecustomize.py").write_text(SUSPENDED, encoding="utf-8")
    run = tmp_path / "run"
    with _started(tmp_path, PYTHONPATH=str(tmp_path)) as process:
        try:
            _waits_for_polls(run, 5)
            (tmp_path / "ahead.new").write_text(str(asleep_s * SECOND), encoding="utf-8")
            (tmp_path / "ahead.new").rename(tmp_path / "ahead")
            said, _ = process.communicate(timeout=MAX_WAIT_S)
        finally:
            process.kill()
    _is_honest(run, process.returncode, said, 1)
    due = _due(run)
    assert due[-1] - due[0] <= SECONDS * SECOND
    ended = re.search(r"finished after (\d+) s", said)
    assert ended, said
    assert abs(int(ended[1]) - SECONDS) <= 1
