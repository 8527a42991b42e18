"""The record as a file: locks, versions, damage, full disks, read-only media, other processes."""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from soakwatch.errors import RecordError
from soakwatch.record import SCHEMA_VERSION, Record, RecordFull, RecordView, SeriesKey, add_outside_event
from soakwatch.record.schema import APPLICATION_ID, STEPS, migrate
from soakwatch_agent.sample import Answer, Poll, PollOutcome, Sample
from soakwatch_rules.rule import Event

SECOND = 10**9
T0 = 1_700_000_000 * SECOND
KEYS = tuple(SeriesKey("dut", "process.memory.usage", f"process=p{n}") for n in range(50))


def poll(source: int, at: int) -> Poll:
    """A poll with 50 readings that tell when it was due."""
    due = T0 + at * SECOND
    samples = tuple(Sample(key.metric, key.object, at * 4096 + n, due) for n, key in enumerate(KEYS))
    return Poll(source, due, due, 1, PollOutcome.OK, None, Answer(samples, (), ()))


def new(folder: Path, polls: int = 0) -> Record:
    """A record with one source and some polls."""
    record = Record.create(folder)
    source = record.source("dut", "local", "dut/local", SECOND, required=True)
    record.put([poll(source.id, at) for at in range(polls)])
    return record


def values(path: Path) -> list[float]:
    """The readings of the first series."""
    with RecordView.open(path) as view:
        found: list[float] = view.series(KEYS[0]).value.tolist()
        return found


def python(code: str, *arguments: str, **options: Callable[[], None]) -> subprocess.CompletedProcess[str]:
    """Run a program in another process."""
    program = [sys.executable, "-c", textwrap.dedent(code), *arguments]
    return subprocess.run(program, capture_output=True, text=True, timeout=60, check=False, **options)  # type: ignore[call-overload,no-any-return]


def one_sentence(text: str, *parts: str) -> None:
    """Assert that an error is one line that names the file and the remedy."""
    assert "\n" not in text
    assert "Traceback" not in text
    for part in parts:
        assert part in text


def test_a_second_record_in_a_folder_is_refused(tmp_path: Path) -> None:
    """A folder that holds a record takes no second one, and the first stays as it was."""
    new(tmp_path, 3).close()
    with pytest.raises(RecordError) as caught:
        Record.create(tmp_path)
    one_sentence(str(caught.value), str(tmp_path), "resume")
    assert len(values(tmp_path)) == 3


def test_a_second_writer_is_refused_while_the_first_lives(tmp_path: Path) -> None:
    """A second writer, in this process or another, is told who writes; it may once the first is gone."""
    record = new(tmp_path)
    with pytest.raises(RecordError) as caught:
        Record.open(tmp_path)
    one_sentence(str(caught.value), f"is being written by pid {os.getpid()}")
    code = """
        import sys
        from pathlib import Path
        from soakwatch.record import Record
        from soakwatch.errors import RecordError
        try:
            Record.open(Path(sys.argv[1])).close()
        except RecordError as error:
            sys.exit(str(error))
    """
    assert f"is being written by pid {os.getpid()}" in python(code, str(tmp_path)).stderr
    record.close()
    assert python(code, str(tmp_path)).returncode == 0


def test_a_reader_in_another_process_reads_while_the_run_goes_on(tmp_path: Path) -> None:
    """Another process sees whole polls, more and more of them, while this one puts and seals."""
    code = """
        import sys
        from pathlib import Path
        from soakwatch.record import RecordView
        seen = 0
        while seen < 400:
            with RecordView.open(Path(sys.argv[1])) as view:
                lengths = {len(view.series(key)) for key in view.keys()}
                polls = view.counts().polls
            assert lengths <= {polls}, (lengths, polls)
            assert polls >= seen
            if polls > seen:
                print(polls, flush=True)
            seen = polls
    """
    with new(tmp_path) as record:
        (source,) = record_sources(tmp_path)
        with subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code), str(tmp_path)],
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as reader:
            assert reader.stdout is not None
            assert reader.stderr is not None
            record.put([poll(source, 0)])
            assert reader.stdout.readline()
            for at in range(1, 400):
                record.put([poll(source, at)])
                if at % 60 == 0:
                    record.seal(final=True)
            told = reader.stdout.read().split()
            assert reader.wait(60) == 0, reader.stderr.read()
    assert len(told) > 2


