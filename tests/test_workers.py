"""Tests in forked processes: what pytest says of them is what it says of tests in one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.test_durations import ran

HEAD = """
import os, signal, pytest
from pathlib import Path
LOG = Path({log!r})
def say(word):
    with LOG.open("a") as file:
        file.write(f"{{word}} {{os.getpid()}}\\n")
@pytest.fixture(scope="module", autouse=True)
def server():
    say("begun"); yield; say("ended")
"""


def session(folder: Path, *bodies: str, words: Sequence[str] = ()) -> tuple[list[str], list[list[str]]]:
    """What pytest printed of files with these tests in two processes, and what the tests told."""
    log = folder / "log"
    files = {f"test_{number}.py": HEAD.format(log=str(log)) + body for number, body in enumerate(bodies)}
    printed = ran(folder, "--workers", "2", *words, files=files)
    return printed, [line.split() for line in log.read_text(encoding="utf-8").splitlines()]


def test_a_file_stays_in_one_process_and_fixtures_of_the_session_end(tmp_path: Path) -> None:
    meets = """
import time
from pathlib import Path
def meets(own, other):
    here = Path(__file__).parent
    (here / own).touch()
    end = time.monotonic() + 60
    while not (here / other).exists() and time.monotonic() < end: time.sleep(0.01)
"""
    bodies = [f"@pytest.mark.parametrize('n', range(5))\ndef test_n(n): say('file{number}')\n" for number in range(4)]
    for number in range(2):  # neither of two begins a second file before the other has begun one
        bodies[number] = f"{meets}{bodies[number].rstrip()}, meets('met{number}', 'met{1 - number}')\n"
    printed, told = session(tmp_path, *bodies)
    assert "20 passed" in printed[-1]
    by_file = [{pid for word, pid in told if word == f"file{number}"} for number in range(4)]
    assert [len(pids) for pids in by_file] == [1, 1, 1, 1]
    assert len(set().union(*by_file)) == 2
    begun, ended = ([pid for said, pid in told if said == word] for word in ("begun", "ended"))
    assert sorted(begun) == sorted(ended)
    assert len(begun) == 4, "once a file"


def test_a_process_that_dies_costs_the_test_that_it_ran(tmp_path: Path) -> None:
    dying = "def test_a(): pass\ndef test_b(): os.kill(os.getpid(), signal.SIGKILL)\ndef test_c(): pass\n"
    printed, _ = session(tmp_path, dying, "def test_d(): pass\n")
    assert "1 failed, 3 passed" in printed[-1]
    assert any("the process that ran it ended with -9" in line for line in printed)
    assert any(line.startswith("FAILED test_0.py::test_b") for line in printed)


def test_a_test_that_runs_out_of_its_time_says_where_each_thread_stood(tmp_path: Path) -> None:
    hangs = """
import threading, time
def waits_for_nobody(begun):
    begun.set()
    time.sleep(60)
@pytest.fixture
def waiting():
    begun = threading.Event()
    threading.Thread(target=waits_for_nobody, args=[begun], daemon=True).start()
    begun.wait()
@pytest.mark.timeout(1, func_only=True)
def test_a(waiting): time.sleep(60)
"""
    printed, _ = session(tmp_path, hangs, "def test_b(): pass\n", words=("-p", "pytest_timeout"))
    assert "1 failed, 1 passed" in printed[-1]
    assert any("Timeout" in line for line in printed)
    assert any("in waits_for_nobody" in line for line in printed)


def test_what_a_fixture_of_the_session_fails_with_at_its_end_is_told(tmp_path: Path) -> None:
    broken = "@pytest.fixture(scope='session')\ndef broken():\n    yield\n    raise OSError('the server hangs')\n"
    printed, _ = session(tmp_path, broken + "def test_a(broken): pass\n", "def test_b(): pass\n")
    assert any("a process ended with 1 behind its last test" in line for line in printed)


def test_the_first_failure_can_end_all(tmp_path: Path) -> None:
    """What still runs is ended, with its fixtures."""
    waits = "import time\ndef test_long():\n    for _ in range(3000): time.sleep(0.1)\n"
    fails = "def test_bad():\n    while LOG.read_text().count('begun') < 2: pass\n    assert 0\n"
    printed, told = session(tmp_path, waits, fails, words=["-x"])
    assert "1 failed" in printed[-1]
    assert any("stopping after 1 failures" in line for line in printed)
    assert [word for word, _ in told].count("ended") == 2
