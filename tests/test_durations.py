"""The order of the tests and the choice of the fast ones, by what an earlier run measured."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.durations import ROOT, Duration, Outcome, by_file, kept, ordered, outcomes, quick, record, shuffled

CONFTEST = """
import pytest
from tests.conftest import pytest_addoption, pytest_collection_modifyitems, pytest_configure
from tests.conftest import pytest_terminal_summary, tally
@pytest.fixture
def broken(): raise OSError
"""
TESTS = """
import pytest
def test_a(tally): tally("doors", 3, [])
def test_ab(): pytest.skip("no")
def test_b(): assert 0
def test_c(broken): pass
def test_d(tally): tally("windows", 5, ["shut"])
"""
FILES = {"test_one.py": TESTS, "test_two.py": TESTS}


def ran(folder: Path, *words: str, files: Mapping[str, str] = FILES) -> list[str]:
    """The tests of a folder whose pytest is that of the project; what it printed."""
    (folder / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    common = ["-c", os.devnull, "--rootdir", str(folder), "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *common, *words, str(folder)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.splitlines()


def test_each_test_has_one_line_of_what_became_of_it(tmp_path: Path) -> None:
    """In several processes; a second run with --left has what has no line yet, and nothing else."""
    file = tmp_path / "outcomes"
    ran(tmp_path, "--workers", "2", "--outcomes", str(file), "-k", "not test_ab")
    first = outcomes(file)
    said = ["passed", "failed", "failed", "failed"]
    tried = [[("doors", 3, 0)], [], [], [("windows", 5, 1)]]
    for name in ("test_one.py", "test_two.py"):
        mine = sorted(one for one in first if one.file == name)
        assert [one.test for one in mine] == [f"{name}::test_{letter}" for letter in "abcd"]
        assert [one.outcome for one in mine] == said
        assert [one.tried for one in mine] == tried
    ran(tmp_path, "--outcomes", str(file), "--left")
    left = outcomes(file)[len(first) :]
    assert sorted((one.test, one.outcome) for one in left) == [
        ("test_one.py::test_ab", "skipped"),
        ("test_two.py::test_ab", "skipped"),
    ]


def test_an_order_shuffles_files_and_tests_and_can_be_had_again(tmp_path: Path) -> None:
    def order(seed: str) -> list[str]:
        printed = ran(tmp_path, "--collect-only", "-q", "--order", seed)
        assert f"order of the tests: --order {seed}" in printed
        return [line for line in printed if "::" in line]

    orders = [order(seed) for seed in ("1", "2", "1")]
    assert orders[0] == orders[2] != orders[1]
    assert all(sorted(each) == sorted(orders[0]) and len(each) == 10 for each in orders)
    for each in orders:
        files = [line.partition("::")[0] for line in each]
        assert files == sorted(files, reverse=files[0] == "test_two.py"), "a file stays together"


def test_orders_keep_every_test() -> None:
    files = {name: [f"{name}{n}" for n in range(4)] for name in "abc"}
    for seed in range(20):
        assert sorted(shuffled(files, seed)) == sorted(item for items in files.values() for item in items)


def test_the_longest_come_first_and_unknown_ones_in_the_middle() -> None:
    known = {"long": Duration(9, 1, 0), "mid": Duration(5, 1, 0), "short": Duration(1, 1, 0)}
    assert ordered(["new", "short", "long"], known) == ["long", "new", "short"]
    assert ordered(["new", "short", "long"], known, frozenset({"long"})) == ["new", "short", "long"]
    assert ordered(["b", "a"], {}) == ["b", "a"]


def test_the_quick_ones_start_nothing_wait_for_nothing_and_fit() -> None:
    """Those of files that are gone are none of them."""
    names = ["tests/durations.py", "tests/needs.py", "tests/commands.py", "tests/slow.py", "tests/readme.py"]
    arithmetic, longer, waits, starts, short = names
    known = {
        arithmetic: Duration(1.2, 1.0, 0.0),
        longer: Duration(30.0, 29.0, 0.0),
        waits: Duration(5.0, 0.1, 0.0),
        starts: Duration(1.0, 0.5, 0.4),
        short: Duration(0.3, 0.1, 0.0),
        "tests/test_gone.py": Duration(0.3, 0.1, 0.0),
    }
    assert quick({"collector/soakwatch/core/units.py": Duration(0, 0, 0)}, 10.0) == []
    assert quick(known, 10.0) == [short, arithmetic]
    assert quick(known, 60.0) == [short, arithmetic, longer]
    assert quick(known, 1.0) == [short]


def test_a_record_keeps_what_it_did_not_measure(tmp_path: Path) -> None:
    path = tmp_path / "durations.json"
    one, two = "tests/slow.py", "tests/needs.py"
    record(
        [
            Outcome(f"{one}::a", "passed", Duration(1, 0.5, 0), ()),
            Outcome(f"{two}::a", "failed", Duration(2, 1, 0), ()),
        ],
        path,
    )
    record(
        [
            Outcome(f"{one}::a", "passed", Duration(3, 0.5, 0), ()),
            Outcome(f"{one}::b", "passed", Duration(1, 0, 2), ()),
        ],
        path,
    )
    assert kept(path) == {two: Duration(2, 1, 0), one: Duration(4, 0.5, 2)}
    assert by_file([]) == {}
    assert kept(tmp_path / "none.json") == {}


def test_a_line_that_was_cut_off_is_no_outcome(tmp_path: Path) -> None:
    path = tmp_path / "outcomes"
    line = '["a::b", "passed", [1, 1, 0], []]\n'
    path.write_text(f'{line}["a::c", "pas\n{line}["a::d"', encoding="utf-8")
    assert [one.test for one in outcomes(path)] == ["a::b", "a::b"]
    assert outcomes(tmp_path / "none") == []
