"""Keeps the agent running where no service manager does: a small parent, apart from any session, starts it again."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from types import FrameType
from typing import List, Optional

from soakwatch_agent.itself import program

_SHORTEST_S, _LONGEST_S = 0.5, 30.0
_WELL_S = 60.0
_LOG_BOUND = 1 << 20


def detach(log: str) -> int:
    """Starts this command again without ``--detach``, in a session of its own; returns at once."""
    if os.path.exists(log) and os.path.getsize(log) > _LOG_BOUND:  # noqa: PTH110, PTH202
        os.truncate(log, 0)
    fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        subprocess.Popen(
            _again("--detach"), stdin=subprocess.DEVNULL, stdout=fd, stderr=fd, start_new_session=True, cwd="/"
        ).returncode = 0  # it is nobody's child any more: no complaint about a process that still runs
    finally:
        os.close(fd)
    return 0


def keep(lock: str) -> int:
    """Starts this command again without ``--keep``, and again whenever it dies; leaves when it ended by itself.

    A second keeper of the same folder leaves at once, so this may be started as often as one likes.
    """
    fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        return 0
    ending = _Ending()
    pause = _SHORTEST_S
    try:
        while not ending.told:
            begun = time.monotonic()
            with subprocess.Popen(_again("--keep"), stdin=subprocess.DEVNULL) as child:
                ending.child = child.pid
                code = child.wait()
                ending.child = None
            if code in (0, 2):  # it was stopped, or can never run
                return code
            pause = _SHORTEST_S if time.monotonic() - begun > _WELL_S else min(pause * 2, _LONGEST_S)
            ending.wait(pause)
    finally:
        os.close(fd)
    return 0


class _Ending:
    """A SIGTERM for the keeper goes on to the agent."""

    def __init__(self) -> None:
        self.told = False
        self.child: Optional[int] = None
        signal.signal(signal.SIGTERM, self._tell)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def _tell(self, _: int, __: Optional[FrameType]) -> None:
        self.told = True
        if self.child is not None:
            os.kill(self.child, signal.SIGTERM)

    def wait(self, seconds: float) -> None:
        """Waits, less if a SIGTERM comes."""
        end = time.monotonic() + seconds
        while not self.told and time.monotonic() < end:
            time.sleep(0.1)


def _again(without: str) -> List[str]:
    return [*program(), *(word for word in sys.argv[1:] if word != without)]