def record_sources(folder: Path) -> list[int]:
    """The ids of the sources of a record."""
    with RecordView.open(folder) as view:
        return [source.id for source in view.sources()]


def test_an_event_from_outside_reaches_the_writer(tmp_path: Path) -> None:
    """Another process adds an event while the run goes on, and the writer sees it."""
    with new(tmp_path, 1) as record:
        code = """
            import sys
            from pathlib import Path
            from soakwatch.record import add_outside_event
            from soakwatch_rules.rule import Event
            print(add_outside_event(Path(sys.argv[1]), "dut", Event("failover", "dut", "", 5, None, {"by": "me"})))
        """
        number = int(python(code, str(tmp_path)).stdout)
        (stored,) = record.events_after(0)
        assert (stored.id, stored.origin, stored.event.kind) == (number, "user", "failover")


def test_what_is_no_record_is_named(tmp_path: Path) -> None:
    """A folder without a record, a text file, an empty file and another program's database are each one sentence."""
    (tmp_path / "text").write_text("time,value\n" * 50)
    (tmp_path / "empty").touch()
    other = sqlite3.connect(tmp_path / "other")
    other.execute("CREATE TABLE t (a)")
    other.close()
    for name, word in [
        ("", "holds no record"),
        ("none", "holds no record"),
        ("text", "not a record"),
        ("empty", "not a record"),
        ("other", "not a record"),
    ]:
        for opened in (RecordView.open, Record.open):
            with pytest.raises(RecordError) as caught:
                opened(tmp_path / name).close()
            one_sentence(str(caught.value), str(tmp_path / name), word if opened is RecordView.open else "record")
    assert (tmp_path / "text").read_text() == "time,value\n" * 50


def test_a_record_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    """A record of a newer schema is refused by reader, writer and outside events, in one sentence, and not changed."""
    record = new(tmp_path, 2)
    record.finish()
    record.close()
    file = tmp_path / "record.sqlite"
    connection = sqlite3.connect(file)
    connection.execute(f"PRAGMA user_version={SCHEMA_VERSION + 1}")
    connection.close()
    for opened in (RecordView.open, Record.open, lambda path: add_outside_event(path, "", Event("e", "", "", 1, None))):
        with pytest.raises(RecordError) as caught:
            opened(tmp_path)  # type: ignore[no-untyped-call]
        one_sentence(str(caught.value), str(file), f"version {SCHEMA_VERSION + 1}", "newer Soakwatch")
    connection = sqlite3.connect(file)
    assert connection.execute("PRAGMA user_version").fetchone()[0] == SCHEMA_VERSION + 1
    connection.close()


def older(folder: Path) -> Path:
    """A hand-made file of version 0: it has targets and texts, and no table for findings, artifacts or spans yet."""
    file = folder / "record.sqlite"
    connection = sqlite3.connect(file)
    connection.executescript(
        f"""
        PRAGMA application_id={APPLICATION_ID};
        CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
        CREATE TABLE target (name TEXT PRIMARY KEY, role TEXT NOT NULL) WITHOUT ROWID;
        INSERT INTO meta VALUES ('name', 'an old run');
        INSERT INTO target VALUES ('dut', 'dut');
        """
    )
    connection.close()
    return file


def test_an_older_record_is_read_without_changing_it(tmp_path: Path) -> None:
    """A reader reads an older record, and the file keeps every byte."""
    file = older(tmp_path)
    before = file.read_bytes()
    with RecordView.open(tmp_path) as view:
        assert view.meta("name") == "an old run"
        assert view.roles() == {"dut": "dut"}
        assert view.findings(live=False) == ()
    assert file.read_bytes() == before


