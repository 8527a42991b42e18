"""Two hundred terminals that are lost at random moments: no run ends for it, and none loses anything; and those of
`calibrate`, `demo` and `watch`."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.commands import SOAKWATCH, Tally, environment, wait_until
from tests.reliability.lost_terminals import PLAN, catches_hang_up, shortfalls, ways

from soakwatch.core.errors import RecordError
from soakwatch.record import RecordView
from soakwatch.report.files import REPORT_FILES

ATTEMPTS = int(os.environ.get("ATTEMPTS", "200"))
AT_ONCE = 4
_CAMPAIGN = """\
name: one
plan: p.yaml
matrix: {every: {set: targets.dut.sources.local.interval, values: [250ms]}}
"""
_LONGEST_S = 900.0
_GENERATOR = """\
import json, time
begun = time.monotonic()
while True:
    sent = int(900 * (time.monotonic() - begun))
    print(json.dumps({"load.tx.packets": sent, "load.rx.packets": sent}), flush=True)
    time.sleep(0.1)
"""
_GENERATORS = f"""\
duration: 1m
targets:
  dut: {{sources: [local]}}
  tg: {{role: generator, sources: [{{command: {{interval: 500ms, run: [{sys.executable}, generator.py]}}}}]}}
"""


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
        wait_until(
            lambda: (there.is_file() and catches_hang_up(lost.process.pid)) or lost.process.poll() is not None,
            "the begin",
        )  # a resumed run has its record before its process has begun
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
def test_no_lost_terminal_costs_a_run_anything(tmp_path: Path, tally: Tally) -> None:
    """Whatever becomes of it, and when: judged, reported, hooks run once, and the exit code is the verdict's."""
    planned = attempts(seed=41)
    with ThreadPoolExecutor(AT_ONCE) as crew:
        results = list(crew.map(lambda one: tried(one, tmp_path / str(one.number)), planned))
    failures = [f"{one}: {'; '.join(problems)}" for one, problems in zip(planned, results, strict=True) if problems]
    commands = "`run`, `resume` and `campaign run`"
    tally(f"terminals lost in ten ways at random moments of {commands}", len(planned), failures)


def tried_otherwise(way: str, command: str, moment_s: float, folder: Path) -> list[str]:
    """What went wrong with a command other than a run's whose terminal is lost so long after its run began."""
    folder.mkdir(mode=0o700)
    (folder / "generator.py").write_text(_GENERATOR, encoding="utf-8")
    (folder / "p.yaml").write_text(_GENERATORS, encoding="utf-8")
    words: list[object] = (
        ["calibrate", "p.yaml", "--for", "15s", "--levels", "100%"] if command == "calibrate" else ["demo"]
    )
    lost = ways()[way](words, folder)
    records = folder / "runs"
    try:
        wait_until(lambda: any(records.glob("*/record.sqlite")) or lost.process.poll() is not None, "the begin")
        time.sleep(moment_s)  # the moment that is tried
        lost.vanish()
        code = lost.process.wait(_LONGEST_S)
    except subprocess.TimeoutExpired:
        return [f"it had not ended after {_LONGEST_S:g} s"]
    finally:
        lost.process.kill()
        lost.process.wait()
        lost.close()
    problems = [f"exit code {code}"] if code else []
    if command == "calibrate" and not (folder / "p.reference.yaml").is_file():
        problems.append("no reference file")
    for run in records.glob("*/record.sqlite"):
        with RecordView.open(run) as view:
            if view.meta("ended_ns") is None:
                problems.append(f"{run.parent.name} has no end")
        if command == "demo":
            problems += [f"no {name}" for name in REPORT_FILES.values() if not (run.parent / name).is_file()]
    return problems if any(records.glob("*/record.sqlite")) else [*problems, "no record"]


def tried_watching(way: str, folder: Path) -> list[str]:
    """What went wrong with a run whose watcher lost its terminal, and with the watcher."""
    folder.mkdir(mode=0o700)
    (folder / "p.yaml").write_text(PLAN.format(seconds=8), encoding="utf-8")
    run = folder / "run"
    watched = subprocess.Popen(
        [SOAKWATCH, "run", "p.yaml", "--into", "run", "--no-web"],
        cwd=folder,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: _polled(run) or watched.poll() is not None, "the first poll")
        lost = ways()[way](["watch", "run"], folder)
        try:
            time.sleep(1.5)  # the moment that is tried
            lost.vanish()
            watcher = lost.process.wait(_LONGEST_S)
        finally:
            lost.process.kill()
            lost.process.wait()
            lost.close()
        code = watched.wait(_LONGEST_S)
    finally:
        watched.kill()
        watched.wait()
    # 0: it saw the end; 141 or SIGHUP (-1, 129): its terminal went before
    problems = [] if watcher in {0, 141, 129, -1} else [f"watch ended with {watcher}"]
    return [*problems, *shortfalls(run, code)]


def _polled(run: Path) -> bool:
    try:
        with RecordView.open(run) as view:
            return view.counts().polls > 0
    except RecordError:
        return False


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_calibrate_demo_and_watch_lose_their_terminals_too(tmp_path: Path, tally: Tally) -> None:
    """In every way: a calibration gives its reference file, a demo its verdict, and whoever is watched runs on."""
    dice = random.Random(43)
    done: dict[str, list[str]] = {}
    for way in sorted(ways()):
        done[f"calibrate, {way}"] = tried_otherwise(way, "calibrate", dice.uniform(0, 12), tmp_path / f"c{len(done)}")
        done[f"watch, {way}"] = tried_watching(way, tmp_path / f"w{len(done)}")
    for way in ("both pipes' reader gone", "the terminal gone, with SIGHUP"):
        done[f"demo, {way}"] = tried_otherwise(way, "demo", dice.uniform(5, 100), tmp_path / f"d{len(done)}")
    failures = [f"{what}: {'; '.join(problems)}" for what, problems in done.items() if problems]
    tally("terminals of `calibrate` and `watch` lost, each way once, and of `demo`, twice", len(done), failures)
