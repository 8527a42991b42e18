"""Watched processes in a device's own table of processes: which row each instance of a watch is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from soakwatch.core.regex import user_regex
from soakwatch.sources.abc import WatchedProcess
from soakwatch.sources.profiles.evaluate import Raw
from soakwatch.sources.profiles.value import Number
from soakwatch_agent.process_match import COMM_LENGTH
from soakwatch_agent.slots import Slot, Slots

_PID = re.compile(r"[0-9]{1,10}")
_GLOB = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """A process as the device's table has it: the row's index, whose last number is the pid unless a column holds it,
    and its names."""

    index: str
    name: str
    path: str
    parameters: str
    pid_text: str = ""  # the column pid

    @property
    def pid(self) -> int:
        """The pid."""
        return int(self.pid_text) if _PID.fullmatch(self.pid_text) else int(self.index.rpartition(".")[2])

    def same(self, other: ProcessRow) -> bool:
        """True if it is still the process of that row: a pid alone may belong to another process by now."""
        return (self.index, self.name, self.pid_text) == (other.index, other.name, other.pid_text)


@dataclass(slots=True)
class Running:
    """A watched process, and the counters that its readings are computed from."""

    row: ProcessRow
    grown: dict[str, Number] = field(default_factory=dict)  # counters as last read, by metric
    before: dict[str, tuple[int, Raw]] = field(default_factory=dict)  # what changes are counted from, by metric


@dataclass(frozen=True, slots=True)
class ProcessChange:
    """A process that started, exited, or restarted in a slot; ``kind`` is the kind of its event."""

    kind: str
    slot: Slot[Running]
    detail: Mapping[str, str]


class ProcessWatch:
    """One watch and its slots; ``unassigned`` counts the processes that got no slot in the last poll."""

    def __init__(self, watch: WatchedProcess) -> None:
        self.watch = watch
        self._cmdline = user_regex(watch.what) if watch.how == "cmdline" else None
        self.slots: Slots[Running] = Slots(watch.name, _program)
        self.unassigned = 0
        self._polled = False

    @property
    def count(self) -> int:
        """How many processes the watch matched in the last poll."""
        return len(self.slots.occupied) + self.unassigned

    def update(self, rows: Mapping[str, ProcessRow]) -> list[ProcessChange]:
        """What started and exited, by the processes that run now, by index. The first call reports no starts."""
        changes = []
        for slot, running in self.slots.occupied:
            row = rows.get(running.row.index)
            if row is None or not row.same(running.row):
                changes.append(ProcessChange("process.exit", slot, {"pid": str(running.row.pid)}))
                self.slots.release(slot)
        taken = {running.row.index for _, running in self.slots.occupied}
        new = [row for row in rows.values() if row.index not in taken and self._matches(row)]
        assignments, self.unassigned = self.slots.assign(Running(row) for row in sorted(new, key=lambda row: row.pid))
        if self._polled:
            for assignment in assignments:
                pid, former = str(assignment.owner.row.pid), assignment.former
                if former is None:
                    changes.append(ProcessChange("process.start", assignment.slot, {"pid": pid}))
                else:
                    detail = {"old_pid": str(former.row.pid), "new_pid": pid}
                    changes.append(ProcessChange("process.restart", assignment.slot, detail))
        self._polled = True
        return changes

    def _matches(self, row: ProcessRow) -> bool:
        """True if the watch means a process. A pidfile cannot be read over SNMP: it never matches.

        Names are hrSWRunName and the last part of hrSWRunPath; a name of 15 characters may have been cut.
        """
        what = self.watch.what
        if self.watch.how == "pid":
            return what.isdecimal() and row.pid == int(what)
        if self._cmdline is not None:
            return self._cmdline.search(f"{row.path} {row.parameters}".strip() or row.name) is not None
        if self.watch.how == "pidfile":
            return False
        names = {row.name, PurePosixPath(row.path.split(" ")[0].lstrip("-")).name} - {""}
        if self.watch.how == "glob" or _GLOB.search(what):
            return any(fnmatchcase(name, what) for name in names)
        known = len(row.name) == COMM_LENGTH < len(what) and not row.path
        return what in names or (known and what[:COMM_LENGTH] == row.name)


def _program(running: Running) -> tuple[str, str, str]:
    return (running.row.name, running.row.path, running.row.parameters)
