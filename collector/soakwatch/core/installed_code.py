"""Whether Soakwatch was replaced on the disk while this process runs.

A package is upgraded beside runs of days. What such a run has imported stays as it was; what it imports later, or
starts as a process, is of the new version, or is gone.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import soakwatch
import soakwatch_agent
import soakwatch_model
import soakwatch_rules

_OURS = tuple(
    Path(str(package.__file__)).parent for package in (soakwatch, soakwatch_agent, soakwatch_model, soakwatch_rules)
)
_OTHERS = Path(np.__file__).parent.parent
REPLACED = "Soakwatch was replaced on this machine while the run goes on"


def code_stamp() -> str:
    """Names, sizes and times of the files of Soakwatch, and of the lists of what is installed beside it.

    It differs after any installation, also of the same version, and after an edit in a checkout. Takes milliseconds.
    """
    digest = hashlib.sha256()
    for folder in _OURS:
        for name, status in sorted(_files(str(folder))):
            digest.update(f"{name}\0{status.st_size}\0{status.st_mtime_ns}\n".encode(errors="surrogateescape"))
    try:
        lists = sorted(entry.name for entry in os.scandir(_OTHERS) if entry.name.endswith(".dist-info"))
    except OSError:
        lists = []
    digest.update("\n".join(lists).encode(errors="surrogateescape"))
    return digest.hexdigest()


def _files(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """The files below a folder with their status, but for what Python compiled and what goes meanwhile."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        try:
            if entry.is_dir():
                if entry.name != "__pycache__":
                    yield from _files(entry.path)
            else:
                yield entry.path, entry.stat()
        except OSError:
            continue
