"""Two hundred terminals that are lost at random moments: no run ends for it, and none loses anything."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.commands import SOAKWATCH, environment, wait_until
from tests.reliability.lost_terminals import PLAN, shortfalls, ways

ATTEMPTS = int(os.environ.get("ATTEMPTS", "200"))
AT_ONCE = 4
_CAMPAIGN = """\
name: one
plan: p.yaml
matrix: {every: {set: targets.dut.sources.local.interval, values: [250ms]}}
"""
_LONGEST_S = 900.0


@dataclass(frozen=True)
class Attempt:
    """One terminal of one command: ``moment`` is a share of the run, and its judging, after which it vanishes."""

    number: int
    command: str
    way: str
    seconds: int
    moment: float


def attempts(seed: int) -> list[Attempt]:
    """What is tried; the same for the same seed."""
    rng = random.Random(seed)
    commands = ["run"] * 8 + ["resume", "campaign"]
    return [
        Attempt(number, rng.choice(commands), rng.choice(sorted(ways())), rng.randint(3, 6), rng.uniform(0, 1.5))
        for number in range(ATTEMPTS)
    ]


def tried(attempt: Attempt, folder: Path) -> list[str]:
    """What went wrong in one attempt."""
    folder.mkdir(mode=0o700)
    (folder / "p.yaml").write_text(PLAN.format(seconds=attempt.seconds), encoding="utf-8")
    (folder / "campaign.yaml").write_text(_CAMPAIGN, encoding="utf-8")
    run = folder / "run"
    words: list[object] = ["run", "p.yaml", "--into", "run", "--no-web"]
    if attempt.command == "resume":
        killed = subprocess.Popen(
            [SOAKWATCH, *map(str, words)],
            cwd=folder,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_until(lambda: (run / "record.sqlite").is_file() or killed.poll() is not None, "the first record")
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        words = ["resume", "run", "--no-web"]
    if attempt.command == "campaign":
        words = ["campaign", "run", "campaign.yaml"]
        run = folder / "campaigns" / "one"
    lost = ways()[attempt.way](words, folder)
    try:
        there = (run / "ledger.jsonl") if attempt.command == "campaign" else run / "record.sqlite"
        wait_until(lambda: there.is_file() or lost.process.poll() is not None, "the begin")
        time.sleep(attempt.moment * attempt.seconds)  # the moment that is tried
        lost.vanish()
        try:
            code = lost.process.wait(_LONGEST_S)
        except subprocess.TimeoutExpired:
            return [f"it had not ended after {_LONGEST_S:g} s"]
    finally:
        lost.process.kill()
        lost.process.wait()
        lost.close()
    if attempt.command == "campaign":
        run = next((run / "runs").glob("*"), run)
    return shortfalls(run, code)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_no_lost_terminal_costs_a_run_anything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever becomes of it, and when: judged, reported, hooks run once, and the exit code is the verdict's."""
    planned = attempts(seed=41)
    with ThreadPoolExecutor(AT_ONCE) as crew:
        results = list(crew.map(lambda one: tried(one, tmp_path / str(one.number)), planned))
    failures = [f"{one}: {'; '.join(problems)}" for one, problems in zip(planned, results, strict=True) if problems]
    ways_tried = ", ".join(f"{count} × {way}" for way, count in sorted(Counter(one.way for one in planned).items()))
    with capsys.disabled():
        print(f"\nlost terminals: {len(planned)} attempts, {len(failures)} failures ({ways_tried})")
    assert not failures, "\n".join(failures)
