"""Records that are deleted, moved or replaced while a run writes them: all of it is saved, said, and judged."""

from __future__ import annotations

import ctypes
import itertools
import os
import random
import re
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from tests.commands import SOAKWATCH, Tally, command_in, environment, start, wait_until
from tests.needs import needs
from tests.reliability.lost_terminals import PLAN, shortfalls

from soakwatch.core.errors import RecordError
from soakwatch.record import RecordView

ATTEMPTS = int(os.environ.get("ATTEMPTS", "21"))
AT_ONCE = 3
SECONDS = 6
_HERE, _EXCHANGE = -100, 2  # AT_FDCWD, RENAME_EXCHANGE


def _replaced(run: Path, other: bytes) -> None:
    (run.parent / "other").write_bytes(other)
    (run.parent / "other").rename(run / "record.sqlite")


def _exchanged(run: Path, other: Path) -> None:
    """What lies at two paths changes places at once: a run that has lost its folder takes a free path for its copy."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(_HERE, os.fsencode(run), _HERE, os.fsencode(other), _EXCHANGE) != 0:
        raise OSError(ctypes.get_errno(), "renameat2", str(run))


def _folder_replaced(run: Path) -> None:
    other = run.with_name("moved")
    other.mkdir()
    (other / "record.sqlite").write_bytes(b"not a record at all")
    _exchanged(run, other)


def _linked(run: Path) -> None:
    elsewhere, link = run.with_name("elsewhere"), run.with_name("moved")
    elsewhere.mkdir()
    (elsewhere / "record.sqlite").write_bytes(b"another's")
    link.symlink_to(elsewhere)
    _exchanged(run, link)


def _foreign() -> bytes:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE theirs (x)")
        return connection.serialize()


def _another_log(run: Path) -> None:
    (run / "log").write_bytes((run / "record.sqlite-wal").read_bytes())
    (run / "log").rename(run / "record.sqlite-wal")


WAYS: Mapping[str, Callable[[Path], object]] = {
    "file deleted": lambda run: (run / "record.sqlite").unlink(),
    "file moved": lambda run: (run / "record.sqlite").rename(run.parent / "moved.sqlite"),
    "folder deleted": shutil.rmtree,
    "folder moved": lambda run: run.rename(run.with_name("moved")),
    "file replaced": lambda run: _replaced(run, _foreign()),
    "folder replaced": _folder_replaced,
    "folder replaced by a link": _linked,
}
FREE = ("file deleted", "file moved", "folder deleted", "folder moved")


LOG_WAYS: Mapping[str, Callable[[Path], object]] = {
    "its write-ahead log was deleted": lambda run: (run / "record.sqlite-wal").unlink(),
    "its write-ahead log was cut short": lambda run: os.truncate(run / "record.sqlite-wal", 4096),
    "another file is in the place of its write-ahead log": _another_log,
}


class TooLateError(Exception):
    """The run was over: whoever deletes it then does what he wants."""


def run_in(folder: Path, take: Callable[[Path], object], wait_s: float) -> tuple[int, str, str, Path]:
    """A run whose record is taken some seconds after its first poll: exit code, both outputs, and its folder then."""
    (folder / "p.yaml").write_text(PLAN.format(seconds=SECONDS), encoding="utf-8")
    run = folder / "run"
    with start(("run", "p.yaml", "--into", "run", "--no-web"), folder) as process:
        try:
            wait_until(lambda: _polled(run), "the first poll")
            time.sleep(wait_s)  # the moment that is tried
            if process.poll() is not None:
                raise TooLateError
            take(run)
            out, err = process.communicate(timeout=240)
        finally:
            process.kill()
    saved = re.search(r"^record  (\S+)/record\.sqlite ", out, re.MULTILINE) or re.search(r"soakwatch resume (\S+)", err)
    return process.returncode, out, err, folder / saved[1] if saved else run


def due_times(view: RecordView) -> list[int]:
    """When the polls of the device were due, in order."""
    (source,) = [source for source in view.sources() if source.target == "dut"]
    due_ns: list[int] = []
    cursor = ""
    while True:
        polls, cursor = view.polls_after(cursor, 1000)
        if not polls:
            return sorted(due_ns)
        due_ns += [poll.due_ns for poll in polls if poll.source == source.id]


def _polled(run: Path) -> bool:
    try:
        with RecordView.open(run) as view:
            return view.counts().polls > 0
    except RecordError:
        return False


def tried(way: str, wait_s: float, folder: Path) -> list[str] | None:
    """What went wrong in one attempt; None if the run was over before."""
    folder.mkdir()
    try:
        code, out, err, run = run_in(folder, WAYS[way], wait_s)
    except TooLateError:
        return None
    if re.search(r"^record  run/", out, re.MULTILINE) and "was saved" not in out + err and not _polled(run):
        return None  # all was done before it was taken
    if "soakwatch resume" in err:  # taken when polling was over: the end is made now
        resumed = command_in(folder)("resume", run, "--no-web", timeout=240)
        code, out = resumed.returncode, out + resumed.stdout
    problems = shortfalls(run, code, in_doubt=True)
    try:
        with RecordView.open(run) as view:
            due_ns, ended_ns = due_times(view), int(view.meta("ended_ns") or 0)
            rescues = [stored.event for stored in view.events() if stored.event.kind == "record.rescued"]
    except RecordError as error:
        return [*problems, str(error), out, err]
    holes = [after - before for before, after in itertools.pairwise(due_ns) if after - before != 200_000_000]
    if holes or ended_ns - due_ns[-1] > 400_000_000:
        problems.append(
            f"{len(due_ns)} polls, holes of {holes} ns, the last one {ended_ns - due_ns[-1]} ns before the end"
        )
    if rescues and "all of it was saved" not in out + err:
        problems.append("nothing was said of it")
    if way not in FREE and run.name == "run":
        problems.append("what had taken its place is gone")
    return [*problems, out, err] if problems else []


@pytest.mark.parametrize("way", [pytest.param("folder deleted", marks=pytest.mark.slow), "file replaced"])
def test_a_run_goes_on_when_its_record_is_taken_away(way: str, tmp_path: Path) -> None:
    """No poll is lost, it is said at once and in the record, and what has taken the place is left as it is."""
    code, out, err, run = run_in(tmp_path, WAYS[way], 1.0)
    assert (code, err) == (3, "")
    assert shortfalls(run, code, in_doubt=True) == []
    before_the_end = out.partition("finished after")[0]
    with RecordView.open(run) as view:
        (event,) = [stored.event for stored in view.events() if stored.event.kind == "record.rescued"]
        polls = len(due_times(view))
    assert SECONDS * 5 - 3 <= polls <= SECONDS * 5 + 1  # one more where the last is due as the run ends
    if way == "folder deleted":
        assert run == tmp_path / "run"
        assert (
            "TROUBLE: run/record.sqlite: its folder was deleted or moved; all of it was saved there again and"
            in before_the_end
        )
        assert event.detail["reason"] == "its folder was deleted or moved"
    else:
        assert run == tmp_path / "run.rescue"
        assert (
            "TROUBLE: run/record.sqlite is no longer this run's record: the run goes on in run.rescue" in before_the_end
        )
        assert event.detail["saved"] == "run.rescue/record.sqlite"
        assert (tmp_path / "run" / "record.sqlite").read_bytes() == _foreign()
        assert not list((tmp_path / "run").glob("record.sqlite-*")), "ours would be taken for theirs"


@pytest.mark.parametrize("why", LOG_WAYS)
def test_a_log_that_another_program_takes_or_cuts_is_noticed_at_once(why: str, tmp_path: Path) -> None:
    """The run goes on in a copy; what was lost of it is counted, and the copy is whole."""
    code, out, err, run = run_in(tmp_path, LOG_WAYS[why], 1.5)
    assert (code, err) == (3, "")
    assert run == tmp_path / "run.rescue"
    assert "the run goes on in run.rescue" in out.partition("finished after")[0]
    with RecordView.open(run) as view:
        (event,) = [stored.event for stored in view.events() if stored.event.kind == "record.rescued"]
        polls = len(due_times(view))
    replaced = "another file is in the place of its write-ahead log"
    assert event.detail["reason"] in {
        why,
        replaced if "deleted" in why else why,
    }  # a reader makes a log that is missing
    lost = int(event.detail.get("lost", "0 polls").split()[0])
    assert lost == 0 or "cut" in why  # of a cut log SQLite may have all that matters in memory
    assert polls + lost >= SECONDS * 5 - 3
    assert command_in(tmp_path)("verify", run).returncode == 0


def test_a_lock_that_is_deleted_is_taken_again_and_keeps_others_out(tmp_path: Path) -> None:
    """A second ``resume`` would write into the record of the run."""
    refused: list[subprocess.CompletedProcess[str]] = []

    def delete(run: Path) -> None:
        (run / "record.lock").unlink()
        wait_until((run / "record.lock").exists, "the lock")
        refused.append(command_in(tmp_path)("resume", run, "--no-web"))

    code, out, err, run = run_in(tmp_path, delete, 1.0)
    assert (code, err, run) == (3, "", tmp_path / "run"), out
    assert refused[0].returncode == 2
    assert "is being written by pid" in refused[0].stderr
    assert command_in(tmp_path)("verify", run).returncode == 0


def test_polls_that_another_program_deletes_are_noticed_and_the_run_ends(tmp_path: Path) -> None:
    """It is said while the run goes on, in its record, and by ``verify``; the end does not wait for what is gone."""
    deleted: list[int] = []

    def delete(run: Path) -> None:
        with closing(sqlite3.connect(run / "record.sqlite")) as other:
            other.execute("DELETE FROM poll WHERE seq = 2")
            other.commit()
            deleted.append(other.total_changes)

    code, out, err, run = run_in(tmp_path, delete, 1.0)
    assert code in {3, 4}, out + err
    polls = "1 poll" if deleted == [1] else f"{deleted[0]} polls"
    assert f"another program deleted {polls} from it" in out.partition("finished after")[0]
    with RecordView.open(run) as view:
        (event,) = [stored.event for stored in view.events() if stored.event.kind == "record.damaged"]
    assert event.detail["lost"] == polls
    verified = command_in(tmp_path)("verify", run)
    assert verified.returncode == 1, verified.stdout


def test_what_cannot_be_saved_is_said_and_the_run_is_broken(tmp_path: Path) -> None:
    """No folder can be written any more: exit code 4, and no sentence claims that something is kept."""
    needs("unshare")
    if os.geteuid() != 0:
        pytest.skip("only root can mount")
    (tmp_path / "p.yaml").write_text(PLAN.format(seconds=4), encoding="utf-8")
    script = (
        "mount -t tmpfs -o size=20m none disk && cd disk && mkdir home"
        f" && {{ {SOAKWATCH} run ../p.yaml --into run --no-web & }} && pid=$!"
        " && until [ -s run/record.sqlite-wal ]; do sleep 0.1; done && sleep 1.5 && rm -r run"
        " && { dd if=/dev/zero of=full bs=4k 2>/dev/null; for folder in /tmp /var/tmp; do"
        " mount -t tmpfs -o ro none $folder; done; wait $pid; }"
    )
    (tmp_path / "disk").mkdir()
    home = tmp_path / "disk" / "home"
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script],
        cwd=tmp_path,
        env={**environment(), "HOME": str(home), "XDG_STATE_HOME": str(home), "TMPDIR": str(home)},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 4, done.stdout + done.stderr
    assert "no copy of it could be written" in done.stderr
    assert "kept" not in done.stderr


@pytest.mark.slow
def test_records_taken_away_at_random_moments_lose_nothing(tmp_path: Path, tally: Tally) -> None:
    rng = random.Random(42)
    ways = list(WAYS)
    planned = [(ways[n % len(ways)], rng.uniform(0, SECONDS + 1), tmp_path / str(n)) for n in range(ATTEMPTS)]
    with ThreadPoolExecutor(AT_ONCE) as crew:
        results = list(crew.map(lambda one: tried(*one), planned))
    failures = [f"{one}: {'; '.join(problems)}" for one, problems in zip(planned, results, strict=True) if problems]
    attempts = sum(problems is not None for problems in results)
    tally("records deleted, moved or replaced in seven ways at random moments of a run", attempts, failures)
    assert attempts > ATTEMPTS / 2
