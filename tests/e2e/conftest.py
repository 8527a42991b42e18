"""Commands run as commands: the installed ``soakwatch`` in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

SOAKWATCH = Path(sys.executable).with_name("soakwatch")
Command = Callable[..., "subprocess.CompletedProcess[str]"]
Started = Callable[..., "subprocess.Popen[str]"]


def _environment() -> dict[str, str]:
    return {**os.environ, "COLUMNS": "160", "PYTHONWARNINGS": "error"}


@pytest.fixture
def soakwatch(tmp_path: Path) -> Command:
    """Run a command in an empty folder and return what it said."""

    def run(*words: object, timeout: float = 100) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [SOAKWATCH, *map(str, words)],
            cwd=tmp_path,
            env=_environment(),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    return run


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    """Start a command in an empty folder; it is killed when the test ends."""
    processes: list[subprocess.Popen[str]] = []

    def start(*words: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [SOAKWATCH, *map(str, words)],
            cwd=tmp_path,
            env=_environment(),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


@pytest.fixture
def until() -> Callable[[Callable[[], bool], str], None]:
    """Wait for something that must happen, with a deadline that a busy machine does not miss."""

    def wait(happened: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + 90
        while not happened():
            assert time.monotonic() < deadline, f"{what} did not happen within 90 s"
            time.sleep(0.05)

    return wait
