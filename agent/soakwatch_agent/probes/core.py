"""Core dumps: files in the folders that the kernel's core pattern names, and in configured ones."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import Dict, Optional, Set, Tuple

from soakwatch_agent.corefiles import CoreFile, Nest, crash_nests, list_cores, nests_of_folder, nests_of_pattern
from soakwatch_agent.place import Notes, Place, Turn, why
from soakwatch_agent.procfs import clean, read_line, read_text
from soakwatch_agent.sample import Answer, object_text

METRICS = ("system.core.files",)
_MOST_FOLDERS = 64
_SETTLED_S = 10  # a file that was written to so lately may still grow

# A core that is being written moves its mtime with each block: until two looks agree, name and inode are the file.
Growing = Set[Tuple[str, int]]


@dataclass
class _Folder:
    nest: Nest
    path: str
    below: bool = False
    optional: bool = False  # a folder that need not exist: nothing ever crashed here
    known: Optional[Set[Tuple[str, int, int]]] = None
    growing: Growing = field(default_factory=set)


def _thing(folder: _Folder) -> str:
    return object_text(folder=clean(folder.path))


class CoreProbe:
    """Lists the folders every 2 s. ``system.core.files`` is the witness that a folder was really looked at."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._notes = Notes()
        self._turn, self._slow = Turn(2), Turn(60)
        self._pattern: Optional[str] = None
        self._relative: Optional[Nest] = None
        self._piped = False
        self._followed = False
        self._folders: Dict[str, _Folder] = {}
        self._cwd_of: Dict[int, str] = {}
        self._limited: Set[str] = set()  # watched processes whose core limit is 0
        for folder in place.core_folders:
            self._add(nests_of_folder(folder)[0])
        for nest in crash_nests():
            self._add(nest, below=True, optional=True)

    def _add(self, nest: Nest, *, below: bool = False, optional: bool = False) -> None:
        path = nest.folder or ""
        if path not in self._folders:
            self._folders[path] = _Folder(nest, path, below, optional)

    def read(self, now_ns: int) -> Answer:
        """Event ``core.present`` for what lay there at the first sight of a folder, ``core.dump`` for what came."""
        notes = self._notes
        notes.begin(now_ns)
        if not self._turn.due(now_ns):
            return notes.answer()
        slow = self._slow.due(now_ns)
        self._read_pattern()
        if self._relative is not None:
            self._follow_watched(self._relative)
        if slow and not self._piped:
            self._check_limits()
        for folder in self._folders.values():
            self._look(folder)
        return notes.answer()

    # --- where ---------------------------------------------------------------------------------------------

    def _read_pattern(self) -> None:
        place, notes = self._place, self._notes
        try:
            pattern = read_text(place.path("/proc/sys/kernel/core_pattern")).rstrip("\n")
        except OSError as error:
            notes.fault("system.core.files", "", f"the kernel's core pattern cannot be read: {why(error)}")
            return
        if pattern == self._pattern:
            return
        self._pattern, self._relative, self._piped = pattern, None, pattern.startswith("|")
        uses_pid = read_line(place.path("/proc/sys/kernel/core_uses_pid")) not in (None, "0")
        nests = nests_of_pattern(pattern, uses_pid=uses_pid)
        if not nests and not place.core_folders:
            notes.fault(
                "system.core.files",
                "",
                f"the kernel hands cores to {clean(pattern)!r}: name the folder where it leaves them (core_folders)",
            )
        for nest in nests:
            if nest.folder is None:
                self._relative = nest
            else:
                self._add(nest, optional=self._piped)
        if self._relative is not None and not place.watches:
            notes.fault(
                "system.core.files",
                "",
                f"the core pattern {clean(pattern)!r} puts cores where the process works, and none is watched",
            )

    def _follow_watched(self, nest: Nest) -> None:
        """Remembers the working folder of each watched process: it is needed most when the process is gone."""
        watched = self._place.board.watched
        for pid in [pid for pid in self._cwd_of if pid not in watched]:
            del self._cwd_of[pid]
        if not watched and not self._followed:
            text = "cores lie where the process works, and no watched process has been seen yet"
            self._notes.fault("system.core.files", "", text)
        for pid, thing in watched.items():
            if pid in self._cwd_of:
                continue
            self._followed = True
            try:
                cwd = os.readlink(self._place.path(f"/proc/{pid}/cwd"))
            except OSError as error:
                text = f"cores lie where the process works, and that cannot be read: {why(error)}"
                self._notes.fault("system.core.files", thing, text)
                continue
            self._cwd_of[pid] = cwd
            if len(self._folders) >= _MOST_FOLDERS and cwd not in self._folders:
                text = f"more than {_MOST_FOLDERS} folders could hold cores: the others are not looked at"
                self._notes.fault("system.core.files", "", text)
                continue
            self._add(Nest(cwd, nest.named))

    def _check_limits(self) -> None:
        """A process whose core limit is 0 leaves no core however often it crashes: no core is no proof then."""
        for pid, thing in self._place.board.watched.items():
            try:
                lines = read_text(self._place.path(f"/proc/{pid}/limits")).splitlines()
            except OSError:
                continue
            for line in lines:
                if not line.startswith("Max core file size"):
                    continue
                if line.split()[4] != "0":
                    if thing in self._limited:  # the same object may have a fault of its folder
                        self._limited.discard(thing)
                        self._notes.mended("system.core.files", thing)
                else:
                    self._limited.add(thing)
                    text = "a crash would leave no core file: the process's core limit is 0 (ulimit -c)"
                    self._notes.fault("system.core.files", thing, text)

    # --- what ----------------------------------------------------------------------------------------------

    def _look(self, folder: _Folder) -> None:
        notes, thing = self._notes, _thing(folder)
        try:
            cores = list_cores(self._place.path(folder.path), folder.nest.named, below=folder.below)
        except FileNotFoundError:
            if folder.optional:
                cores = []
            else:
                notes.fault("system.core.files", thing, f"the core folder {clean(folder.path)} does not exist")
                return
        except OSError as error:
            notes.fault("system.core.files", thing, f"{clean(folder.path)} cannot be read: {why(error)}")
            return
        notes.mended("system.core.files", thing)
        notes.sample("system.core.files", thing, len(cores))
        first, known = folder.known is None, folder.known or set()
        seen: Set[Tuple[str, int, int]] = set()
        growing: Growing = set()
        for core in cores:
            identity, file = (core.name, core.mtime_ns, core.inode), (core.name, core.inode)
            seen.add(identity)
            if first:
                self._tell("core.present", folder, core)
            elif identity not in known:
                growing.add(file)
                if file not in folder.growing:
                    self._tell("core.dump", folder, core)
        folder.known, folder.growing = seen, growing

    def _tell(self, kind: str, folder: _Folder, core: CoreFile) -> None:
        """At once, so that a crash in the last second of a run is told: the size may be that of a beginning."""
        mtime = f"{core.mtime_ns // 10**9}.{core.mtime_ns % 10**9:09d}"
        more = {key: clean(value) for key, value in core.owner.items()}
        if kind == "core.dump" and self._place.real and abs(time.time() - core.mtime_ns / 10**9) < _SETTLED_S:
            more["growing"] = "yes"
        path = f"{folder.path.rstrip('/')}/{core.name}"
        self._notes.event(kind, _thing(folder), file=clean(path), mtime_s=mtime, size=core.size, **more)

    def close(self) -> None:
        """Nothing stays open."""


def open_probe(place: Place) -> CoreProbe:
    """The probe of a place."""
    return CoreProbe(place)
