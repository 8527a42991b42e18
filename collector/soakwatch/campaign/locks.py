"""Locks of runs and testbeds: held by the processes that work there, gone with the last of them.

A testbed's lock is a file in the folder that this machine keeps for the user's running programs, so that two campaigns
of one user, in whatever folders, never hold a testbed at once. Locks are flock(2): they need no cleaning up after a
crash, and they are not seen by other users and other machines.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from soakwatch.campaign.campaign_model import CampaignError
from soakwatch.core.file_lock import lock_file, name_holder

THIS_MACHINE = "this machine"
_POLL_S = 0.2
_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9._-]+")


def locks_folder() -> Path:
    """The user's folder for locks, made if there is none. Raises CampaignError if another user made it.

    ``$XDG_RUNTIME_DIR/soakwatch``, else a folder of the user's own in the folder for temporary files.
    """
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime and Path(runtime).is_dir() and os.access(runtime, os.W_OK):
        folder = Path(runtime) / "soakwatch"
    else:
        folder = Path(tempfile.gettempdir()) / f"soakwatch-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    about = folder.lstat()
    if about.st_uid != os.getuid() or not stat.S_ISDIR(about.st_mode):
        raise CampaignError(f"{folder} belongs to another user: set XDG_RUNTIME_DIR to a folder of your own")
    return folder


def testbed_file(name: str) -> Path:
    """The lock of a testbed; "" is this machine."""
    return locks_folder() / f"testbed-{_NOT_IN_NAME.sub('-', name or THIS_MACHINE)}.lock"


def held(file: Path) -> bool:
    """Whether a process holds the lock of a file."""
    try:
        descriptor = os.open(file, os.O_RDWR)
    except OSError:
        return False
    try:
        lock_file(descriptor, shared=True)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


@contextmanager
def locked(file: Path, words: str) -> Iterator[int | None]:
    """The descriptor that holds the lock of a file, None if another process has it; ``words`` say who holds it."""
    descriptor = _taken(file, words)
    try:
        yield descriptor
    finally:
        if descriptor is not None:
            os.close(descriptor)


@contextmanager
def testbed_lock(name: str, words: str, stop: Callable[[], object]) -> Iterator[int | None]:
    """The descriptor that holds a testbed, waited for as long as another run has it; None if ``stop`` says something
    before that."""
    file = testbed_file(name)
    descriptor = _taken(file, words)
    while descriptor is None and not stop():
        time.sleep(_POLL_S)
        descriptor = _taken(file, words)
    try:
        yield descriptor
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _taken(file: Path, words: str) -> int | None:
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    for _ in range(3):  # somebody who asks whether it is held holds it for a moment
        try:
            lock_file(descriptor)
        except OSError:
            time.sleep(0.01)
            continue
        name_holder(descriptor, f"{words} (pid {os.getpid()})")
        return descriptor
    os.close(descriptor)
    return None
