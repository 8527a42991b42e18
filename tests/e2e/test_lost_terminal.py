"""A run whose output goes nowhere, and one of whose report files cannot be written: its verdict counts all the same."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from tests.commands import MAX_WAIT_S, SOAKWATCH, Command, environment, start, wait_until
from tests.reliability.lost_terminals import PLAN, shortfalls

from soakwatch.record import RecordView


@pytest.mark.slow
def test_a_run_outlives_its_terminal_and_resume_writes_the_report_that_could_not_be_written(
    tmp_path: Path, soakwatch: Command
) -> None:
    """Hung up, and nobody reads what it prints: judged, its hook run, its other reports written, and its exit code is
    the verdict's. Resumed, it makes up for the missing file and no more."""
    (tmp_path / "p.yaml").write_text(PLAN.format(seconds=4), encoding="utf-8")
    run = tmp_path / "run"
    (run / "junit.xml").mkdir(parents=True)  # a file of this name cannot be written
    reader, writer = os.pipe()
    process = start(("run", "p.yaml", "--into", "run", "--no-web"), tmp_path, stdout=writer)
    os.close(writer)
    try:
        wait_until((run / "record.sqlite").is_file, "the record")
        os.close(reader)
        process.send_signal(signal.SIGHUP)
        _, said = process.communicate(timeout=240)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 3
    assert shortfalls(run, process.returncode) == ["no junit.xml"]
    unwritten = "run/junit.xml cannot be written: Is a directory: put that right, then write it with"
    assert said.splitlines() == [
        "soakwatch: standard output is lost (Broken pipe): the work goes on without it",
        f"soakwatch: {unwritten} soakwatch resume run",
    ]
    with RecordView.open(run) as view:
        lost = [stored.event.object for stored in view.events() if stored.event.kind == "terminal.lost"]
    assert lost == ["standard output"]
    (run / "junit.xml").rmdir()
    resumed = soakwatch("resume", "run")
    assert (resumed.returncode, resumed.stderr) == (3, "")
    assert "INCONCLUSIVE" in resumed.stdout
    assert shortfalls(run, 3) == [], "its hook was run once"


SLOW_IMPORT = """\
import sys, time
from pathlib import Path

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "soakwatch.cli.commands.run":
            Path("importing").touch()
            time.sleep(2)

sys.meta_path.insert(0, Slow())
"""


@pytest.mark.slow
def test_a_terminal_that_goes_before_the_command_is_there_ends_no_run(tmp_path: Path) -> None:
    """On a busy machine the libraries of a command take a second to come: a hang-up meanwhile is survived too."""
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow" / "sitecustomize.py").write_text(SLOW_IMPORT, encoding="utf-8")
    process = subprocess.Popen(
        [SOAKWATCH, "run", "--target", "local", "--duration", "2s", "--no-web", "--into", "run"],
        cwd=tmp_path,
        env={**environment(), "PYTHONPATH": str(tmp_path / "slow")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_until((tmp_path / "importing").exists, "the import of the command")
    process.send_signal(signal.SIGHUP)
    assert process.wait(MAX_WAIT_S) in {0, 1, 3}, "a verdict, whatever else this machine does"
    assert (tmp_path / "run" / "verdict.json").is_file()
