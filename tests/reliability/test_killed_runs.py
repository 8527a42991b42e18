"""Runs whose monitor is killed at random moments, again and again, and resumed: nothing that was committed is lost."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from tests.commands import SOAKWATCH, Tally, command_in, environment, wait_until

from soakwatch.core.errors import RecordError
from soakwatch.record import RecordView

KILLS = int(os.environ.get("ATTEMPTS", "45"))
AT_ONCE = 3
PLAN = """\
name: killed
duration: 12h
targets: {dut: {sources: [{local: {interval: 200ms, probes: [cpu]}}]}}
"""
_LONGEST_S = 3.0
_PERIOD_NS = 200_000_000


@dataclass
class Account:
    """What became of one run: its kills, the polls that were lost with one, and what went wrong."""

    kills: int = 0
    lost: list[int] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def answered(run: Path) -> Counter[int]:
    """How often each due time of the device was answered, as it is committed."""
    with RecordView.open(run) as view:
        (source,) = [source for source in view.sources() if source.target == "dut"]
        due_ns: Counter[int] = Counter()
        cursor = ""
        while True:
            polls, cursor = view.polls_after(cursor, 5000)
            if not polls:
                return due_ns
            due_ns.update(poll.due_ns for poll in polls if poll.source == source.id and poll.answer.samples)


def newest(run: Path) -> int:
    """When the last answered poll was due; 0 before the first."""
    try:
        return max(answered(run), default=0)
    except (RecordError, ValueError):
        return 0


def _goes_on(run: Path, known_ns: int, process: subprocess.Popen[bytes]) -> bool:
    return newest(run) > known_ns or process.poll() is not None


def killed_again_and_again(kills: int, seed: int, folder: Path) -> Account:
    """One run, killed so often and then stopped."""
    account, dice, run = Account(), random.Random(seed), folder / "run"
    folder.mkdir()
    (folder / "p.yaml").write_text(PLAN, encoding="utf-8")
    words: list[str] = ["run", "p.yaml", "--into", "run", "--no-web"]
    before: Counter[int] = Counter()
    for _ in range(kills):
        process = subprocess.Popen(
            [SOAKWATCH, *words],
            cwd=folder,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        words = ["resume", "run", "--no-web"]
        wait_until(partial(_goes_on, run, max(before, default=0), process), "a poll")
        if process.poll() is not None:
            said = process.stderr.read().decode() if process.stderr else ""
            account.problems.append(f"it ended by itself: {said}")
            return account
        time.sleep(dice.uniform(0, _LONGEST_S))  # the moment that is tried
        committed = answered(run)
        killed_ns = time.time_ns()
        process.kill()
        process.communicate()
        account.kills += 1
        with closing(sqlite3.connect(run / "record.sqlite")) as sql:
            if (said := sql.execute("PRAGMA integrity_check").fetchone()[0]) != "ok":
                account.problems.append(f"kill {account.kills}: {said}")
        before = answered(run)
        account.lost.append(round(max(0, killed_ns - max(before)) / _PERIOD_NS))
        if missing := committed - before:
            account.problems.append(f"kill {account.kills}: {len(missing)} committed polls are lost")
    if twice := [due_ns for due_ns, times in before.items() if times > 1]:
        account.problems.append(f"{len(twice)} polls are there twice")
    return _ended(run, folder, account)


def _ended(run: Path, folder: Path, account: Account) -> Account:
    """Resumed for the last time and stopped: each kill is a gap, and the verdict counts them."""
    soakwatch = command_in(folder)
    last = subprocess.Popen(
        [SOAKWATCH, "resume", "run", "--no-web"], cwd=folder, env=environment(), stdout=subprocess.DEVNULL
    )
    wait_until(partial(_goes_on, run, newest(run), last), "the last life")
    soakwatch("stop", "run")
    if (code := last.wait(240)) not in {0, 1, 3}:
        account.problems.append(f"exit code {code}")
    with RecordView.open(run) as view:
        gaps = [stored for stored in view.events() if stored.event.kind == "gap"]
        if view.meta("verdict") is None:
            account.problems.append("no verdict")
    if len(gaps) != account.kills:
        account.problems.append(f"{len(gaps)} gaps after {account.kills} kills")
    return account


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
def test_what_was_committed_survives_every_kill(tmp_path: Path, tally: Tally) -> None:
    shares = [KILLS // AT_ONCE + (number < KILLS % AT_ONCE) for number in range(AT_ONCE)]
    with ThreadPoolExecutor(AT_ONCE) as crew:
        accounts = list(
            crew.map(lambda n: killed_again_and_again(shares[n], 42 + n, tmp_path / str(n)), range(AT_ONCE))
        )
    problems = [problem for account in accounts for problem in account.problems]
    lost = [polls for account in accounts for polls in account.lost]
    what = "kills at random moments of a run that is resumed after each, 200 ms"
    tally(f"{what}: at most {max(lost, default=0)} polls lost with a kill", len(lost), problems)
    assert len(lost) == KILLS
