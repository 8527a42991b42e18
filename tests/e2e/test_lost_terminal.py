"""A run whose output goes nowhere, and one of whose report files cannot be written: its verdict counts all the same."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from tests.commands import Command, wait_until
from tests.reliability.lost_terminals import PLAN, shortfalls, ways

from soakwatch.record import RecordView


def test_a_run_outlives_its_terminal_and_resume_writes_the_report_that_could_not_be_written(
    tmp_path: Path, soakwatch: Command
) -> None:
    """Hung up, and nobody reads what it prints: judged, its hook run, its other reports written, and its exit code is
    the verdict's. Resumed, it makes up for the missing file and no more; then nothing is left."""
    (tmp_path / "p.yaml").write_text(PLAN.format(seconds=2), encoding="utf-8")
    run = tmp_path / "run"
    (run / "junit.xml").mkdir(parents=True)  # a file of this name cannot be written
    lost = ways()["both pipes' reader gone"](["run", "p.yaml", "--into", "run", "--no-web"], tmp_path)
    try:
        wait_until((run / "record.sqlite").is_file, "the record")
        lost.vanish()
        os.kill(lost.process.pid, signal.SIGHUP)
        code = lost.process.wait(240)
    finally:
        lost.process.kill()
        lost.close()
    assert code == 3
    assert shortfalls(run, code) == ["no junit.xml"]
    with RecordView.open(run) as view:
        lost_streams = [stored.event.object for stored in view.events() if stored.event.kind == "terminal.lost"]
    assert lost_streams == ["standard output", "standard error"]
    with_trouble = soakwatch("resume", "run")
    assert with_trouble.returncode == 3
    assert "INCONCLUSIVE" in with_trouble.stdout
    assert "run/junit.xml cannot be written: Is a directory" in with_trouble.stderr
    (run / "junit.xml").rmdir()
    assert soakwatch("resume", "run").returncode == 3
    assert shortfalls(run, 3) == [], "its hook was run once"
    done: subprocess.CompletedProcess[str] = soakwatch("resume", "run")
    assert done.returncode == 2
    assert "run has ended, its verdict is inconclusive, and nothing of it is left to be done" in done.stderr
