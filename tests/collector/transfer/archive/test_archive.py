"""``soakwatch archive`` through the command: runs are added once, whole or not at all; what is damaged is noticed."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pytest
from tests.commands import MAX_WAIT_S, SOAKWATCH, Command, environment

from soakwatch.record import Record, RecordView

Recorded = Callable[..., Path]
ELSEWHERE = json.dumps(
    {
        "format": "soakwatch archive",
        "version": 1,
        "number": 1,
        "files": [
            {"table": "runs", "night": "", "path": "../../etc/passwd", "rows": 1, "bytes": 1, "sha256": ""},
        ],
    }
)


def files_of(folder: Path) -> dict[str, str]:
    """The SHA-256 of every file of an archive, by its path."""
    return {
        file.relative_to(folder).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.name != "archive.lock"
    }


def asked(soakwatch: Command, sql: str) -> list[dict[str, object]]:
    done = soakwatch("query", "--sql", sql, "--format", "json")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, object]] = json.loads(done.stdout)
    return found


def test_the_readings_are_those_of_the_record_by_device_and_night(two_releases: Command, tmp_path: Path) -> None:
    """As a hive that any reader of Parquet opens, to the nanosecond and the last bit."""
    place = tmp_path / "archive" / "readings" / "device=fw2" / "night=2026-09-22"
    (file,) = place.glob("*.parquet")
    with RecordView.open(tmp_path / "runs" / "b2") as view:
        for key in (key for key in view.keys() if key.target == "dut"):  # noqa: SIM118
            series = view.series(key)
            found = duckdb.execute(
                "SELECT epoch_ns(time), value FROM read_parquet($file)"
                " WHERE metric=$metric AND object=$object ORDER BY 1",
                {"file": str(file), "metric": key.metric, "object": key.object},
            ).fetchall()
            assert [row[0] for row in found] == series.time_ns.tolist()
            assert np.array_equal([row[1] for row in found], series.values)


def test_a_series_has_a_row_for_the_run_and_each_phase(two_releases: Command) -> None:
    found = asked(
        two_releases,
        "SELECT phase, readings, coverage, first, last, lowest, highest, unit, kind, increase, per_hour FROM series"
        " WHERE release = '7.2' AND device = 'fw1' AND process = 'bgpd' ORDER BY phase",
    )
    assert [(row["phase"], row["readings"]) for row in found] == [("", 54), ("baseline", 27), ("soak", 27)]
    assert [row["unit"] for row in found] == ["By"] * 3
    assert [row["increase"] for row in found] == [None] * 3  # no counter: not known, and no zero
    assert found[0]["first"] == found[0]["lowest"] == 100 * 2**20
    (drops,) = asked(
        two_releases,
        "SELECT increase, restarts, mean FROM series WHERE release = '7.2' AND device = 'fw1' AND kind = 'counter'"
        " AND phase = ''",
    )
    assert drops == {"increase": 40.0, "restarts": 0, "mean": None}


def test_adding_twice_changes_nothing(two_releases: Command, tmp_path: Path) -> None:
    before = files_of(tmp_path / "archive")
    done = two_releases("archive", "add", "runs", "--jobs", "1")
    assert (done.returncode, done.stdout) == (0, "archive: 0 runs added, 4 there already\n")
    assert files_of(tmp_path / "archive") == before
    shutil.copytree(tmp_path / "runs" / "a1", tmp_path / "elsewhere" / "renamed")
    assert "1 there already" in two_releases("archive", "add", "elsewhere/renamed").stdout
    assert files_of(tmp_path / "archive") == before


def test_a_run_that_was_judged_again_is_replaced(two_releases: Command, tmp_path: Path) -> None:
    """Its rows are there once, with the new verdict; those of others of that night stay."""
    with Record.open(tmp_path / "runs" / "b1") as record:
        record.set_meta("verdict", "inconclusive")
        record.put_seal(2 * 10**18)
    done = two_releases("archive", "add", "runs", "--jobs", "1")
    assert done.stdout == "archive: 0 runs added, 1 replaced, 3 there already; 5 series\n"
    found = asked(two_releases, "SELECT device, verdict FROM runs WHERE role = 'dut' AND release = '7.2' ORDER BY 1")
    assert [tuple(row.values()) for row in found] == [("fw1", "inconclusive"), ("fw2", "fail")]
    (count,) = asked(
        two_releases, "SELECT count(*) AS n, count(DISTINCT (key, metric, object, phase)) AS d FROM series"
    )
    assert count["n"] == count["d"] == 56
    # What was replaced stays until the next add: a question may be reading it.
    place = tmp_path / "archive" / "readings" / "device=fw1" / "night=2026-09-22"
    assert len(list(place.iterdir())) == 2
    assert two_releases("archive", "add", "runs", "--jobs", "1").stderr == ""
    assert len(list(place.iterdir())) == 1
    assert two_releases("archive", "check").returncode == 0


def test_unsealed_and_changed_records_are_marked(recorded: Recorded, soakwatch: Command) -> None:
    recorded("open", release="7.1", seal=False)
    changed = recorded("changed", release="7.1", night=1)
    with sqlite3.connect(changed / "record.sqlite") as sql:
        sql.execute("UPDATE meta SET value='pass' WHERE key='reason'")
    sql.close()
    done = soakwatch("archive", "add", "runs", "--jobs", "1")
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        "note: 1 run changed since written or sealed, and marked so: 20260922T141320Z-night",
        "note: 1 run not sealed, and marked so: 20260921T141320Z-night",
    ]
    found = asked(soakwatch, "SELECT seal, changed FROM runs WHERE role = 'dut' ORDER BY night")
    assert [row["seal"] for row in found] == ["unsealed", "changed"]
    assert found[0]["changed"] is None
    assert "table meta, row reason: changed" in str(found[1]["changed"])


def test_a_record_that_cannot_be_read_costs_the_others_nothing(recorded: Recorded, soakwatch: Command) -> None:
    recorded("a", release="7.1")
    broken = recorded("b", release="7.1", night=1) / "record.sqlite"
    broken.write_bytes(broken.read_bytes()[:5000] + b"\0" * 3000)
    done = soakwatch("archive", "add", "runs", "--jobs", "1")
    assert done.returncode == 2
    assert "runs/b/record.sqlite is not added: " in done.stderr
    assert "1 run added, 1 not added" in done.stdout
    assert len(asked(soakwatch, "SELECT DISTINCT key FROM runs")) == 1


def test_without_readings_the_summaries_are_there(recorded: Recorded, soakwatch: Command, tmp_path: Path) -> None:
    recorded("a", release="7.1")
    assert soakwatch("archive", "add", "a", "--no-readings").returncode == 0
    assert not (tmp_path / "archive" / "readings").exists()
    assert asked(soakwatch, "SELECT count(*) AS n FROM readings") == [{"n": 0}]
    assert asked(soakwatch, "SELECT count(*) AS n FROM series WHERE phase = ''") == [{"n": 3}]
    assert "1 replaced" in soakwatch("archive", "add", "a", "--again").stdout
    (row,) = asked(soakwatch, "SELECT count(*) AS n FROM readings")
    assert row["n"] == 54 + 54 + 60


def test_many_small_adds_become_one_file(
    recorded: Recorded, soakwatch: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run at a time, as labs add them: the files of a night stay few, and no row is lost or there twice."""
    monkeypatch.setattr("soakwatch.transfer.archive.adding.MANY_FILES", 2)
    for number in range(4):
        recorded(f"r{number}", release="7.1", device=f"fw{number}")
        assert soakwatch("archive", "add", f"r{number}").returncode == 0
    listed = json.loads((tmp_path / "archive" / "archive.json").read_text(encoding="utf-8"))["files"]
    assert len([file for file in listed if file["table"] == "series"]) == 2
    (row,) = asked(soakwatch, "SELECT count(*) AS n, count(DISTINCT device) AS devices FROM series WHERE role = 'dut'")
    assert row == {"n": 4 * 2 * 3, "devices": 4}
    assert soakwatch("archive", "check").returncode == 0


