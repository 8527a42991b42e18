"""Files transferred between machines: checksums, and pieces of bounded size."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from soakwatch.core.private_files import open_private
from soakwatch.core.workers.executor import ClusterError

CHUNK = 4 * 2**20
"""Bytes of a piece. 72 h of 200 series each second are 32 MB, 8 pieces; dask warns of messages from 10 MB on."""


@dataclass(frozen=True, slots=True)
class FileSum:
    """A file at its origin: its name below the folder (with ``/``), size in bytes, SHA-256."""

    name: str
    size: int
    sha256: str


def sum_of(file: Path, name: str) -> FileSum:
    """The checksum of a file. Raises OSError."""
    with file.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
        return FileSum(name, opened.tell(), digest)


def sums_below(folder: Path) -> tuple[FileSum, ...]:
    """The checksums of all files below a folder, by name; () if it does not exist. Links to files are followed, links
    to folders not; sockets and pipes are left out. Raises OSError."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return tuple(sum_of(file, file.relative_to(folder).as_posix()) for file in files)


def chunks(size: int) -> Iterator[tuple[int, int]]:
    """Begin and length of each piece of a file of ``size`` bytes.

    >>> list(chunks(CHUNK + 1)), list(chunks(0))
    ([(0, 4194304), (4194304, 1)], [])
    """
    for begin in range(0, size, CHUNK):
        yield begin, min(CHUNK, size - begin)


def place_of(folder: Path, name: str) -> Path:
    """The path of a file below a folder. Raises ClusterError for a name that leads out of it."""
    path = PurePosixPath(name)
    if not path.parts or path.is_absolute() or ".." in path.parts:
        raise ClusterError(f"a worker sent a file named {name!r}, which is no name below a folder")
    return folder.joinpath(*path.parts)


def written(file: Path, expected: FileSum, pieces: Iterable[bytes]) -> bool:
    """Write the pieces durably; returns whether the file has the expected checksum. Raises OSError."""
    file.parent.mkdir(parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    with open_private(file) as opened:
        for piece in pieces:
            digest.update(piece)
            size += len(piece)
            opened.write(piece)
        opened.flush()
        os.fsync(opened.fileno())
    return size == expected.size and digest.hexdigest() == expected.sha256
