"""The record as a file: locks, versions, damage, other processes."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from soakwatch.core.errors import RecordError
from soakwatch.record import SCHEMA_VERSION, Record, RecordView, add_outside_event
from soakwatch.record.external_events import external_events
from soakwatch_model.event import Event
from soakwatch_testing.records import first_values, small_poll, small_record


def python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program in another process."""
    program = [sys.executable, "-c", textwrap.dedent(code), *arguments]
    return subprocess.run(program, capture_output=True, text=True, timeout=240, check=False)


def one_sentence(text: str, *parts: str) -> None:
    """Assert that an error is one line that names the file and the remedy."""
    assert "\n" not in text
    assert "Traceback" not in text
    for part in parts:
        assert part in text


def test_a_second_record_in_a_folder_is_refused(tmp_path: Path) -> None:
    """A folder that holds a record takes no second one, and the first stays as it was."""
    small_record(tmp_path, 3).close()
    with pytest.raises(RecordError) as caught:
        Record.create(tmp_path)
    one_sentence(str(caught.value), str(tmp_path), "resume")
    assert len(first_values(tmp_path)) == 3


def test_a_second_writer_is_refused_while_the_first_lives(tmp_path: Path) -> None:
    """A second writer, in this process or another, is told who writes; it may once the first is gone."""
    record = small_record(tmp_path)
    with pytest.raises(RecordError) as caught:
        Record.open(tmp_path)
    one_sentence(str(caught.value), f"is being written by pid {os.getpid()}")
    code = """
        import sys
        from pathlib import Path
        from soakwatch.record import Record
        from soakwatch.core.errors import RecordError
        try:
            Record.open(Path(sys.argv[1])).close()
        except RecordError as error:
            sys.exit(str(error))
    """
    assert f"is being written by pid {os.getpid()}" in python(code, str(tmp_path)).stderr
    record.close()
    assert python(code, str(tmp_path)).returncode == 0