def test_an_older_record_is_migrated_when_it_is_opened_for_writing(tmp_path: Path) -> None:
    """Opening an older record for writing brings it up to date; what was in it stays, and it takes polls."""
    file = older(tmp_path)
    with Record.open(tmp_path) as record:
        source = record.source("dut", "local", "dut/local", SECOND, required=True)
        record.put([poll(source.id, 0)])
    connection = sqlite3.connect(file)
    assert connection.execute("PRAGMA user_version").fetchone()[0] == SCHEMA_VERSION
    connection.close()
    with RecordView.open(tmp_path) as view:
        assert view.meta("name") == "an old run"
        assert len(view.series(KEYS[0])) == 1


def test_a_migration_is_whole_or_nothing(tmp_path: Path) -> None:
    """A step that fails leaves the file at the version that it had, with nothing of the step before."""
    connection = sqlite3.connect(tmp_path / "f", isolation_level=None)
    migrate(connection, 0)
    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, SCHEMA_VERSION, (*STEPS, "CREATE TABLE more (a);", "CREATE TABLE meta (again);"))
    assert connection.execute("PRAGMA user_version").fetchone()[0] == SCHEMA_VERSION
    assert not connection.execute("SELECT * FROM sqlite_schema WHERE name='more'").fetchall()
    migrate(connection, SCHEMA_VERSION, (*STEPS, "CREATE TABLE more (a);"))
    assert connection.execute("PRAGMA user_version").fetchone()[0] == SCHEMA_VERSION + 1
    connection.close()


def sealed(folder: Path) -> Path:
    """A finished record of some size."""
    with new(folder, 300) as record:
        assert record.finish()
    return folder / "record.sqlite"


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.9, 0.99])
def test_a_truncated_record_is_one_sentence(tmp_path: Path, share: float) -> None:
    """A record that was cut short anywhere is refused in one sentence with a remedy."""
    file = sealed(tmp_path)
    size = int(file.stat().st_size * share)
    os.truncate(file, size)
    with pytest.raises(RecordError) as caught:
        values(tmp_path)
    one_sentence(str(caught.value), str(file), "restore it from a copy" if size < 100 else ".recover")


def test_damage_anywhere_is_noticed_or_harmless(tmp_path: Path) -> None:
    """Whatever page is overwritten, a series is either right or refused in one sentence; it is never wrong."""
    file = sealed(tmp_path)
    whole, right = file.read_bytes(), values(tmp_path)
    refused = 0
    for at in range(0, len(whole), 4096):
        file.write_bytes(whole[: at + 500] + bytes(range(256)) * 8 + whole[at + 500 + 2048 :])
        try:
            assert values(tmp_path) == right
        except RecordError as error:
            refused += 1
            one_sentence(str(error), str(file))
    assert refused > 1


