"""``soakwatch`` in a process of its own, for tests of commands as commands: forked or, where the start itself is meant,
started from its file."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tests.fork_server import PROGRAM, Forked, can_fork

SOAKWATCH = PROGRAM
"""Its file, for what a shell or another program starts."""
Command = Callable[..., "subprocess.CompletedProcess[str]"]
Started = Callable[..., "subprocess.Popen[str]"]
Tally = Callable[[str, int, Sequence[object]], None]
"""What was tried, how often, and what went wrong."""
MAX_WAIT_S = 240.0
"""How long a test waits for a command or for what must happen: long enough for a machine that does much besides."""


def environment() -> dict[str, str]:
    """Wide lines, and a warning is an error."""
    return {**os.environ, "COLUMNS": "160", "PYTHONWARNINGS": "error"}


def start(
    words: Sequence[object],
    folder: Path,
    *,
    stdin: IO[str] | int | None = None,
    stdout: IO[str] | int | None = subprocess.PIPE,
    stderr: IO[str] | int | None = subprocess.PIPE,
    env: Mapping[str, str] | None = None,
    own_session: bool = False,
) -> subprocess.Popen[str]:
    """A command that begins: forked where that is the same as starting it from its file."""
    chosen = environment() if env is None else env
    kind = Forked if can_fork(chosen) else subprocess.Popen
    command: list[str | Path] = [SOAKWATCH, *map(str, words)]
    return kind(
        command,
        cwd=folder,
        env=chosen,
        text=True,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        start_new_session=own_session,
    )


def command_in(folder: Path, **variables: str) -> Command:
    """Runs commands in a folder, with some variables of their environment; each returns its exit code and what it
    printed. Nobody is there to be asked."""

    def run(*words: object, timeout: float = MAX_WAIT_S) -> subprocess.CompletedProcess[str]:
        chosen = {**environment(), **variables}
        with start(words, folder, stdin=subprocess.DEVNULL, env=chosen) as process:
            try:
                out, err = process.communicate(timeout=timeout)
            except BaseException:
                process.kill()
                raise
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    return run


@contextmanager
def starting_in(folder: Path) -> Iterator[Started]:
    """Starts commands in a folder; they are killed at the end."""
    processes: list[subprocess.Popen[str]] = []

    def start_here(*words: object) -> subprocess.Popen[str]:
        process = start(words, folder, stderr=subprocess.STDOUT)
        processes.append(process)
        return process

    yield start_here
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