def test_a_reader_in_another_process_reads_while_the_run_goes_on(tmp_path: Path) -> None:
    """Another process sees whole polls, more and more of them, while this one puts and compacts."""
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
    with small_record(tmp_path) as record:
        (source,) = record_sources(tmp_path)
        program = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path)]
        with subprocess.Popen(program, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reader:
            assert reader.stdout is not None
            assert reader.stderr is not None
            record.put([small_poll(source, 0)])
            assert reader.stdout.readline()
            for index in range(1, 400):
                record.put([small_poll(source, index)])
                if index % 60 == 0:
                    record.compact(final=True)
            seen = reader.stdout.read().split()
            assert reader.wait(240) == 0, reader.stderr.read()
    assert len(seen) > 2


def record_sources(folder: Path) -> list[int]:
    """The ids of the sources of a record."""
    with RecordView.open(folder) as view:
        return [source.id for source in view.sources()]


def test_an_event_from_outside_reaches_the_writer(tmp_path: Path) -> None:
    """Another process adds an event while the run goes on, and the writer sees it."""
    with small_record(tmp_path, 1) as record:
        code = """
            import sys
            from pathlib import Path
            from soakwatch.record import add_outside_event
            from soakwatch_model.event import Event
            print(add_outside_event(Path(sys.argv[1]), "dut", Event("failover", "dut", "", 5, None, {"by": "me"})))
        """
        number = int(python(code, str(tmp_path)).stdout)
        (stored,) = record.events_after(0)
        assert (stored.id, stored.origin, stored.event.kind) == (number, "user", "failover")


def test_a_view_in_the_writers_process_does_not_let_others_take_the_log_away(tmp_path: Path) -> None:
    """A view beside the writer leaves its locks alone: another process that comes and goes takes no log away."""
    code = """
        import sys
        from pathlib import Path
        from soakwatch.record import add_outside_event
        from soakwatch_model.event import Event
        add_outside_event(Path(sys.argv[1]), "dut", Event("failover", "dut", "", 5, None))
    """
    with small_record(tmp_path) as record:
        (source,) = record_sources(tmp_path)
        for index in range(4):
            record.put([small_poll(source, index)])
            assert len(first_values(tmp_path)) == index + 1
            assert python(code, str(tmp_path)).returncode == 0
            assert (tmp_path / "record.sqlite-wal").exists()
        assert len(record.events_after(0)) == 4
    assert len(first_values(tmp_path)) == 4


def test_what_is_no_record_is_named(tmp_path: Path) -> None:
    """A folder without a record, a text file, an empty file and another program's database are each one sentence."""
    (tmp_path / "text").write_text("time,value\n" * 50)
    (tmp_path / "empty").touch()
    other = sqlite3.connect(tmp_path / "other")
    other.execute("CREATE TABLE t (a)")
    other.close()
    expected = [
        ("", "holds no record"),
        ("none", "holds no record"),
        ("text", "not a record"),
        ("empty", "not a record"),
        ("other", "not a record"),
    ]
    other_bytes = (tmp_path / "other").read_bytes()
    for name, word in expected:
        for opened in (RecordView.open, Record.open):
            with pytest.raises(RecordError) as caught:
                opened(tmp_path / name).close()
            one_sentence(str(caught.value), str(tmp_path / name), word)
    assert (tmp_path / "other").read_bytes() == other_bytes
    assert (tmp_path / "text").read_text() == "time,value\n" * 50


@pytest.mark.parametrize(("version", "writer"), [(SCHEMA_VERSION + 1, "a newer"), (4, "an older")])
def test_a_record_of_another_version_is_left_alone(tmp_path: Path, version: int, writer: str) -> None:
    """A record of another schema is refused by readers and writers in one sentence, and not changed."""
    record = small_record(tmp_path, 2)
    record.finish()
    record.close()
    file = tmp_path / "record.sqlite"
    connection = sqlite3.connect(file)
    connection.execute(f"PRAGMA user_version={version}")
    connection.close()
    before = file.read_bytes()
    event = Event("e", "", "", 1, None)

    def external(path: Path) -> None:
        with external_events(path):
            pass

    for attempt in (RecordView.open, Record.open, lambda path: add_outside_event(path, "", event), external):
        with pytest.raises(RecordError) as caught:
            attempt(tmp_path)
        told = f"was written by {writer} Soakwatch, with schema version {version}", "the Soakwatch that wrote it"
        one_sentence(str(caught.value), str(file), *told)
    assert file.read_bytes() == before


def compacted(folder: Path) -> Path:
    """A finished record of some size."""
    with small_record(folder, 300) as record:
        assert record.finish()
    return folder / "record.sqlite"


@pytest.mark.parametrize("share", [0.0, 0.005, 0.01, 0.3, 0.9, 0.99])
def test_a_truncated_record_is_one_sentence(tmp_path: Path, share: float) -> None:
    """A record that was cut short anywhere is refused in one sentence with a remedy."""
    file = compacted(tmp_path)
    size = int(file.stat().st_size * share)
    os.truncate(file, size)
    with pytest.raises(RecordError) as caught:
        first_values(tmp_path)
    one_sentence(str(caught.value), str(file), ".recover" if size else "not a record")


def test_damage_anywhere_is_noticed_or_harmless(tmp_path: Path) -> None:
    """Whatever page is overwritten, a series is either right or refused in one sentence; it is never wrong."""
    file = compacted(tmp_path)
    whole, right = file.read_bytes(), first_values(tmp_path)
    refused = 0
    for index in range(0, len(whole), 4096):
        file.write_bytes(whole[: index + 500] + bytes(range(256)) * 8 + whole[index + 500 + 2048 :])
        try:
            assert first_values(tmp_path) == right
        except RecordError as error:
            refused += 1
            one_sentence(str(error), str(file))
    assert refused > 1


def test_a_record_that_is_longer_than_any_run_is_refused(tmp_path: Path) -> None:
    """One damaged time would make rules take memory for each 10 s of centuries."""
    with small_record(tmp_path, polls=3) as record:
        record.begin_phase("soak", 0)
        record.end_phase(250 * 365 * 86_400 * 10**9)
    with RecordView.open(tmp_path) as view, pytest.raises(RecordError) as caught:
        view.window()
    assert "has times that lie 196 years apart, more than 20 years: one of them is damaged, or" in str(caught.value)


def test_a_closed_record_says_so(tmp_path: Path) -> None:
    """Using a record or a view after closing it is one sentence; closing twice is nothing."""
    record = small_record(tmp_path, 1)
    view = RecordView.open(tmp_path)
    for opened in (record, view):
        opened.close()
        opened.close()
    with pytest.raises(RecordError, match="is closed"):
        record.put([])
    with pytest.raises(RecordError, match="is closed"):
        view.metas()


def test_finish_goes_on_without_waiting_for_readers_for_ever(tmp_path: Path) -> None:
    """A record that someone reads is finished with its log beside it, and everything is there."""
    with small_record(tmp_path, 10) as record, RecordView.open(tmp_path):
        assert record.finish() is False
    assert len(first_values(tmp_path)) == 10
