"""What schema 6 changed: long texts are compressed, short runs are small files; schema 5 goes on as it is."""

from __future__ import annotations

import lzma
import signal
import sqlite3
import subprocess
import sys
import zlib
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.kept_records import kept_records

from soakwatch.core.errors import RecordError
from soakwatch.record import Record, RecordView, _texts
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.window import Window
from soakwatch_testing.records import T0, small_record

FAILS = Finding("cpu", 1, Outcome.FAIL, "fw", "m", "", Window(T0, T0 + 1), "more than 90 % for 5 s fails", "r", 1)
MANY = [replace(FAILS, outcome=Outcome.PASS, object=f"process=p{n}", measured=n / 7) for n in range(400)]
NEVER = 10**9
LONG = "a fact of the device, " * 200


def cells(run: Path, query: str) -> list[object]:
    """The first column of a query of a record."""
    with closing(sqlite3.connect(run / "record.sqlite")) as sql:
        return [row[0] for row in sql.execute(query)]


def test_findings_and_long_texts_take_a_fraction_of_their_bytes(tmp_path: Path) -> None:
    """400 findings of half a kB each, and a long text: what is read is what was written."""
    with Record.create(tmp_path) as record:
        record.set_meta("long", LONG)
        record.put_findings([FAILS, *MANY], live=True, judged_ns=1)
        record.put_findings(MANY, live=True, judged_ns=2)
        record.put_findings([FAILS, *MANY], live=False, judged_ns=3)
        record.finish()
    with RecordView.open(tmp_path) as view:
        assert view.findings(live=False) == (FAILS, *MANY)
        assert view.findings(live=True) == tuple(MANY)
        assert view.withdrawn() == ((2, FAILS),)
        assert view.judged_ns(live=True) == 2
        assert view.metas() == {"long": LONG}
        assert view.meta("long") == LONG
        assert not view.check().changed
    assert sum(len(str(cell)) for cell in cells(tmp_path, "SELECT body FROM finding")) < 60_000
    assert (tmp_path / "record.sqlite").stat().st_size < 64_000


def test_a_run_that_schema_5_began_goes_on_in_schema_5(tmp_path: Path) -> None:
    """An older Soakwatch that still follows the run can read all that a newer one adds."""
    kept = next(kept for kept in kept_records() if kept.schema == 5 and kept.name == "failing")
    run = kept.unpack(tmp_path)
    with RecordView.open(run) as view:
        before, metas = view.findings(live=False), view.metas()
    with Record.open(run) as record:
        record.set_meta("long", LONG)
        record.put_findings([FAILS, *MANY], live=True, judged_ns=1)
        record.put_findings(MANY, live=True, judged_ns=2)
        record.finish()
        record.put_seal(T0)
    with RecordView.open(run) as view:
        assert view.findings(live=False) == before
        assert view.findings(live=True) == tuple(MANY)
        assert (2, FAILS) in view.withdrawn()
        assert view.metas() == {**metas, "long": LONG}
        assert not view.check().changed
    assert cells(run, "PRAGMA user_version") == [5]
    for query in ("SELECT body FROM finding", "SELECT value FROM meta", "SELECT rows FROM link"):
        assert all(isinstance(cell, str) for cell in cells(run, query)), query


@pytest.mark.parametrize(
    ("table", "cell"),
    [
        ("finding SET body", b"no archive"),
        ("finding SET body", lzma.compress(b"[" * 3_000_000, preset=0)),
        ("finding SET body", lzma.compress(b"{}")[:-4]),
        ("meta SET value", b"no archive"),
        ("meta SET value", zlib.compress(b"long")[:-1]),
        ("meta SET value", zlib.compress(b"a" * 3_000_000)),
    ],
)
def test_a_damaged_text_is_told_as_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str, cell: bytes
) -> None:
    """Neither a text that cannot be unpacked nor one without end is more than a sentence, and `verify` finds both."""
    monkeypatch.setattr(_texts, "_MAX_BYTES", 1 << 20)
    with Record.create(tmp_path) as record:
        record.set_meta("long", LONG)
        record.put_findings([FAILS], live=False, judged_ns=1)
        record.finish()
    with closing(sqlite3.connect(tmp_path / "record.sqlite", isolation_level=None)) as sql:
        sql.execute(f"UPDATE {table}=?", (cell,))
    with RecordView.open(tmp_path) as view:
        assert view.check().changed
        with pytest.raises(RecordError, match="damaged"):
            _ = view.findings(live=False), view.metas()


def test_a_reader_that_stays_does_not_hinder_the_end(tmp_path: Path) -> None:
    """The file is whole and complete; that it is not made small costs nothing but room."""
    small_record(tmp_path / "run", 50).close()
    with Record.open(tmp_path / "run") as record, RecordView.open(tmp_path / "run") as view:
        counts = view.counts()
        record.set_meta("later", "text")
        assert not record.finish()
    with RecordView.open(tmp_path / "run") as view:
        assert view.counts().samples == counts.samples
        assert view.meta("later") == "text"
        assert not view.check().changed


ENDS = """
import os, signal, sys
from pathlib import Path
from soakwatch.record import Record

def heard(statement):
    if "VACUUM" in statement:  # its own statements are not heard: count what SQLite executes for them
        record._connection.set_progress_handler(executed, 100)

def executed():
    executed.count += 1
    if executed.count == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

executed.count = 0
with Record.open(Path(sys.argv[1])) as record:
    record.set_meta("later", "text")
    record.troubled(heard)
    record.finish()
print(executed.count)
"""


@pytest.mark.parametrize("at", [1, 10, NEVER])
def test_kill_9_while_the_file_is_made_small_loses_nothing(tmp_path: Path, at: int) -> None:
    """As it begins, in the middle of it, and not at all."""
    run = tmp_path / "run"
    small_record(run, 200).close()
    with RecordView.open(run) as view:
        keys, counts = view.keys(), view.counts()
    ended = subprocess.run([sys.executable, "-c", ENDS, run, str(at)], capture_output=True, check=False)
    assert ended.returncode == (0 if at == NEVER else -signal.SIGKILL), ended
    with Record.open(run) as record:
        assert record.finish()
    with RecordView.open(run) as view:
        assert view.keys() == keys
        assert view.counts().samples == counts.samples
        assert view.meta("later") == "text"
        assert not view.check().changed
    assert cells(run, "PRAGMA page_size") == [512]
    assert {file.name for file in run.iterdir()} <= {"record.sqlite", "record.lock"}
