"""The agent without a service manager: detaching, restarting, a socket path that fits, state files."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from types import FrameType
from typing import Iterator, List, Optional, Tuple

from soakwatch_agent.framing import Object


class ServeError(Exception):
    """The service cannot run; the message says why in one sentence."""


def program() -> Tuple[str, ...]:
    """The command line that starts this program again: the same Python with the zipapp or the package."""
    here = os.path.abspath(sys.argv[0])  # noqa: PTH100
    if here.endswith(".pyz"):
        return (sys.executable, "-I", here)
    return (sys.executable, "-m", "soakwatch_agent")


_MIN_PAUSE_S, _MAX_PAUSE_S = 0.5, 30.0
_STABLE_S = 60.0  # after a run of this length the restart pause is the shortest again
_MAX_LOG_BYTES = 1 << 20


def detach(log: str) -> int:
    """Starts this command again without ``--detach``, in a session of its own; returns at once."""
    if os.path.exists(log) and os.path.getsize(log) > _MAX_LOG_BYTES:  # noqa: PTH110, PTH202
        os.truncate(log, 0)
    fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        subprocess.Popen(
            _command_without("--detach"),
            stdin=subprocess.DEVNULL,
            stdout=fd,
            stderr=fd,
            start_new_session=True,
            cwd="/",
        ).returncode = 0  # it outlives this process on purpose: avoids a ResourceWarning
    finally:
        os.close(fd)
    return 0


def keep(lock: str) -> int:
    """Runs this command without ``--keep`` and restarts it when it dies; returns when it exits with 0 or 2.

    A second keeper of the same folder returns 0 at once, so starting it twice is harmless.
    """
    fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        return 0
    signalled = _StopSignal()
    pause = _MIN_PAUSE_S
    try:
        while not signalled.received:
            started = time.monotonic()
            with subprocess.Popen(_command_without("--keep"), stdin=subprocess.DEVNULL) as child:
                signalled.child = child.pid
                code = child.wait()
                signalled.child = None
            if code in (0, 2):  # stopped on request, or wrong options
                return code
            pause = _MIN_PAUSE_S if time.monotonic() - started > _STABLE_S else min(pause * 2, _MAX_PAUSE_S)
            signalled.wait(pause)
    finally:
        os.close(fd)
    return 0


class _StopSignal:
    """Forwards the keeper's SIGTERM to the agent."""

    def __init__(self) -> None:
        self.received = False
        self.child: Optional[int] = None
        signal.signal(signal.SIGTERM, self._receive)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def _receive(self, _: int, __: Optional[FrameType]) -> None:
        self.received = True
        if self.child is not None:
            os.kill(self.child, signal.SIGTERM)

    def wait(self, seconds: float) -> None:
        """Sleeps, but returns early on a SIGTERM."""
        end = time.monotonic() + seconds
        while not self.received and time.monotonic() < end:
            time.sleep(0.1)


def _command_without(option: str) -> List[str]:
    return [*program(), *(word for word in sys.argv[1:] if word != option)]


MAX_SOCKET_PATH = 107


@contextlib.contextmanager
def bounded(path: str) -> Iterator[str]:
    """A path to the same socket that is short enough to bind and connect, valid within the block.

    A socket path may have 107 bytes; a longer one is reached through /proc/self/fd of its open folder. Raises OSError
    with a ``strerror`` if that is impossible."""
    if len(os.fsencode(path)) <= MAX_SOCKET_PATH:
        yield path
        return
    folder, name = os.path.split(path)
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        short = f"/proc/self/fd/{fd}/{name}"
        if not os.path.isdir(os.path.dirname(short)) or len(os.fsencode(short)) > MAX_SOCKET_PATH:  # noqa: PTH112, PTH120
            raise OSError(0, f"its path is longer than the {MAX_SOCKET_PATH} bytes that a socket may have")
        yield short
    finally:
        os.close(fd)


_MAX_STATE_BYTES = 1 << 20


def write_state(folder: str, name: str, tree: Object) -> None:
    """Replaces a state file atomically: a kill leaves the old or the new one. Raises OSError."""
    path = os.path.join(folder, name)
    fresh = f"{path}.new"
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, json.dumps(tree).encode())
        os.fsync(fd)
    finally:
        os.close(fd)
    os.replace(fresh, path)  # noqa: PTH105


def read_state(folder: str, name: str) -> bytes:
    """A state file's first 1 MiB. Raises OSError."""
    fd = os.open(os.path.join(folder, name), os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, _MAX_STATE_BYTES)
    finally:
        os.close(fd)