def mounted(folder: Path, size: str) -> Iterator[Path]:
    """A small file system of its own; needs root."""
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)], capture_output=True, text=True, check=False
    )
    if made.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {made.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 600 kB."""
    yield from mounted(tmp_path / "small", "600k")


def test_a_full_disk_loses_nothing_that_was_committed(small: Path) -> None:
    """On a full disk put fails in one sentence and keeps nothing; with room again the same polls go in."""
    ballast = small / "ballast"
    ballast.write_bytes(bytes(150_000))
    with new(small / "run") as record:
        (source,) = record_sources(small / "run")
        at = 0
        with pytest.raises(RecordFull) as caught:  # noqa: PT012 - the disk says when
            while True:
                record.put([poll(source, at), poll(source, at + 1)])
                at += 2
        one_sentence(str(caught.value), str(small / "run" / "record.sqlite"), "make room")
        assert at > 10
        with pytest.raises(RecordFull):
            record.put([poll(source, at), poll(source, at + 1)])
        assert values(small / "run") == [4096 * n for n in range(at)]
        ballast.unlink()
        record.put([poll(source, at), poll(source, at + 1)])
        assert values(small / "run") == [4096 * n for n in range(at + 2)]
        with RecordView.open(small / "run") as view:
            assert view.faults() == ()


def test_no_room_for_a_new_record_is_one_sentence(small: Path) -> None:
    """A record that does not even fit on the disk is refused in one sentence, and nothing is left behind."""
    (small / "ballast").write_bytes(bytes(590_000))
    with pytest.raises(RecordFull) as caught:
        Record.create(small / "run")
    one_sentence(str(caught.value), "record.sqlite")
    assert not list((small / "run").glob("*.sqlite*"))


def test_a_quota_on_the_size_of_files_is_one_sentence(tmp_path: Path) -> None:
    """A process that may write no more than a quota gets one sentence, and the record stays readable."""
    code = """
        import sys
        from pathlib import Path
        from test_record_files import new, poll, record_sources
        from soakwatch.record import RecordFull
        record = new(Path(sys.argv[1]))
        (source,) = record_sources(Path(sys.argv[1]))
        try:
            for at in range(100000):
                record.put([poll(source, at)])
        except RecordFull as error:
            print(at)
            sys.exit(str(error))
    """
    here = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
    limit = 300_000
    done = python(
        here + textwrap.dedent(code),
        str(tmp_path),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    one_sentence(done.stderr.strip(), "record.sqlite cannot be written")
    assert values(tmp_path) == [4096 * n for n in range(int(done.stdout))]


def test_a_read_only_file_system_is_read_and_not_written(small: Path) -> None:
    """On a read-only file system finished, cleanly closed and killed records are read; writing is one sentence."""
    finished, closed, killed = (small / name for name in ("finished", "closed", "killed"))
    with new(finished, 20) as record:
        record.finish()
    new(closed, 20).close()
    with new(small / "source", 20):
        killed.mkdir()
        for suffix in ("", "-wal"):
            shutil.copy(small / "source" / f"record.sqlite{suffix}", killed)
    subprocess.run(["mount", "-o", "remount,ro", str(small)], check=True)
    for folder in (finished, closed, killed):
        assert values(folder) == [4096 * n for n in range(20)], folder.name
        with pytest.raises(RecordError) as caught:
            Record.open(folder)
        one_sentence(str(caught.value), str(folder))
    with pytest.raises(RecordError) as caught:
        Record.create(small / "another")
    one_sentence(str(caught.value), "another", "Read-only")
    with pytest.raises(RecordError):
        add_outside_event(finished, "", Event("e", "", "", 1, None))


def test_a_disk_that_turns_read_only_is_one_sentence(small: Path) -> None:
    """When the file system turns read-only under the writer, put fails in one sentence and readers still read."""
    record = new(small / "run", 5)
    with record:
        (source,) = record_sources(small / "run")
        lazy = subprocess.run(["mount", "-o", "remount,size=280k", str(small)], capture_output=True, check=False)
        if lazy.returncode:
            pytest.skip("this kernel does not shrink a file system in use")
        at = 5
        with pytest.raises(RecordFull):  # noqa: PT012 - the disk says when
            while at < 10_000:
                record.put([poll(source, at)])
                at += 1
        assert values(small / "run") == [4096 * n for n in range(at)]


def test_a_closed_record_says_so(tmp_path: Path) -> None:
    """Using a record or a view after closing it is one sentence; closing twice is nothing."""
    record = new(tmp_path, 1)
    view = RecordView.open(tmp_path)
    for thing in (record, view):
        thing.close()
        thing.close()
    with pytest.raises(RecordError, match="is closed"):
        record.put([])
    with pytest.raises(RecordError, match="is closed"):
        view.metas()


def test_finish_goes_on_without_waiting_for_readers_for_ever(tmp_path: Path) -> None:
    """A record that somebody reads is finished with its log beside it, and everything is there."""
    with new(tmp_path, 10) as record, RecordView.open(tmp_path):
        assert record.finish() is False
    assert len(values(tmp_path)) == 10
