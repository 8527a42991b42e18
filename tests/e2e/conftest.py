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
LONGEST_S = 240.0
"""How long a test waits for a command or for what must happen: long enough for a machine that does much besides."""


def _environment() -> dict[str, str]:
    return {**os.environ, "COLUMNS": "160", "PYTHONWARNINGS": "error"}


def command_in(folder: Path) -> Command:
    """Runs commands in a folder; each returns its exit code and what it said."""

    def run(*words: object, timeout: float = LONGEST_S) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [SOAKWATCH, *map(str, words)],
            cwd=folder,
            env=_environment(),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    return run


@pytest.fixture
def soakwatch(tmp_path: Path) -> Command:
    """Run a command in an empty folder and return what it said."""
    return command_in(tmp_path)


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
        deadline = time.monotonic() + LONGEST_S
        while not happened():
            assert time.monotonic() < deadline, f"{what} did not happen within {LONGEST_S:g} s"
            time.sleep(0.05)

    return wait
