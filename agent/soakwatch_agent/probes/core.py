"""Core dumps: files in the folders that the kernel's core pattern names, and in configured ones."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import Dict, Optional, Set, Tuple

from soakwatch_agent.context import HostContext, Periodic, ProbeAnswer, why
from soakwatch_agent.corefiles import (
    CoreFile,
    CoreLocation,
    crash_locations,
    list_cores,
    locations_of_folder,
    locations_of_pattern,
)
from soakwatch_agent.procfs import clean, read_line, read_text
from soakwatch_model.sample import Answer, object_text

_MAX_FOLDERS = 64
_SETTLED_S = 10  # a file written within this time may still grow

# A growing core changes its mtime with each block, so name and inode identify it until two polls agree.
Growing = Set[Tuple[str, int]]


@dataclass
class _Folder:
    location: CoreLocation
    path: str
    below: bool = False
    optional: bool = False  # may be missing: nothing has crashed here yet
    known: Optional[Set[Tuple[str, int, int]]] = None
    growing: Growing = field(default_factory=set)


def _label(folder: _Folder) -> str:
    return object_text(folder=clean(folder.path))


class CoreProbe:
    """Lists the core folders every 2 s. A sample of ``system.core.files`` proves that a folder was listed."""

    def __init__(self, context: HostContext) -> None:
        self._context = context
        self._notes = ProbeAnswer()
        self._listing, self._slow = Periodic(2), Periodic(60)
        self._pattern: Optional[str] = None
        self._relative: Optional[CoreLocation] = None
        self._piped = False
        self._followed = False
        self._folders: Dict[str, _Folder] = {}
        self._cwd_of: Dict[int, str] = {}
        self._limited: Set[str] = set()  # watched processes whose core limit is 0
        for folder in context.core_folders:
            self._add(locations_of_folder(folder)[0])
        for location in crash_locations():
            self._add(location, below=True, optional=True)

    def _add(self, location: CoreLocation, *, below: bool = False, optional: bool = False) -> None:
        path = location.folder or ""
        if path not in self._folders:
            self._folders[path] = _Folder(location, path, below, optional)

    def read(self, now_ns: int) -> Answer:
        """Event ``core.present`` for files found by the first listing, ``core.dump`` for later ones."""
        notes = self._notes
        notes.begin(now_ns)
        if not self._listing.due(now_ns):
            return notes.answer()
        slow = self._slow.due(now_ns)
        self._read_pattern()
        if self._relative is not None:
            self._follow_watched(self._relative)
        if slow and not self._piped:
            self._check_limits()
        for folder in self._folders.values():
            self._check(folder)
        return notes.answer()

    # --- folders -------------------------------------------------------------------------------------------

    def _read_pattern(self) -> None:
        context, notes = self._context, self._notes
        try:
            pattern = read_text(context.path("/proc/sys/kernel/core_pattern")).rstrip("\n")
        except OSError as error:
            notes.fault("system.core.files", "", f"the kernel's core pattern cannot be read: {context.why(error)}")
            return
        if pattern == self._pattern:
            return
        self._pattern, self._relative, self._piped = pattern, None, pattern.startswith("|")
        uses_pid = read_line(context.path("/proc/sys/kernel/core_uses_pid")) not in (None, "0")
        locations = locations_of_pattern(pattern, uses_pid=uses_pid)
        if not locations and not context.core_folders:
            notes.fault(
                "system.core.files",
                "",
                f"the kernel passes cores to {clean(pattern)!r}: give the folder where it puts them (core_folders)",
            )
        for location in locations:
            if location.folder is None:
                self._relative = location
            else:
                self._add(location, optional=self._piped)
        if self._relative is not None and not context.watches:
            notes.fault(
                "system.core.files",
                "",
                f"the core pattern {clean(pattern)!r} puts cores into the process's working folder: "
                f"watch a process, or give core_folders",
            )

    def _follow_watched(self, location: CoreLocation) -> None:
        """Remembers the working folder of each watched process: it is needed after the process has crashed."""
        watched = self._context.shared.watched
        for pid in [pid for pid in self._cwd_of if pid not in watched]:
            del self._cwd_of[pid]
        if not watched and not self._followed:
            text = "cores go to the process's working folder, and no watched process has run yet"
            self._notes.fault("system.core.files", "", text)
        for pid, label in watched.items():
            if pid in self._cwd_of:
                continue
            self._followed = True
            try:
                cwd = os.readlink(self._context.path(f"/proc/{pid}/cwd"))
            except OSError as error:
                text = f"cores go to the process's working folder, which cannot be read: {self._context.why(error)}"
                self._notes.fault("system.core.files", label, text)
                continue
            self._cwd_of[pid] = cwd
            if len(self._folders) >= _MAX_FOLDERS and cwd not in self._folders:
                text = f"more than {_MAX_FOLDERS} folders could hold cores: the others are not checked"
                self._notes.fault("system.core.files", "", text)
                continue
            self._add(CoreLocation(cwd, location.named))

    def _check_limits(self) -> None:
        """Reports watched processes whose core limit is 0: they leave no core, so an empty folder proves nothing."""
        for pid, label in self._context.shared.watched.items():
            try:
                lines = read_text(self._context.path(f"/proc/{pid}/limits")).splitlines()
            except OSError:
                continue
            for line in lines:
                if not line.startswith("Max core file size"):
                    continue
                if line.split()[4] != "0":
                    if label in self._limited:  # else the fault of this object may be about its folder
                        self._limited.discard(label)
                        self._notes.recovered("system.core.files", label)
                else:
                    self._limited.add(label)
                    text = "a crash would leave no core file: the process's core limit is 0 (ulimit -c)"
                    self._notes.fault("system.core.files", label, text)

    # --- files ---------------------------------------------------------------------------------------------

    def _check(self, folder: _Folder) -> None:
        notes, label = self._notes, _label(folder)
        try:
            cores = list_cores(self._context.path(folder.path), folder.location.named, below=folder.below)
        except FileNotFoundError:
            if folder.optional:
                cores = []
            else:
                notes.fault("system.core.files", label, f"the core folder {clean(folder.path)} does not exist")
                return
        except OSError as error:
            notes.fault("system.core.files", label, f"{clean(folder.path)} cannot be read: {why(error)}")
            return
        notes.recovered("system.core.files", label)
        notes.sample("system.core.files", label, len(cores))
        first, known = folder.known is None, folder.known or set()
        seen: Set[Tuple[str, int, int]] = set()
        growing: Growing = set()
        for core in cores:
            identity, file = (core.name, core.mtime_ns, core.inode), (core.name, core.inode)
            seen.add(identity)
            if first:
                self._report("core.present", folder, core)
            elif identity not in known:
                growing.add(file)
                if file not in folder.growing:
                    self._report("core.dump", folder, core)
        folder.known, folder.growing = seen, growing

    def _report(self, kind: str, folder: _Folder, core: CoreFile) -> None:
        """Reports a core file at once, even if it is still growing, so that the last second of a run counts."""
        mtime = f"{core.mtime_ns // 10**9}.{core.mtime_ns % 10**9:09d}"
        detail = {key: clean(value) for key, value in core.owner.items()}
        if kind == "core.dump" and self._context.real and abs(time.time() - core.mtime_ns / 10**9) < _SETTLED_S:
            detail["growing"] = "yes"
        path = f"{folder.path.rstrip('/')}/{core.name}"
        self._notes.event(kind, _label(folder), file=clean(path), mtime_s=mtime, size=core.size, **detail)

    def close(self) -> None:
        """Does nothing: the probe keeps nothing open."""


def open_probe(context: HostContext) -> CoreProbe:
    """Opens the probe of a host."""
    return CoreProbe(context)
