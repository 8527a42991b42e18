"""Where a new run goes: never into the folder of another."""

from __future__ import annotations

from pathlib import Path

from soakwatch.runs.catalog import new_folder

NOON = 1_700_000_000 * 10**9


def test_runs_of_one_second_get_numbers_behind_their_name(tmp_path: Path) -> None:
    names = [new_folder(tmp_path / "runs", "web night", NOON + step).name for step in range(3)]
    assert names == [f"20231114T221320Z-web-night{end}" for end in ("", "-2", "-3")]
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "runs").iterdir()} == {0o700}


def test_where_no_folder_can_be_made_it_is_left_to_the_record_to_say_why(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")
    assert new_folder(tmp_path / "runs", "web", NOON) == tmp_path / "runs" / "20231114T221320Z-web"
