"""The command ``diagnose``: looks by hand at a real process, shown again from their folder, and those of a run."""

from __future__ import annotations

import json
from pathlib import Path

from tests.collector.engine.test_diagnosing import GROWS, ON, looked, program
from tests.in_process import command_here


def test_looks_by_hand_are_taken_compared_and_kept(tmp_path: Path) -> None:
    """Progress goes to standard error, JSON to standard output, the looks into a folder that is shown again."""
    soakwatch = command_here(tmp_path)
    with program() as pid:
        done = soakwatch("diagnose", "local", "--process", f"pid:{pid}", "--every", "1s", "--out", "taken", "--json")
    assert done.returncode == 0, done.stderr
    (process,) = json.loads(done.stdout)["processes"]
    assert (process["pid"], process["runtime"], len(process["looks"])) == (pid, "python", 2)
    assert (process["reading"], process["undecided"]) == ("not decided", "no account of the allocator")
    assert "look 1 of 2: no measured stop" in done.stderr
    assert "look 2 follows in 1 s" in done.stderr
    assert len(list((tmp_path / "taken").glob("*-look.json"))) == 2
    again = soakwatch("diagnose", "taken")
    assert "not decided: the allocator's own account is missing" in again.stdout
    assert "gdb: no debugger is allowed" in again.stdout


def test_a_run_shows_what_it_took(tmp_path: Path) -> None:
    """By its plan; without any the remedy is named."""
    soakwatch = command_here(tmp_path)
    with program() as pid:
        looked(tmp_path / "with", ON, pid, GROWS)
        looked(tmp_path / "without", "", pid, GROWS)
        looked(tmp_path / "calm", ON, pid)
    shown = soakwatch("diagnose", "with")
    assert shown.returncode == 0, shown.stderr
    assert "dut app" in shown.stdout
    none = soakwatch("diagnose", "without")
    assert (none.returncode, none.stdout) == (1, "")
    assert (
        "without holds no looks: its plan asked for none: look now: --process NAME, or write 'diagnose:" in none.stderr
    )
    calm = soakwatch("diagnose", "calm")
    assert (calm.returncode, calm.stdout) == (1, "")
    assert "calm holds no looks: no process that it watched was suspected before its end: look now" in calm.stderr


def test_a_process_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    """And so is a process that is not named."""
    soakwatch = command_here(tmp_path)
    gone = soakwatch("diagnose", "local", "--process", "no-such-program")
    assert gone.returncode != 0
    assert "no process 'no-such-program' is running" in gone.stderr
    assert "name the process" in soakwatch("diagnose", "local").stderr
