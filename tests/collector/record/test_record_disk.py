"""The record on disks that are full, limited or read-only."""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.commands import MAX_WAIT_S

from soakwatch.core.errors import RecordError
from soakwatch.record import Record, RecordFullError, RecordView, add_outside_event
from soakwatch_model.event import Event
from soakwatch_testing.records import first_values, small_poll, small_record


def python(code: str, argument: str, quota: int) -> subprocess.CompletedProcess[str]:
    """Run a program in another process, none of whose files may have more than ``quota`` bytes."""
    # -B: Python keeps what it compiles even where a quota cuts it off, and the next process cannot load that.
    program = ["prlimit", f"--fsize={quota}", sys.executable, "-B", "-c", textwrap.dedent(code), argument]
    return subprocess.run(program, capture_output=True, text=True, timeout=MAX_WAIT_S, check=False)


def one_sentence(text: str, *parts: str) -> None:
    """Assert that an error is one line that names the file and the remedy."""
    assert "\n" not in text
    assert "Traceback" not in text
    for part in parts:
        assert part in text


def record_sources(folder: Path) -> list[int]:
    """The ids of the sources of a record."""
    with RecordView.open(folder) as view:
        return [source.id for source in view.sources()]


def mounted(folder: Path, size: str) -> Iterator[Path]:
    """A small file system of its own; needs root."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
    mounting = subprocess.run(mount, capture_output=True, text=True, check=False)
    if mounting.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {mounting.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 600 kB."""
    yield from mounted(tmp_path / "small", "600k")


@pytest.fixture
def roomy(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 MB."""
    yield from mounted(tmp_path / "roomy", "16m")


def test_a_full_disk_loses_nothing_that_was_committed(small: Path) -> None:
    """On a full disk put fails in one sentence and keeps nothing; with room again the same polls go in."""
    ballast = small / "ballast"
    ballast.write_bytes(bytes(150_000))
    with small_record(small / "run") as record:
        (source,) = record_sources(small / "run")
        index = 0
        with pytest.raises(RecordFullError) as caught:  # noqa: PT012 - the disk says when
            while True:
                record.put([small_poll(source, index), small_poll(source, index + 1)])
                index += 2
        one_sentence(str(caught.value), str(small / "run" / "record.sqlite"), "make room")
        assert index > 10
        with pytest.raises(RecordFullError):
            record.put([small_poll(source, index), small_poll(source, index + 1)])
        assert first_values(small / "run") == [4096 * n for n in range(index)]
        ballast.unlink()
        record.put([small_poll(source, index), small_poll(source, index + 1)])
        assert first_values(small / "run") == [4096 * n for n in range(index + 2)]
        with RecordView.open(small / "run") as view:
            assert view.faults() == ()


def test_a_disk_that_was_full_leaves_the_record_as_it_was_written(roomy: Path) -> None:
    """Whatever is refused, polls, events or compaction: once there is room it is repeated, and the
    record is sealed as whole."""
    ballast, refused = roomy / "ballast", 0
    with small_record(roomy / "run") as record:
        (source,) = record_sources(roomy / "run")
        event = record.add_event("", Event("gap", "", "", 1, None, {}), "monitor")

        def deeds(index: int) -> Iterator[Callable[[], object]]:
            yield lambda: record.put([small_poll(source, 2 * index), small_poll(source, 2 * index + 1)])
            yield lambda: record.add_event("", Event("gap", "", "", index, index + 1, {"why": "x" * 500}), "monitor")
            yield lambda: record.end_event(event, index, {"n": str(index)})
            if index % 4 == 3:
                yield lambda: record.compact(final=True)

        for index in range(16):
            for deed in deeds(index):
                with ballast.open("wb", buffering=0) as file, suppress(OSError):
                    while True:
                        file.write(bytes(4096))
                try:
                    deed()
                except RecordFullError:
                    refused += 1
                    ballast.unlink()
                    deed()
        assert refused > 10
        assert record.finish()
        record.put_seal(1)
    with RecordView.open(roomy / "run") as view:
        assert view.check().changes == ()
    assert first_values(roomy / "run") == [4096 * n for n in range(32)]


def test_no_room_for_a_new_record_is_one_sentence(small: Path) -> None:
    """A record that does not even fit on the disk is refused in one sentence, and nothing is left behind."""
    (small / "ballast").write_bytes(bytes(590_000))
    with pytest.raises(RecordFullError) as caught:
        Record.create(small / "run")
    one_sentence(str(caught.value), "record.sqlite")
    assert not list((small / "run").glob("*.sqlite*"))


def test_a_quota_on_the_size_of_files_is_one_sentence(tmp_path: Path) -> None:
    """A process that may write no more than a quota gets one sentence, and the record stays readable."""
    code = """
        import sys
        from pathlib import Path
        from soakwatch.record import RecordFullError, RecordView
        from soakwatch_testing.records import small_poll, small_record
        record = small_record(Path(sys.argv[1]))
        with RecordView.open(Path(sys.argv[1])) as view:
            (source,) = [source.id for source in view.sources()]
        try:
            for at in range(100000):
                record.put([small_poll(source, at)])
        except RecordFullError as error:
            print(at)
            sys.exit(str(error))
    """
    done = python(code, str(tmp_path), 300_000)
    one_sentence(done.stderr.strip(), "record.sqlite cannot be written")
    assert first_values(tmp_path) == [4096 * n for n in range(int(done.stdout))]


def test_a_read_only_file_system_is_read_and_not_written(roomy: Path) -> None:
    """On a read-only file system finished, cleanly closed and killed records are read; writing is one sentence."""
    finished, closed, killed = (roomy / name for name in ("finished", "closed", "killed"))
    with small_record(finished, 20) as record:
        record.finish()
    small_record(closed, 20).close()
    with small_record(roomy / "source", 20):
        killed.mkdir()
        for suffix in ("", "-wal"):
            shutil.copy(roomy / "source" / f"record.sqlite{suffix}", killed)
    subprocess.run(["mount", "-o", "remount,ro", str(roomy)], check=True)
    for folder in (finished, closed, killed):
        assert first_values(folder) == [4096 * n for n in range(20)], folder.name
        with pytest.raises(RecordError) as caught:
            Record.open(folder)
        one_sentence(str(caught.value), str(folder))
    with pytest.raises(RecordError) as caught:
        Record.create(roomy / "another")
    one_sentence(str(caught.value), "another", "Read-only")
    with pytest.raises(RecordError):
        add_outside_event(finished, "", Event("e", "", "", 1, None))
