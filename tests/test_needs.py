"""What a person sees of tests that were skipped, and of what a machine lacks before they begin."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CONFTEST = "from tests.conftest import pytest_addoption, pytest_configure, pytest_unconfigure\n"
TESTS = """
from tests.needs import needs_influxd
def test_one(): needs_influxd()
def test_two(): needs_influxd()
def test_other(): pass
"""


def bare(folder: Path) -> dict[str, str]:
    """An environment without an influxd, wherever this machine has one."""
    empty = {"HOME": str(folder), "XDG_CACHE_HOME": str(folder), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
    return {k: v for k, v in os.environ.items() if k not in {"CI", "INFLUXD", "INFLUXD_BUILD"}} | empty


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_run_without_influxd_says_so_in_its_last_line(tmp_path: Path, processes: str) -> None:
    """Behind pytest's closing line: how many were skipped and what to install; the exit code is pytest's."""
    (tmp_path / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (tmp_path / "test_databases.py").write_text(TESTS, encoding="utf-8")
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "log").write_text(
        "building\nno influxd: install Rust, then run this again\n", encoding="utf-8"
    )
    (tmp_path / "build" / "code").write_text("4\n", encoding="utf-8")
    words = ["-q", "--workers", processes, "-c", os.devnull, "--rootdir", str(tmp_path), str(tmp_path)]
    environment = bare(tmp_path) | {"INFLUXD_BUILD": str(tmp_path / "build")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    closing, last = done.stdout.splitlines()[-2:]
    assert re.match(r"1 passed, 2 skipped in ", closing)
    assert last == "2 database tests skipped: no influxd: install Rust, then run this again (exit code 4)"


def test_prepare_names_the_packages_of_what_is_missing(tmp_path: Path) -> None:
    """A command, a file and a shared library of any architecture: named by their package where they are not."""
    (tmp_path / "there").touch()
    wanted = (
        f"shell:sh absent-command:no-such-command file:{tmp_path}/there pattern:{tmp_path}/t*e "
        f"absent-file:{tmp_path}/*/there libc6:libc.so.6 absent-library:libnone-such.so.6"
    )
    script = f'. {ROOT}/deploy/prepare; missing_packages "$1"'
    done = subprocess.run(["bash", "-c", script, "bash", wanted], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["absent-command", "absent-file", "absent-library"]


def test_a_build_of_influxd_without_rust_says_what_to_install(tmp_path: Path) -> None:
    """One sentence, and nothing is begun."""
    for name in ("bash", "dirname", "sed", "head", "sort", "grep"):
        (tmp_path / name).symlink_to(Path("/usr/bin") / name)
    environment = bare(tmp_path) | {"PATH": str(tmp_path)}
    done = subprocess.run(
        ["/bin/bash", ROOT / "tests/influxd/build"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 4
    assert done.stderr == (
        "there is no influxd and none could be built: cargo is missing: install Rust 1.72 or later (cargo), a C "
        "compiler and pkg-config, then run this again\n"
    )
