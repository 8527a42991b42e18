"""Small files of state that are replaced whole: a process that is killed leaves the old or the new one."""

from __future__ import annotations

import json
import os

from soakwatch_agent.framing import Object

_MOST = 1 << 20


def write_state(folder: str, name: str, tree: Object) -> None:
    """Replaces a file of a folder. Raises OSError; the old file is there then."""
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
    """The file's bytes, at most 1 MiB. Raises OSError."""
    fd = os.open(os.path.join(folder, name), os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, _MOST)
    finally:
        os.close(fd)
