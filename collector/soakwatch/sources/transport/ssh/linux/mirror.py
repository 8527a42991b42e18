"""A small private tree with what a device's files said, where the agent's probes read it as a machine's root.

It lies in memory (/dev/shm) where there is such a place. A file is written only if its text changed.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping

_HEADER = re.compile(rb"(?:\A|\n)==> (/[^\n]+) <==\n")
_PREFIX = "soakwatch-ssh-"
MAX_BYTES = 64 << 20


def files_of(text: bytes) -> dict[str, bytes]:
    r"""The files in the output of ``tail -n +1 FILE FILE ...``, without those that could not be read.

    >>> files_of(b"==> /dev/null <==\n\n==> /proc/a <==\n1\n\n==> /proc/b <==\n2 3\n")
    {'/proc/a': b'1\n', '/proc/b': b'2 3\n'}
    """
    files: dict[str, bytes] = {}
    heads = list(_HEADER.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    for index, head in enumerate(heads):
        path = os.fsdecode(head[1])
        if path != "/dev/null":
            files[path] = text[head.end() : ends[index]]
    return files


def sweep(parent: str) -> None:
    """Removes the trees that killed collectors of this user left in a folder: their process is gone."""
    with os.scandir(parent) as entries:
        for entry in entries:
            pid = entry.name.removeprefix(_PREFIX).partition("-")[0]
            if not entry.name.startswith(_PREFIX) or not pid.isdecimal() or len(pid) > 9:
                continue
            try:
                if entry.stat(follow_symlinks=False).st_uid == os.geteuid() and entry.is_dir(follow_symlinks=False):
                    os.kill(int(pid), 0)
            except ProcessLookupError:
                shutil.rmtree(entry.path, ignore_errors=True)
            except OSError:
                continue


class Mirror:
    """The tree. Paths are the device's, absolute and without ``..``; others are left out."""

    def __init__(self) -> None:
        memory = "/dev/shm"  # noqa: S108 - a private folder is made in it
        parent = memory if os.access(memory, os.W_OK) else None
        parent = parent or tempfile.gettempdir()
        sweep(parent)
        self.root = tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=parent)
        self._held: dict[str, bytes] = {}
        self._links: dict[str, str] = {}
        self._folders: dict[str, set[str]] = {"": set()}  # each with the paths of what was put there
        self._size = 0
        for folder in ("/proc", "/sys", "/dev", "/sys/block"):
            self.folder(folder)

    def close(self) -> None:
        """Removes the tree."""
        shutil.rmtree(self.root, ignore_errors=True)

    def put(self, path: str, data: bytes) -> None:
        """Writes a file, unless it would make the tree larger than 64 MiB. Raises OSError."""
        if self._held.get(path) == data:
            return
        size = self._size + len(data) - len(self._held.get(path, b""))
        if not _sound(path) or size > MAX_BYTES:
            return
        self._enter(path)
        with open(self.root + path, "wb", buffering=0) as file:
            file.write(data)
        self._held[path], self._size = data, size

    def has(self, path: str) -> bool:
        """True for a file that was put."""
        return path in self._held

    def read(self, path: str) -> bytes:
        """What was put; nothing for another path."""
        return self._held.get(path, b"")

    def drop(self, path: str) -> None:
        """Removes a file."""
        data = self._held.pop(path, None)
        if data is not None:
            self._size -= len(data)
            os.unlink(self.root + path)  # noqa: PTH108

    def only(self, wanted: Iterable[str], contents: Mapping[str, bytes]) -> None:
        """Writes what was found of the ``wanted`` files and removes those that were not."""
        for path in wanted:
            if path in contents:
                self.put(path, contents[path])
            else:
                self.drop(path)

    def link(self, path: str, target: str) -> None:
        """Makes a symbolic link that leads nowhere: only its text is read."""
        if self._links.get(path) == target or not _sound(path) or "\0" in target or not target:
            return
        self._enter(path)
        if path in self._links:
            os.unlink(self.root + path)  # noqa: PTH108
        os.symlink(target, self.root + path)  # noqa: PTH211
        self._links[path] = target

    def folder(self, path: str) -> None:
        """Makes a folder."""
        if path and path not in self._folders and _sound(path):
            os.makedirs(self.root + path, exist_ok=True)  # noqa: PTH103
            self._folders[path] = set()

    def _enter(self, path: str) -> None:
        folder = path.rpartition("/")[0]
        self.folder(folder)
        self._folders[folder].add(path)

    def drop_folder(self, path: str) -> None:
        """Removes a folder with what was put straight into it."""
        for held in self._folders.pop(path, ()):
            self._size -= len(self._held.pop(held, b""))
            self._links.pop(held, None)
        shutil.rmtree(self.root + path, ignore_errors=True)

    def append(self, path: str, data: bytes) -> None:
        """Adds to the end of a file that is only ever added to."""
        if not _sound(path) or self._size + len(data) > MAX_BYTES:
            return
        self.folder(path.rpartition("/")[0])
        with open(self.root + path, "ab", buffering=0) as file:
            file.write(data)
        self._size += len(data)

    def unlink(self, path: str) -> None:
        """Removes a file made by ``sparse``."""
        if _sound(path) and os.path.lexists(self.root + path):
            os.unlink(self.root + path)  # noqa: PTH108

    def sparse(self, path: str, size: int, mtime_s: int) -> None:
        """Makes an empty file with the size and the modification time of a core file on the device."""
        if not _sound(path):
            return
        self.folder(path.rpartition("/")[0])
        with open(self.root + path, "wb") as file:
            file.truncate(min(size, 1 << 40))
        os.utime(self.root + path, (mtime_s, mtime_s))


def _sound(path: str) -> bool:
    return path.startswith("/") and "\0" not in path and not {"..", ".", ""} & set(path[1:].split("/"))
