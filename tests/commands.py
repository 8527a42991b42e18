"""The installed ``soakwatch`` in a process of its own, for tests of commands as commands."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

SOAKWATCH = Path(sys.executable).with_name("soakwatch")
Command = Callable[..., "subprocess.CompletedProcess[str]"]
Started = Callable[..., "subprocess.Popen[str]"]
Tally = Callable[[str, int, Sequence[object]], None]
"""What was tried, how often, and what went wrong."""
MAX_WAIT_S = 240.0
"""How long a test waits for a command or for what must happen: long enough for a machine that does much besides."""


def environment() -> dict[str, str]:
    """Wide lines, and a warning is an error."""
    return {**os.environ, "COLUMNS": "160", "PYTHONWARNINGS": "error"}


def command_in(folder: Path) -> Command:
    """Runs commands in a folder; each returns its exit code and what it printed."""

    def run(*words: object, timeout: float = MAX_WAIT_S) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [SOAKWATCH, *map(str, words)],
            cwd=folder,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    return run


@contextmanager
def starting_in(folder: Path) -> Iterator[Started]:
    """Starts commands in a folder; they are killed at the end."""
    processes: list[subprocess.Popen[str]] = []

    def start(*words: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [SOAKWATCH, *map(str, words)],
            cwd=folder,
            env=environment(),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def wait_until(happened: Callable[[], bool], what: str) -> None:
    """Wait for what must happen, with a deadline that a busy machine does not miss."""
    deadline = time.monotonic() + MAX_WAIT_S
    while not happened():
        assert time.monotonic() < deadline, f"{what} did not happen within {MAX_WAIT_S:g} s"
        time.sleep(0.05)
