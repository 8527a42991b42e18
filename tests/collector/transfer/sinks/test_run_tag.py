"""A run's name in the database is no other run's: two campaigns have runs of the same names."""

from __future__ import annotations

from pathlib import Path

import pytest

from soakwatch.record import Record
from soakwatch.transfer.sinks.run_tag import run_tag
from soakwatch.web.run_folder import RunFolder

START_NS = 1_767_225_600 * 10**9


def recorded(folder: Path, start_ns: int | None = START_NS) -> Path:
    """A record that began then."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with Record.create(folder) as record:
        if start_ns is not None:
            record.set_meta("start_ns", str(start_ns))
    return folder


def campaign(folder: Path) -> Path:
    """The folder of a campaign, and in it that of its runs."""
    folder.mkdir(parents=True)
    (folder / "ledger.jsonl").write_text("")
    return folder / "runs"


def test_two_campaigns_have_runs_of_one_name_under_two_tags(tmp_path: Path) -> None:
    """Of 69 and 93 samples under one run nobody can tell which is whose."""
    first = recorded(campaign(tmp_path / "a" / "releases") / "7.2-r1")
    again = recorded(campaign(tmp_path / "b" / "releases") / "7.2-r1", START_NS + 60 * 10**9)
    other = recorded(campaign(tmp_path / "a" / "sizes") / "7.2-r1")
    tags = [run_tag(folder) for folder in (first, again, other)]
    assert tags == [
        "20260101T000000Z-releases:7.2-r1",
        "20260101T000100Z-releases:7.2-r1",
        "20260101T000000Z-sizes:7.2-r1",
    ]
    assert run_tag(first / "record.sqlite") == tags[0]


@pytest.mark.parametrize("name", ["20260101T000000Z-soak", "20260101T000000Z-soak-2"])
def test_a_folder_that_begins_with_its_time_is_its_tag(tmp_path: Path, name: str) -> None:
    """Whatever the record says: the name is what people copy from a terminal."""
    assert run_tag(recorded(tmp_path / name, START_NS + 10**9)) == name


def test_a_folder_of_another_name_has_the_start_before_it(tmp_path: Path) -> None:
    """``run --into here``: the newest run is the last by name, too. A record without a start keeps its name."""
    assert run_tag(recorded(tmp_path / "here")) == "20260101T000000Z-here"
    assert run_tag(recorded(tmp_path / "old", None)) == "old"


def test_the_page_of_a_run_is_found_by_its_tag(tmp_path: Path) -> None:
    """Links of Grafana and of alerts name the run as the database does."""
    own = recorded(campaign(tmp_path / "campaigns" / "releases") / "7.2-r1")
    plain, stamped = recorded(tmp_path / "here"), recorded(tmp_path / "20260102T000000Z-night")
    runs = RunFolder(tmp_path)
    for folder in (own, plain, stamped):
        assert runs.folder(run_tag(folder)) == folder
    assert runs.folder("20260101T000000Z-nobody") is None
    assert runs.folder("20260101T000000Z-../here") is None
