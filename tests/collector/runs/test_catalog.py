"""Which run is meant: by its folder, by the name that is shown, and by one sentence where that is several."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from soakwatch.core.errors import RecordError
from soakwatch.runs.catalog import find_run, kept_if_filled, new_folder
from soakwatch_testing.records import small_record

NOON_NS = 1_700_000_000 * 10**9
SECOND = 10**9


def run(runs: Path, name: str, begun_ns: int) -> Path:
    """The folder of a run of this name."""
    folder = new_folder(runs, name, begun_ns)
    with closing(small_record(folder, 1)) as record:
        record.set_meta("run", name)
    return folder


def test_a_run_whose_folder_got_a_number_is_found_by_the_name_that_is_shown(tmp_path: Path) -> None:
    """The other of that second was deleted: what is left is meant; of another second the latest is."""
    first, second = run(tmp_path, "web night", NOON_NS), run(tmp_path, "web night", NOON_NS)
    assert second.name.endswith("-web-night-2")
    for file in first.iterdir():
        file.unlink()
    first.rmdir()
    assert find_run("web night", tmp_path) == find_run("web-night-2", tmp_path) == second
    later = run(tmp_path, "web night", NOON_NS + SECOND)
    assert find_run("web night", tmp_path) == find_run("web-night", tmp_path) == later


def test_a_name_of_two_runs_of_one_second_is_refused_with_both(tmp_path: Path) -> None:
    """Which of them is the latest nobody can say: one sentence names them, and each is found by its folder."""
    first, second = run(tmp_path, "web", NOON_NS), run(tmp_path, "web", NOON_NS)
    with pytest.raises(RecordError) as refused:
        find_run("web", tmp_path)
    assert str(refused.value) == f"web is the name of 2 runs: name one of {first.name}, {second.name}"
    assert find_run(second.name, tmp_path) == second


def test_a_plan_whose_name_ends_in_a_number_is_not_the_second_of_another(tmp_path: Path) -> None:
    """A folder may be called so for both reasons: its record says which."""
    plain, other = run(tmp_path, "web", NOON_NS), run(tmp_path, "web-2", NOON_NS)
    assert find_run("web", tmp_path) == plain
    assert find_run("web-2", tmp_path) == other


def refused(folder: Path) -> None:
    """Fails while it fills a folder."""
    with kept_if_filled(folder):
        raise RecordError("no")


def test_a_folder_that_nothing_filled_is_gone_again(tmp_path: Path) -> None:
    """What fails before anything is in it leaves nothing behind; what is in it is kept."""
    for fills in (False, True):
        folder = tmp_path / f"run-{fills}"
        folder.mkdir()
        if fills:
            (folder / "record.sqlite").touch()
        with pytest.raises(RecordError):
            refused(folder)
        assert folder.exists() is fills


def test_last_is_the_run_that_began_last_whatever_its_folder_is_called(tmp_path: Path) -> None:
    """A folder that was named (``--into runs/fw-7.1``) is not the last for ever, though its name has no time."""
    named = tmp_path / "fw-7.1"
    with closing(small_record(named, 1)) as record:
        record.set_meta("start_ns", str(NOON_NS))
    assert find_run("last", tmp_path) == named
    later = run(tmp_path, "web", NOON_NS + SECOND)
    assert find_run("last", tmp_path) == later
    with closing(small_record(tmp_path / "a", 1)) as record:
        record.set_meta("start_ns", str(NOON_NS + 2 * SECOND))
    assert find_run("last", tmp_path) == tmp_path / "a"