def test_a_killed_add_leaves_the_archive_as_it_was(recorded: Recorded, soakwatch: Command, tmp_path: Path) -> None:
    """Killed when its files are written and not listed yet: they are never read, and the next add removes them."""
    recorded("a", release="7.1")
    assert soakwatch("archive", "add", "a").returncode == 0
    recorded("b", release="7.2", night=1)
    code = (
        "import os, signal, sys; import soakwatch.transfer.archive.adding as adding;"
        "adding.save = lambda archive: os.kill(os.getpid(), signal.SIGKILL);"
        "from soakwatch.cli.main import main; sys.argv = ['soakwatch', 'archive', 'add', 'b']; main()"
    )
    killed = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment(),
        timeout=MAX_WAIT_S,
        capture_output=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    left = [path for path in files_of(tmp_path / "archive") if "2026-09-22" in path]
    assert len(left) == 5  # three tables, and the readings of two targets
    assert [row["release"] for row in asked(soakwatch, "SELECT DISTINCT release FROM runs")] == ["7.1"]
    assert soakwatch("archive", "check").returncode == 0
    done = soakwatch("archive", "add", "runs", "--jobs", "1")
    assert "removed 5 files of an archive add that was broken off" in done.stderr
    assert done.stdout.startswith("archive: 1 run added, 1 there already")
    assert not (tmp_path / "archive" / ".adding").exists()
    assert len(asked(soakwatch, "SELECT DISTINCT release FROM runs")) == 2


