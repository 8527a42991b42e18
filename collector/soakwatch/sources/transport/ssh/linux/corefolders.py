"""Folders where core files come to lie on a device, mirrored as empty files of the same name, size, time and inode."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence

from soakwatch.sources.transport.ssh.linux.mirror import Mirror
from soakwatch_agent.corefiles import CRASH_FOLDERS, locations_of_pattern

_FILE = 0o100000
_KIND = 0o170000
_LINE = re.compile(r"([0-9a-f]{1,8}) (\d{1,19}) (\d{1,12}) (\d{1,20}) (.+)")
_MAX_FOLDERS = 32


class CoreFolders:
    """Which folders are listed, and what of them the mirror shows. ``unseen`` are those that could not be listed."""

    def __init__(self, mirror: Mirror, configured: Sequence[str]) -> None:
        self._mirror = mirror
        self._configured = tuple(configured)
        self._shown: dict[str, dict[str, tuple[int, int, int]]] = {}
        self.unseen: dict[str, str] = {}

    def wanted(self, watched: Sequence[int]) -> tuple[tuple[str, str], ...]:
        """Folders with the glob of what is looked at there; ``watched`` are the pids whose working folders count."""
        wanted: dict[str, str] = dict.fromkeys(self._configured, "*")
        pattern = os.fsdecode(self._mirror.read("/proc/sys/kernel/core_pattern")).rstrip("\n")
        uses_pid = self._mirror.read("/proc/sys/kernel/core_uses_pid").strip() not in (b"", b"0")
        for nest in locations_of_pattern(pattern, uses_pid=uses_pid):
            if nest.folder is not None:
                wanted.setdefault(nest.folder, "*")
                continue
            begin = shlex.quote(pattern.rpartition("/")[2].partition("%")[0])
            for pid in watched:
                try:
                    cwd = os.readlink(self._mirror.root + f"/proc/{pid}/cwd")
                except OSError:
                    continue
                wanted.setdefault(cwd, f"{begin if begin != chr(39) * 2 else ''}*")
        for folder in CRASH_FOLDERS:
            wanted.setdefault(folder, "* */*")
        return tuple(list(wanted.items())[:_MAX_FOLDERS])

    def take(self, folders: Sequence[tuple[str, str]], parts: Mapping[str, bytes]) -> None:
        """Takes the listings of a look."""
        for index, (folder, _) in enumerate(folders):
            lines = os.fsdecode(parts.get(f"cores {index}", b"")).splitlines()
            word = lines[0] if lines else "denied"
            if word == "there" and "many" in lines[1:2]:
                word = "many"
            if word in ("there", "absent"):
                self.unseen.pop(folder, None)
            else:
                why = "this account may not list it" if word == "denied" else "it holds more than 500 files"
                self.unseen[folder] = f"{folder} cannot be listed: {why}"
            if word == "absent":
                self._mirror.drop_folder(folder)
                self._shown.pop(folder, None)
            elif word == "there":
                self._mirror.folder(folder)
                self._show(folder, _files(lines[1:]))

    def _show(self, folder: str, files: Mapping[str, tuple[int, int, int]]) -> None:
        shown = self._shown.setdefault(folder, {})
        for name in [each for each in shown if each not in files or files[each] != shown[each]]:
            if name not in files or files[name][2] != shown[name][2]:
                self._mirror.unlink(f"{folder}/{name}")  # another inode: another file, here as well
            del shown[name]
        for name, (size, mtime_s, inode) in files.items():
            if name not in shown:
                self._mirror.sparse(f"{folder}/{name}", size, mtime_s)
                shown[name] = size, mtime_s, inode


def _files(lines: Sequence[str]) -> dict[str, tuple[int, int, int]]:
    files = {}
    for line in lines:
        match = _LINE.fullmatch(line)
        if match is not None and int(match[1], 16) & _KIND == _FILE:
            files[match[5]] = int(match[2]), int(match[3]), int(match[4])
    return files
