"""Notes about runs, and whether their records are sealed, in the list of runs."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from tests.commands import Command


def _listed(soakwatch: Command) -> dict[str, object]:
    (run,) = json.loads(soakwatch("runs", "--json").stdout)
    assert isinstance(run, dict)
    return run


@pytest.mark.slow
def test_a_note_is_shown_and_changes_nothing_of_the_record(tmp_path: Path, soakwatch: Command) -> None:
    done = soakwatch("run", "--target", "local", "--duration", "2s", "--no-web")
    assert done.returncode in {0, 3}, done.stderr
    assert (_listed(soakwatch)["seal"], _listed(soakwatch)["note"]) == ("sealed", None)
    assert soakwatch("note", "last").stdout == "last has no note\n"
    assert soakwatch("note", "last", "fan 2 was replaced\n at 14:10\x1b[2J").returncode == 0
    assert "fan 2 was replaced at 14:10" in str(_listed(soakwatch)["note"])
    assert "fan 2 was replaced at 14:10" in soakwatch("note", "last").stdout
    assert "\x1b" not in soakwatch("note", "last").stdout + soakwatch("runs").stdout
    assert "fan 2" in soakwatch("runs").stdout
    (file,) = tmp_path.glob("runs/*/note.txt")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "whole and as sealed" in soakwatch("verify", "last").stdout
    too_long = soakwatch("note", "last", "x" * 501)
    assert too_long.returncode != 0
    assert "a note has at most 500 characters, and this one 501" in too_long.stderr
    assert soakwatch("note", "last", "text", "--remove").returncode == 2
    assert soakwatch("note", "last", "--remove").returncode == 0
    assert not file.exists()
    assert _listed(soakwatch)["note"] is None
