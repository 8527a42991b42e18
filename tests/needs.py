"""Programs that a test needs: without them it is skipped, but never in CI, where tests/run has installed them."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

import pytest

from soakwatch_testing.influxd import find_influxd

_MAX_BUILD_S = 35 * 60.0
_NO_INFLUXD = "there is no influxd 2.x"
_INFLUXD_REMEDY = "tests/influxd/build makes one, or name it in INFLUXD"


def needs(*programs: str) -> None:
    """Skips where one of the programs is not installed; fails in CI."""
    path = f"{os.environ['PATH']}:/usr/sbin"
    for program in programs:
        if shutil.which(program, path=path) is None:
            _lacks(f"{program} is not installed", "tests/run installs it")


def needs_influxd() -> Path:
    """The InfluxDB server; waits for one that is being built. Skips where there is none; fails in CI."""
    wait_for_influxd()
    program = find_influxd()
    if program is None:
        log_lines = influxd_build_log().splitlines()[-2:]
        _lacks("; ".join([_NO_INFLUXD, *log_lines]), _INFLUXD_REMEDY)
    return program


def needs_chromium() -> str:
    """Chromium without windows, which takes two thirds of the time, or the whole one. Skips where there is neither;
    fails in CI."""
    programs = ("chromium-headless-shell", "chromium")
    found = next(filter(None, map(shutil.which, programs)), None)
    if found is None:
        needs(programs[0])
    assert found is not None, f"{programs[0]} is on the path of servers only"
    return found


def needs_k6() -> str:
    """The path of k6, which Debian does not have. Skips where tests/generators/build has made none."""
    return _built("k6")


def needs_jmeter() -> str:
    """The path of JMeter 5, for Debian's reads no test plan. Skips where tests/generators/build has made none."""
    return _built("jmeter")


def _built(name: str) -> str:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    program = cache / "soakwatch" / "generators" / name
    if not program.exists():
        pytest.skip(f"there is no {name}: tests/generators/build makes one")
    return str(program)


def wait_for_influxd() -> None:
    """Returns when the build that tests/run has begun is over, at the latest after 35 minutes; at once without one."""
    folder = _influxd_build()
    if folder is None:
        return
    # The folder's time is that of the build's begin: its log is made at once, and ``code`` when it is over.
    until = folder.stat().st_mtime + _MAX_BUILD_S
    while not (folder / "code").exists() and time.time() < until:
        time.sleep(0.2)


def influxd_build_log() -> str:
    """What the build of tests/run said if it has failed, and its exit code; else nothing."""
    folder = _influxd_build()
    if folder is None or not (folder / "code").exists():
        return ""
    code = (folder / "code").read_text().strip()
    return "" if code == "0" else f"{(folder / 'log').read_text(errors='replace')}exit code {code}\n"


def database_tests_skipped(skipped: Iterable[pytest.TestReport]) -> str:
    """One line: how many tests were skipped for want of influxd, why it was not built, the remedy; "" for none."""
    number = sum(_NO_INFLUXD in str(report.longrepr) for report in skipped)
    if not number:
        return ""
    *log_lines, code = influxd_build_log().splitlines() or [""]
    why = f"{log_lines[-1]} ({code})" if log_lines else f"{_NO_INFLUXD}: {_INFLUXD_REMEDY}"
    return f"{number} database test{'' if number == 1 else 's'} skipped: {why}"


def _influxd_build() -> Path | None:
    """Where tests/run keeps what its build of influxd writes: ``path``, ``log`` and, when it is over, ``code``."""
    folder = os.environ.get("INFLUXD_BUILD")
    return Path(folder) if folder and Path(folder).is_dir() else None


def _lacks(what: str, remedy: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(f"{what}: {remedy}")
    pytest.skip(f"{what}: {remedy}")