def test_a_second_add_waits_for_the_first(recorded: Recorded, soakwatch: Command, tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    recorded("a", release="7.1")
    (tmp_path / "archive").mkdir()
    with (tmp_path / "archive" / "archive.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = subprocess.Popen(
            [SOAKWATCH, "archive", "add", "a"],
            cwd=tmp_path,
            env=environment(),
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert waiting.stderr is not None
        assert waiting.stderr.readline() == "another process adds to archive: waiting for its end\n"
    out, _ = waiting.communicate(timeout=MAX_WAIT_S)
    assert out.startswith("archive: 1 run added")


@pytest.mark.parametrize(
    ("table", "how"), [("series", "cut"), ("findings", "gone"), ("runs", "flipped"), ("series", "zeroed")]
)
def test_a_damaged_table_is_noticed(two_releases: Command, tmp_path: Path, table: str, how: str) -> None:
    """A file that is cut or gone whenever it is asked; any other byte at the latest by the check. What is damaged can
    be taken out, and its runs be added again."""
    file = next((tmp_path / "archive" / table / "night=2026-09-22").glob("*.parquet"))
    data = file.read_bytes()
    if how == "cut":
        file.write_bytes(data[: len(data) // 2])
    elif how == "gone":
        file.unlink()
    elif how == "zeroed":
        file.write_bytes(b"\0" * len(data))
    else:
        file.write_bytes(data[:100] + bytes([data[100] ^ 1]) + data[101:])
    done = two_releases("query", "--sql", f"SELECT count(DISTINCT device) FROM {table}")
    if how != "flipped":
        assert done.returncode == 2
        assert "soakwatch archive check archive says what is lost" in done.stderr
        assert "Traceback" not in done.stderr
    done = two_releases("archive", "check")
    assert done.returncode == 1
    assert file.relative_to(tmp_path).as_posix() in done.stdout
    assert "lost: the night 2026-09-22, of which a table is damaged" in done.stdout
    assert two_releases("archive", "check", "--drop").returncode == 1
    assert two_releases("archive", "check").returncode == 0
    done = two_releases("archive", "add", "runs", "--jobs", "1")
    assert done.stdout.startswith("archive: 2 runs added, 2 there already")
    assert len(asked(two_releases, "SELECT DISTINCT key FROM runs")) == 4


def test_no_byte_of_a_table_can_be_changed_unnoticed(two_releases: Command, tmp_path: Path) -> None:
    """A question about it is answered or ends with a sentence that names the file; the check finds every one."""
    chance = random.Random(3)
    files = [next((tmp_path / "archive" / table).rglob("*.parquet")) for table in ("runs", "series", "findings")]
    for turn in range(9):
        file = files[turn % 3]
        data = file.read_bytes()
        place = chance.randrange(len(data) - 20) if turn < 6 else len(data) - 9 - chance.randrange(500)
        file.write_bytes(data[:place] + bytes(byte ^ 0x5A for byte in data[place : place + 5]) + data[place + 5 :])
        name = file.relative_to(tmp_path / "archive").parts[0]
        done = two_releases("query", "--sql", f"SELECT * FROM {name}", "--format", "json")
        assert done.returncode in {0, 2}, done.stderr
        if done.returncode == 2:
            assert "soakwatch archive check archive says what is lost" in done.stderr
        checked = two_releases("archive", "check")
        assert (checked.returncode, f"{file.name} was changed since it was written" in checked.stdout) == (1, True)
        file.write_bytes(data)
    assert two_releases("archive", "check").returncode == 0


def test_damaged_readings_are_noticed(two_releases: Command, tmp_path: Path) -> None:
    """Questions that need none are answered; the check names the run, which can be taken out alone."""
    (file,) = (tmp_path / "archive" / "readings" / "device=fw2" / "night=2026-09-22").glob("*.parquet")
    file.write_bytes(file.read_bytes()[:-9])
    assert two_releases("query", "failed").returncode == 0
    done = two_releases("query", "--sql", "SELECT count(*) FROM readings")
    assert done.returncode == 2
    assert "soakwatch archive check" in done.stderr
    done = two_releases("archive", "check", "--drop")
    assert done.returncode == 1
    assert "lost: the readings of 20260922T141320Z-night (fw2)" in done.stdout
    assert two_releases("archive", "check").returncode == 0
    assert two_releases("archive", "add", "runs", "--jobs", "1").stdout.startswith(
        "archive: 1 run added, 3 there already"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"format": "soakwatch archive", "version": 9, "future": 1}', "version 9, and this is 1: update soakwatch"),
        ('{"format": "soakwatch archive", "version": 0}', "version 0, and this is 1: make a new archive"),
        ('{"format": "other", "version": 1}', "is of 'other', not of a soakwatch archive"),
        ('{"format": "soakwatch archive", "ver', "is not the list of an archive, or it is damaged"),
        ('{"format": "soakwatch archive", "version": 1, "number": 1, "files": [{}]}', "is damaged"),
        (
            ELSEWHERE,
            "which is not within the archive",
        ),
    ],
)
def test_an_archive_of_another_version_is_left_alone(
    two_releases: Command, tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "archive" / "archive.json").write_text(text, encoding="utf-8")
    before = files_of(tmp_path / "archive")
    for words in (("query", "failed"), ("archive", "add", "runs", "--jobs", "1"), ("archive", "check")):
        done = two_releases(*words)
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert files_of(tmp_path / "archive") == before


def test_a_folder_of_something_else_is_no_archive(recorded: Recorded, soakwatch: Command, tmp_path: Path) -> None:
    recorded("a", release="7.1")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years", encoding="utf-8")
    done = soakwatch("archive", "add", "a", "--archive", "mine")
    assert (done.returncode, "mine is a folder of something else" in done.stderr) == (2, True)
    assert [file.name for file in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


def test_a_running_run_is_not_added(recorded: Recorded, soakwatch: Command, tmp_path: Path) -> None:
    recorded("a", release="7.1")
    with Record.create(tmp_path / "runs" / "goes-on") as record:
        record.target("dut", "dut")
        done = soakwatch("archive", "add", "runs", "--jobs", "1")
    assert done.returncode == 2
    assert "it goes on: add it once it has ended" in done.stderr
    assert done.stdout.startswith("archive: 1 run added, 1 not added")


def test_without_duckdb_a_sentence_names_the_extra(
    two_releases: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    for words in (("archive", "add", "runs", "--archive", "new"), ("archive", "check"), ("query", "failed")):
        done = two_releases(*words)
        assert done.returncode == 2
        assert done.stderr.startswith("soakwatch: an archive needs DuckDB and pyarrow: ")
        assert " install 'duckdb<3,>=1.3' 'pyarrow<27,>=17'\n" in done.stderr
    assert not (tmp_path / "new").exists()
