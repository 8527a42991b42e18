"""What other processes ask of a record that may be being written: whether its writer lives."""

from __future__ import annotations

import os
from pathlib import Path

from soakwatch.record.files import record_file


def is_written(path: Path) -> bool:
    """Whether a run is writing this record now: its writer holds the lock. Asking does not touch the lock.

    False also where the system does not list its locks (it has no /proc/locks).
    """
    try:
        status = record_file(path).with_suffix(".lock").stat()
        listed = Path("/proc/locks").read_text(encoding="ascii")
    except OSError:
        return False
    place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    return any("FLOCK" in line and place in line.split() for line in listed.splitlines())
