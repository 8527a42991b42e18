"""Kills before the first poll, and in the middle of the final judging: each such run is resumed to its verdict."""

from __future__ import annotations

import os
import random
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.collector.engine.notify.notify_kit import Posts, posts
from tests.commands import SOAKWATCH, Tally, command_in, environment, wait_until
from tests.reliability.lost_terminals import PLAN, shortfalls

from soakwatch.core.errors import RecordError
from soakwatch.record import RecordView

KILLS = int(os.environ.get("ATTEMPTS", "30"))
AT_ONCE = 3
DONE = "nothing of it is left to be done"
LETTER = "notify: [{to: file:address, on: [end]}]\n"
MOMENTS = ("before the first poll", "while it waits for its start", "in the final judging")


def has_ended(run: Path) -> bool:
    """Whether the run in a folder is over, and is being judged."""
    try:
        with RecordView.open(run) as view:
            return view.meta("ended_ns") is not None
    except RecordError:
        return False


def killed(moment: str, wait_s: float, folder: Path, letters: Posts) -> None:
    """Start a run and kill it at a moment."""
    folder.mkdir()
    (folder / "address").write_text(f"json://127.0.0.1:{letters.port}/{folder.name}", encoding="utf-8")
    (folder / "address").chmod(0o600)
    start = ""
    if moment == MOMENTS[1]:
        at = datetime.now(UTC) + timedelta(seconds=20)
        start = f"start: {at:%Y-%m-%dT%H:%M:%SZ}\n"
    (folder / "p.yaml").write_text(start + LETTER + PLAN.format(seconds=3), encoding="utf-8")
    with (folder / "stderr").open("wb") as stderr:
        process = subprocess.Popen(
            [SOAKWATCH, "run", "p.yaml", "--into", "run", "--no-web"],
            cwd=folder,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=stderr,
        )
    run = folder / "run"
    try:
        if moment == MOMENTS[2]:
            wait_until(lambda: has_ended(run) or process.poll() is not None, "the end")
        else:
            wait_until(lambda: (run / "record.sqlite").is_file() or process.poll() is not None, "the record")
            assert (run / "record.sqlite").is_file(), (folder / "stderr").read_text(encoding="utf-8")
        time.sleep(wait_s)  # the moment that is tried
    finally:
        process.kill()
        process.wait()


def tried(moment: str, wait_s: float, folder: Path, letters: Posts) -> list[str]:
    """What went wrong in one attempt."""
    killed(moment, wait_s, folder, letters)
    soakwatch = command_in(folder)
    resumed = soakwatch("resume", "run", "--no-web", timeout=900)
    doubt = "may have run" in resumed.stderr
    too_late = resumed.returncode == 2 and DONE in resumed.stderr  # all had been done before the kill
    problems = shortfalls(folder / "run", None if too_late else resumed.returncode, in_doubt=doubt)
    sent, doubt = letters.paths.count(f"/{folder.name}"), "may have been sent" in resumed.stderr
    if sent != 1 and not (doubt and sent == 0):
        problems.append(f"{sent} letters of the verdict")
    again = soakwatch("resume", "run", timeout=900)
    if again.returncode != 2 or DONE not in again.stderr:
        problems.append(f"a second resume: {again.returncode}: {again.stdout}{again.stderr}")
    return [*problems, resumed.stderr] if problems else []


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_every_run_killed_at_its_ends_is_resumed_to_its_verdict(tmp_path: Path, tally: Tally) -> None:
    """Verdict, report files and exit code are there, and hook and letter of the end came once (or may have: then that
    is said)."""
    rng = random.Random(42)
    planned = [
        (MOMENTS[n % 3], rng.uniform(0, 1.0 if n % 3 == 2 else 0.6), tmp_path / str(n))  # seconds
        for n in range(KILLS)
    ]
    with posts() as letters, ThreadPoolExecutor(AT_ONCE) as crew:
        results = list(crew.map(lambda one: tried(one[0], one[1], one[2], letters), planned))
    failures = [f"{one}: {'; '.join(problems)}" for one, problems in zip(planned, results, strict=True) if problems]
    what = "kills before the first poll, while waiting for `start:`, and in the final judging"
    tally(f"{what}: hook and letter of the end once", len(planned), failures)
