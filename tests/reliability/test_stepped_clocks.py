"""Wall clocks that are set at random moments of a run: said once each, every poll on its grid, and nothing fails."""

from __future__ import annotations

import os
import random
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from tests.commands import SOAKWATCH, Tally, command_in, environment, wait_until
from tests.needs import needs

from soakwatch.core.errors import RecordError
from soakwatch.core.event_kinds import CLOCK_STEP
from soakwatch.record import RecordView
from soakwatch_model.finding import Outcome

ATTEMPTS = int(os.environ.get("ATTEMPTS", "20"))
AT_ONCE = 2
SECONDS = 24
PERIOD_NS = 500_000_000
PLAN = f"""\
name: clock
duration: {SECONDS}s
targets: {{dut: {{sources: [{{local: {{interval: 500ms, probes: [cpu]}}}}]}}}}
"""
STEPS_S = (3, 60, 3600, 86_400, 366 * 86_400)


@dataclass(frozen=True)
class Attempt:
    """A clock that is set once, by so many seconds, so long after the monitor's first look at it."""

    number: int
    step_s: int
    wait_s: float


def attempts(seed: int) -> list[Attempt]:
    """What is tried: steps of every size, forward and back; the same for the same seed."""
    dice = random.Random(seed)
    return [
        Attempt(number, dice.choice((1, -1)) * STEPS_S[number % len(STEPS_S)], dice.uniform(0, 4))
        for number in range(ATTEMPTS)
    ]


def looks(run: Path) -> int:
    """How often the monitor has compared its clocks; 0 before there is a record."""
    try:
        with RecordView.open(run) as view:
            return max((len(view.series(key)) for key in view.keys(["monitor.clock.offset"])), default=0)
    except RecordError:
        return 0


def tried(attempt: Attempt, folder: Path) -> list[str]:
    """What went wrong in one attempt."""
    folder.mkdir()
    (folder / "p.yaml").write_text(PLAN, encoding="utf-8")
    control, run = folder / "faketime", folder / "run"
    control.write_text("+0", encoding="utf-8")
    (library,) = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    settable = {
        **environment(),
        "LD_PRELOAD": str(library),
        "FAKETIME_TIMESTAMP_FILE": str(control),
        "FAKETIME_NO_CACHE": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }
    words = [str(SOAKWATCH), "run", "p.yaml", "--into", "run", "--no-web"]
    with subprocess.Popen(words, cwd=folder, env=settable, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            wait_until(lambda: looks(run) > 1 or process.poll() is not None, "the monitor's look at its clocks")
            time.sleep(attempt.wait_s)  # the moment that is tried
            control.write_text(f"{attempt.step_s:+d}", encoding="utf-8")
            said = process.communicate(timeout=240)[0].decode()
        finally:
            process.kill()
    problems = _of_the_run(run, process.returncode, attempt.step_s) + _judged_again(folder, process.returncode)
    return [*problems, said] if problems else []


def _of_the_run(run: Path, code: int, step_s: int) -> list[str]:
    problems = [] if code in {0, 3} else [f"exit code {code}"]
    with RecordView.open(run) as view:
        problems += [f"{f.rule} failed" for f in view.findings(live=False) if f.outcome is Outcome.FAIL]
        steps = [float(s.event.detail["seconds"]) for s in view.events() if s.event.kind == CLOCK_STEP]
        if [round(step) for step in steps] != [step_s]:
            problems.append(f"steps told: {steps}")
        (source,) = [source for source in view.sources() if source.target == "dut"]
        polls, _ = view.polls_after("", 10_000)
        due = [poll.due_ns for poll in polls if poll.source == source.id]
    if off := [later - earlier for earlier, later in pairwise(due) if later - earlier != PERIOD_NS]:
        problems.append(f"distances of polls: {off}")
    if len(due) < SECONDS * 2 * 0.8:  # of a short run the begin counts: the device is met first, under a slow clock
        problems.append(f"{len(due)} polls instead of {SECONDS * 2}")
    return problems


def _judged_again(folder: Path, code: int) -> list[str]:
    judged = command_in(folder)("judge", "run")
    return [] if judged.returncode == code else [f"judged again: {judged.returncode}: {judged.stderr}"]


@pytest.mark.slow
@pytest.mark.punctual
@pytest.mark.timeout(7200)
def test_no_step_of_the_wall_clock_harms_a_run(tmp_path: Path, tally: Tally) -> None:
    """By 3 s to a year, forward and back: one event each, every poll on its grid, and the verdict as judged later."""
    needs("faketime")
    planned = attempts(seed=47)
    with ThreadPoolExecutor(AT_ONCE) as crew:
        results = list(crew.map(lambda one: tried(one, tmp_path / str(one.number)), planned))
    failures = [f"{one}: {'; '.join(problems)}" for one, problems in zip(planned, results, strict=True) if problems]
    what = "wall clocks set by 3 s to a year, forward and back, at random moments of a run (faketime)"
    tally(what, len(planned), failures)
