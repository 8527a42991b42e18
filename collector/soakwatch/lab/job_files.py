"""The files of a lab server: below the folder of all runs, private to its user.

``.lab/queue.sqlite``  jobs, schedules, audit
``.lab/server.lock``   locked by the server that works on them
``.lab/jobs/17/``      of a job: ``alive`` (locked as long as its run goes on), ``begun``, ``run.log``, ``result.json``,
                       and ``stop`` or ``kill``, which ask it to end
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

LAB = ".lab"
QUEUE, SERVER_LOCK, JOBS = "queue.sqlite", "server.lock", "jobs"
ALIVE, BEGUN, LOG, RESULT, STOP, KILL = "alive", "begun", "run.log", "result.json", "stop", "kill"


@dataclass(frozen=True, slots=True)
class Ended:
    """How the command of a job ended: its exit code (negative for a signal), and when (UTC ns)."""

    exit_code: int
    end_ns: int


def lab_folder(runs: Path) -> Path:
    """The lab's folder of a folder of runs."""
    return runs / LAB


def job_folder(runs: Path, number: int) -> Path:
    """The folder of a job."""
    return runs / LAB / JOBS / str(number)


def take_lock(file: Path) -> int | None:
    """A descriptor that holds the lock of a file, which is made; None if another process has it. Raises OSError."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def holder(file: Path) -> str:
    """Who holds the lock of a testbed, in the words that they left there; "" if they left none."""
    with suppress(OSError):
        return " ".join(file.read_text(encoding="utf-8", errors="replace").split())[:300]
    return ""


def is_alive(folder: Path) -> bool:
    """Whether a process of a job goes on."""
    try:
        descriptor = os.open(folder / ALIVE, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def read_result(folder: Path) -> Ended | None:
    """How the command of a job ended; None if it has not, or was killed with the process that watched it."""
    try:
        data = json.loads((folder / RESULT).read_text(encoding="utf-8"))
        return Ended(int(data["exit_code"]), int(data["end_ns"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def log_tail(folder: Path, most: int) -> str:
    """The last ``most`` bytes of what a job printed."""
    with suppress(OSError), open(folder / LOG, "rb") as log:
        size = log.seek(0, os.SEEK_END)
        log.seek(max(0, size - most))
        return log.read().decode("utf-8", "replace")
    return ""
