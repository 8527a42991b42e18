"""The run of the slow tests: what it runs, that it goes on where it was ended, and its table."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests import slow
from tests.commands import MAX_WAIT_S, wait_until
from tests.durations import ROOT, Duration, Outcome, outcomes
from tests.slow import PAGE, SlowRun, slow_files, state_of, table, with_table

CONFTEST = "from tests.conftest import pytest_addoption, pytest_collection_modifyitems, pytest_configure, tally\n"
TESTS = '''"""Doors, and whether
they open. More of it."""
import pathlib, pytest
@pytest.mark.slow
def test_a(tally): tally("doors | windows", 3000, [])
@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 3])
def test_b(n):
    with pathlib.Path("ran").open("a") as file: file.write(f"{n}\\n")
    assert n != 2
    if n == 3: pytest.skip("no")
def test_quick(): assert 0
'''

LONG = """
import pathlib, pytest, time
@pytest.mark.slow
def test_before(): pass
@pytest.fixture
def server():
    yield
    with pathlib.Path("ran").open("a") as file: file.write(", taken down")
@pytest.mark.slow
def test_long(server):
    pathlib.Path("ran").write_text("begun")
    time.sleep(600)
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one file of slow tests, and one without."""
    root = tmp_path / "checkout"
    (root / "tests").mkdir(parents=True)
    (root / "docs").mkdir()
    (root / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (root / "pytest.ini").write_text(
        "[pytest]\nmarkers = slow: takes long\naddopts = -m 'not slow'\n", encoding="utf-8"
    )
    (root / "tests" / "test_doors.py").write_text(TESTS, encoding="utf-8")
    (root / "tests" / "test_other.py").write_text("def test_it(): assert 0\n", encoding="utf-8")
    (root / "docs" / "reliability.md").write_text("Before.\n<!-- tests/run -m slow -->\n<!-- / -->\n", encoding="utf-8")
    (root / ".gitignore").write_text(".venv/\n__pycache__/\nran\n", encoding="utf-8")
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for name, value in {
        "ROOT": root,
        "PAGE": root / "docs" / "reliability.md",
        "KEPT": root / "tests" / "durations-slow.json",
    }.items():
        monkeypatch.setattr(slow, name, value)
    return root


def test_a_second_call_goes_on_where_the_first_ended(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What ended is not run again, what a kill cut off is; --again begins anew, and so does other code."""
    folder = checkout / ".venv" / "slow" / state_of(checkout)
    folder.mkdir(parents=True)
    (folder / "outcomes").write_text(
        '["tests/test_doors.py::test_b[1]", "passed", [60, 1, 0], []]\n["tests/test_do', encoding="utf-8"
    )
    assert slow.main(["-n", "1"]) == 1
    printed = capsys.readouterr().out.splitlines()
    assert (checkout / "ran").read_text() == "2\n3\n", "the one that had ended is not run again"
    assert printed[-2] == "FAILED tests/test_doors.py::test_b[2]"
    assert printed[-1].startswith("1 failed, 2 passed, 1 skipped in ")
    assert slow.main([]) == 1
    assert (checkout / "ran").read_text() == "2\n3\n", "all is done"
    assert capsys.readouterr().out.splitlines()[:-1] == printed[:-1]
    assert slow.main(["--again", "--write"]) == 1
    assert (checkout / "ran").read_text() == "2\n3\n1\n2\n3\n"
    page = (checkout / "docs" / "reliability.md").read_text()
    assert page.startswith("Before.\n<!-- tests/run -m slow -->\n| what |")
    assert "| doors / windows | `test_doors.py` | 3,000 | 0 | " in page
    assert "| Doors, and whether they open (1 skipped) | `test_doors.py` | 2 | 1 | " in page
    state = state_of(checkout)
    (checkout / "docs" / "other.md").write_text("a page", encoding="utf-8")
    assert state_of(checkout) == state, "pages are no code"
    (checkout / "tests" / "test_doors.py").write_text(f"{TESTS}\n", encoding="utf-8")
    assert state_of(checkout) != state


def test_a_file_that_pytest_cannot_run_is_told_and_left(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (checkout / "tests" / "test_doors.py").write_text("import nothing_of_that_name  # mark.slow\n", encoding="utf-8")
    assert slow.main(["--write"]) == 1
    said = capsys.readouterr()
    assert "\nNOT RUN TO ITS END tests/test_doors.py\nno tests in " in said.out
    assert "tests/test_doors.py: pytest ended with 2, see " in said.err
    assert "not all has run, so reliability.md stays as it is" in said.err
    assert (checkout / "docs" / "reliability.md").read_text().count("\n") == 3


def test_who_ends_it_ends_what_it_runs(checkout: Path) -> None:
    """SIGTERM in the middle of a test: the test's fixtures are taken down, and the next call runs it again."""
    (checkout / "tests" / "test_doors.py").write_text(LONG, encoding="utf-8")
    run = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"import sys; from tests import slow; slow.ROOT = slow.Path({str(checkout)!r}); slow.main([])",
        ],
        cwd=checkout,
        stderr=subprocess.PIPE,
    )
    wait_until((checkout / "ran").exists, "the begin of the test")
    run.terminate()
    assert b"KeyboardInterrupt" in run.communicate(timeout=MAX_WAIT_S)[1]
    assert (checkout / "ran").read_text() == "begun, taken down"
    (outcome,) = outcomes(next((checkout / ".venv" / "slow").glob("*/outcomes")))
    assert outcome.test == "tests/test_doors.py::test_before", "the one that was ended is not among those that ended"


def test_what_fails_before_it_has_counted_is_a_failure() -> None:
    """A test that counts may fail otherwise: its row has one failure more than it counted."""
    name = "tests/test_slow.py"
    one = Outcome(f"{name}::a", "failed", Duration(120, 1, 0), [("kills", 10, 0)])
    two = Outcome(f"{name}::b", "failed", Duration(6, 1, 0), [("cuts", 10, 2)])
    rows = table([one, two], ROOT).splitlines()[2:]
    assert rows == ["| kills | `test_slow.py` | 10 | 1 | 2.0 |", "| cuts | `test_slow.py` | 10 | 2 | 0.1 |"]


def test_the_longest_first_and_databases_last(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("influxd")
    (tmp_path / "b.py").write_text("")
    assert SlowRun(tmp_path, tmp_path).left(["a.py", "b.py"]) == ["b.py", "a.py"]


def test_the_page_has_a_place_for_the_table() -> None:
    """And every file with slow tests is found."""
    assert with_table(PAGE.read_text(encoding="utf-8"), "TABLE").count("\nTABLE\n") == 1
    assert "tests/reliability/test_killed_runs.py" in slow_files(ROOT)
