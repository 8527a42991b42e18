"""Who may read a record: its owner, and a group that was named; nobody else holds its lock."""

from __future__ import annotations

import grp
import os
import stat
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.needs import needs

from soakwatch.core.errors import RecordError, SoakwatchError
from soakwatch.core.private_files import share, shared_mode, write_private
from soakwatch.record import Record, RecordView
from soakwatch.record.writer_lock import is_written
from soakwatch.runs.catalog import find_run, new_folder
from soakwatch.runs.delete_run import delete, refusal
from soakwatch_testing.records import first_values, small_record

NOBODY = 65534
OPEN_UMASK, CLOSED_UMASK = 0o000, 0o277
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")

NOON_NS = 1_700_000_000 * 10**9


@contextmanager
def umask(mask: int) -> Iterator[None]:
    """The block runs under this umask."""
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that everybody may enter: those of pytest are their owner's."""
    with tempfile.TemporaryDirectory(prefix="soakwatch-doors-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def modes(folder: Path) -> dict[str, int]:
    """The rights of a folder ('.') and of all that lies in it."""
    return {
        str(path.relative_to(folder)): stat.S_IMODE(path.stat().st_mode)
        for path in [folder, *sorted(folder.rglob("*"))]
    }


@contextmanager
def held_by_nobody(lock: Path) -> Iterator[int]:
    """The lock is held by a process of the user nobody, whose pid this is."""
    needs("flock")
    program = subprocess.Popen(
        ["flock", "-n", str(lock), "sh", "-c", "echo held; read end"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
    )
    assert program.stdin is not None
    assert program.stdout is not None
    with program:
        assert program.stdout.readline() == b"held\n", "the lock could not be taken"
        yield program.pid
        program.stdin.close()


@pytest.mark.parametrize("mask", [OPEN_UMASK, CLOSED_UMASK])
def test_a_record_is_its_owners_whatever_the_umask(tmp_path: Path, mask: int) -> None:
    """Folder 0700, record with log and index and lock 0600, also under a umask of 000, and usable under 277."""
    folder = tmp_path / "run"
    with umask(mask), closing(small_record(folder, 3)):
        assert modes(folder) == {
            ".": 0o700,
            "record.lock": 0o600,
            "record.sqlite": 0o600,
            "record.sqlite-shm": 0o600,
            "record.sqlite-wal": 0o600,
        }


def test_files_beside_a_record_are_as_open_as_it(tmp_path: Path) -> None:
    """A report beside a private record is private, beside a shared one readable to the group; an old one is closed."""
    with umask(OPEN_UMASK), closing(small_record(tmp_path / "run", 1)) as record:
        report = tmp_path / "run" / "report.md"
        report.write_text("old and longer", encoding="utf-8")
        write_private(report, "# report", shared_mode(record.path))
        assert report.read_text(encoding="utf-8") == "# report"
        assert stat.S_IMODE(report.stat().st_mode) == 0o600
        record.path.chmod(0o640)
        write_private(report, "# report", shared_mode(record.path))
        assert stat.S_IMODE(report.stat().st_mode) == 0o640


@as_root
def test_a_run_that_is_shared_can_be_read_by_the_group_and_by_nobody_else(public: Path) -> None:
    """The group reads the record while it is written; its lock and tokens stay the owner's; others see nothing."""
    group = grp.getgrgid(NOBODY).gr_name
    with umask(OPEN_UMASK), closing(small_record(public / "run", 3)) as record:
        (public / "run" / "web.token").write_text("secret", encoding="utf-8")
        (public / "run" / "web.token").chmod(0o600)
        share(public / "run", group)
        shared = modes(public / "run")
        assert shared.pop(".") == 0o2750
        assert {shared.pop("record.lock"), shared.pop("web.token")} == {0o600}
        assert set(shared.values()) == {0o640}
        assert {path.stat().st_gid for path in (public / "run").glob("record.sqlite*")} == {NOBODY}
        record.set_meta("verdict", "pass")  # the log goes on growing
        code = """
            import os, sys
            from pathlib import Path
            from soakwatch.core.errors import RecordError
            from soakwatch.record import RecordView
            os.setgroups([]), os.setresgid(*[int(sys.argv[2])] * 3), os.setresuid(*[int(sys.argv[3])] * 3)
            try:
                with RecordView.open(Path(sys.argv[1])) as view:
                    print(view.meta("verdict"), len(view.series(next(iter(view.keys())))))
            except RecordError as error:
                print(error)
        """

        def read_as(gid: int) -> str:
            words = [sys.executable, "-c", textwrap.dedent(code), str(public / "run"), str(gid), str(NOBODY)]
            return subprocess.run(words, capture_output=True, text=True, timeout=240, check=True).stdout.strip()

        assert read_as(NOBODY) == "pass 3"
        assert read_as(NOBODY - 1) == (
            f"{public / 'run'} is private to root and its group {group}: run this command as root, or ask root to share"
            " it (`soakwatch run --group NAME`)"
        )


def test_a_group_that_does_not_exist_is_refused_in_one_sentence(tmp_path: Path) -> None:
    """An unknown group is named, with the nearest one; nothing of the folder changes."""
    tmp_path.chmod(0o700)
    with pytest.raises(SoakwatchError, match=r"there is no group 'rooot' on this machine; did you mean 'root'\?"):
        share(tmp_path, "rooot")
    assert modes(tmp_path) == {".": 0o700}


@as_root
def test_a_stranger_cannot_hold_the_lock(public: Path) -> None:
    """In a folder that everybody may enter, as users make it by hand, another user gets no lock."""
    closing(small_record(public, 1)).__exit__()
    public.chmod(0o755)
    with pytest.raises(AssertionError, match="could not be taken"), held_by_nobody(public / "record.lock"):
        pass


@as_root
def test_a_lock_that_a_stranger_holds_is_no_run(public: Path) -> None:
    """A lock that everybody may open can be held by anybody: whoever does is named, and is no run."""
    folder = public / "run"
    closing(small_record(folder, 1)).__exit__()
    folder.chmod(0o755)
    (folder / "record.lock").chmod(0o644)
    with held_by_nobody(folder / "record.lock") as pid:
        assert not is_written(folder)
        assert refusal(folder) == ""
        said = f"{folder / 'record.sqlite'} is locked by pid {pid} of nobody, and no run writes it: end that process"
        for attempt in (Record.open, delete):
            with pytest.raises(RecordError) as caught:
                attempt(folder)
            assert str(caught.value) == f"{said} (`kill {pid}`) and try again"
    Record.open(folder).close()
    assert stat.S_IMODE((folder / "record.lock").stat().st_mode) == 0o600, "it is closed when it is taken"
    assert len(first_values(folder)) == 1


@as_root
def test_a_run_of_another_user_is_told_from_a_missing_one(public: Path) -> None:
    """Whoever names another's run hears whose it is."""
    closing(small_record(public / "run", 1)).__exit__()
    if os.fork() == 0:  # the interpreter may lie where only root can start it
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        code = 9
        try:
            find_run(str(public / "run"))
        except RecordError as error:
            code = 0 if "is private to root: " in str(error) else 8
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
    with RecordView.open(public / "run") as view:
        assert view.counts().polls == 1


def test_runs_of_one_second_get_numbers_behind_their_name(tmp_path: Path) -> None:
    names = [new_folder(tmp_path / "runs", "web night", NOON_NS + step).name for step in range(3)]
    assert names == [f"20231114T221320Z-web-night{end}" for end in ("", "-2", "-3")]
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "runs").iterdir()} == {0o700}


def test_where_no_folder_can_be_made_it_is_left_to_the_record_to_say_why(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")
    assert new_folder(tmp_path / "runs", "web", NOON_NS) == tmp_path / "runs" / "20231114T221320Z-web"
