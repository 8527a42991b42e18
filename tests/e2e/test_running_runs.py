"""``soakwatch ps`` and the first lines of a run: what goes on in which folder, and what of the plan is not there."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
from tests.commands import Command, command_in, starting_in, wait_until

from soakwatch.record import RecordView

ABSENT = "warning: local: no process 'nosuchd' is running: its findings will be inconclusive"


def _listed(soakwatch: Command) -> list[str]:
    done = soakwatch("ps", "--json")
    assert done.returncode == 0, done.stderr
    return [run["folder"] for run in json.loads(done.stdout)]


def _are_listed(soakwatch: Command, folders: list[str]) -> bool:
    return _listed(soakwatch) == folders


def test_runs_of_all_folders_are_listed_until_they_end_or_are_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folders = [tmp_path / name for name in ("one", "two", "none")]
    for folder in folders:
        folder.mkdir()
    elsewhere = command_in(folders[2])
    assert "no run of this user is running" in elsewhere("ps").stdout
    runs = [str(folder / "run") for folder in folders[:2]]
    with starting_in(folders[0]) as start, starting_in(folders[1]) as start_too:
        words = ("run", "--target", "local", "--duration", "1h", "--no-web", "--into", "run")
        first = start(*words)
        wait_until(partial(_are_listed, elsewhere, runs[:1]), "the first run in the list")
        second = start_too(*words)
        wait_until(partial(_are_listed, elsewhere, runs), "both runs in the list")
        table = elsewhere("ps").stdout
        assert [line.split()[0] for line in table.splitlines()] == ["run", "local", "local"]
        assert runs[0] in table
        assert runs[1] in table
        refused = elsewhere("watch", "last")
        assert refused.returncode != 0
        assert refused.stderr.splitlines()[-1] == (
            f"soakwatch: there is no run in runs/: {runs[1]} is running, and 1 more (soakwatch ps): name that folder"
        )
        first.kill()
        first.wait()
        assert _listed(elsewhere) == runs[1:]
        assert elsewhere("stop", runs[1]).returncode == 0
        second.wait(240)
    assert _listed(elsewhere) == []
    assert list((tmp_path / "state" / "soakwatch" / "running").iterdir()) == []


@pytest.mark.slow
def test_a_state_folder_that_cannot_be_written_stops_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, soakwatch: Command
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    done = soakwatch("run", "--target", "local", "--duration", "2s", "--no-web", "--into", "run")
    assert done.returncode in {0, 1, 3}, done.stderr
    assert soakwatch("ps").returncode == 0


def test_a_process_that_is_not_there_is_said_at_the_start(tmp_path: Path, soakwatch: Command) -> None:
    """On the terminal as soon as the first polls are in, and as an event of the record, which every page shows."""
    words = ("--process", "nosuchd", "--duration", "6s", "--no-web", "--into", "run")
    done = soakwatch("run", *words)
    lines = done.stdout.splitlines()
    assert lines.count(ABSENT) == 1
    assert lines.index(ABSENT) < next(number for number, line in enumerate(lines) if line.startswith("finished"))
    with RecordView.open(tmp_path / "run") as view:
        told = [stored.event.detail["text"] for stored in view.events() if stored.event.kind == "start.warning"]
    assert told == [ABSENT.removeprefix("warning: ")]


def test_check_says_first_whether_the_run_can_begin_and_sums_up_a_fleet(tmp_path: Path, soakwatch: Command) -> None:
    targets = "".join(f"  fw{number:02}: {{sources: [{{local: {{interval: 30s}}}}]}}\n" for number in range(1, 21))
    (tmp_path / "p.yaml").write_text(f"duration: 60h\ntargets:\n{targets}", encoding="utf-8")
    done = soakwatch("check", "p.yaml")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("ready: 20 sources, ")
    assert lines[0].endswith(" of a device's memory will be seen")
    assert len(lines) < 80
    assert [line for line in lines if "(dut)" in line] == ["fw01 to fw20 (20 targets) (dut): local, every 30 s"]
    assert sum("cpu_spike, polls" in line for line in lines) == 1
    assert soakwatch("check", "p.yaml", "--verbose").stdout.count("(dut): local") == 20


def test_check_says_what_is_wrong_before_all_else(tmp_path: Path, soakwatch: Command) -> None:
    (tmp_path / "p.yaml").write_text(
        "duration: 1m\ntargets:\n  dut: {watch: {processes: [nosuchd]}, sources: [local]}\n", encoding="utf-8"
    )
    done = soakwatch("check", "p.yaml")
    assert done.returncode == 1
    assert done.stdout.splitlines()[0].startswith("not ready: 1 source, 1 problem")
    assert done.stderr.splitlines() == [
        "soakwatch: p.yaml: dut: no process 'nosuchd' is running: its findings would be inconclusive"
    ]
