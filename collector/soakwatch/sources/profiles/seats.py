"""Seats for the processes of one watch over SNMP, so that a process that restarts keeps one series."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from soakwatch.sources.abc import WatchedProcess
from soakwatch.sources.profiles.evaluate import Raw
from soakwatch.sources.profiles.value import Number
from soakwatch_agent.sample import object_text

MOST_SEATS = 64  # instances a watch
CUT = 15  # the Linux kernel cuts the name of a process here
_PID = re.compile(r"[0-9]{1,10}")
_GLOB = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """A process as the device's table has it: the row's index, whose last number is the pid unless a column tells it,
    and its names."""

    index: str
    name: str
    path: str
    parameters: str
    told: str = ""  # the column pid

    @property
    def pid(self) -> int:
        """The pid."""
        return int(self.told) if _PID.fullmatch(self.told) else int(self.index.rpartition(".")[2])

    def same(self, other: ProcessRow) -> bool:
        """Whether it is still the process of that row: a pid alone may be somebody else by now."""
        return (self.index, self.name, self.told) == (other.index, other.name, other.told)


@dataclass(slots=True)
class Seat:
    """One instance of a watch: one series a metric, whoever sits in it."""

    instance: int
    thing: str
    owner: ProcessRow | None = None
    former: ProcessRow | None = None
    grown: dict[str, Number] = field(default_factory=dict)  # counters of the owner, by metric
    before: dict[str, tuple[int, Raw]] = field(default_factory=dict)  # what changes are counted from, by metric


@dataclass(frozen=True, slots=True)
class Move:
    """A process that came, went, or took the place of another one in a seat."""

    kind: str
    seat: Seat
    detail: Mapping[str, str]


@dataclass(slots=True)
class Seats:
    """The seats of one watch. Seat 0 is there from the start: what never appeared is visible as down."""

    watch: WatchedProcess
    seats: list[Seat] = field(default_factory=list)
    began: bool = False
    homeless: int = 0

    def __post_init__(self) -> None:
        """Opens seat 0."""
        self._open()

    def _open(self) -> Seat:
        instance = len(self.seats)
        seat = Seat(instance, object_text(process=self.watch.name, instance=instance))
        self.seats.append(seat)
        return seat

    @property
    def taken(self) -> list[Seat]:
        """The seats with somebody in them."""
        return [seat for seat in self.seats if seat.owner is not None]

    def look(self, faces: Mapping[str, ProcessRow]) -> list[Move]:
        """Who came and went, by the processes that are there now, by index."""
        moves = []
        for seat in self.taken:
            assert seat.owner is not None
            face = faces.get(seat.owner.index)
            if face is None or not face.same(seat.owner):
                moves.append(Move("process.exit", seat, {"pid": str(seat.owner.pid)}))
                seat.former, seat.owner = seat.owner, None
        seated = {seat.owner.index for seat in self.taken if seat.owner is not None}
        births = [face for face in faces.values() if face.index not in seated and matches(self.watch, face)]
        moves += self._seat(births)
        self.began = True
        return moves

    def _seat(self, births: Iterable[ProcessRow]) -> list[Move]:
        """First into the seat of a former process with the same command line, the others by pid into the lowest one."""
        waiting = sorted(births, key=lambda face: face.pid)
        rest = []
        moves = []
        for face in waiting:
            kin = next((s for s in self.seats if s.owner is None and s.former and _akin(s.former, face)), None)
            if kin is None:
                rest.append(face)
            else:
                moves.append(self._sit(kin, face))
        self.homeless = 0
        for face in rest:
            seat = next((seat for seat in self.seats if seat.owner is None), None)
            if seat is None and len(self.seats) >= MOST_SEATS:
                self.homeless += 1
                continue
            moves.append(self._sit(seat or self._open(), face))
        return moves if self.began else []

    def _sit(self, seat: Seat, face: ProcessRow) -> Move:
        seat.owner = face
        seat.grown.clear()
        seat.before.clear()
        if seat.former is None:
            return Move("process.start", seat, {"pid": str(face.pid)})
        return Move("process.restart", seat, {"old_pid": str(seat.former.pid), "new_pid": str(face.pid)})


def _akin(one: ProcessRow, other: ProcessRow) -> bool:
    return (one.name, one.path, one.parameters) == (other.name, other.path, other.parameters)


def matches(watch: WatchedProcess, face: ProcessRow) -> bool:
    """Whether a watch means a process. A pidfile cannot be read over SNMP: it never matches.

    Names are hrSWRunName and the last part of hrSWRunPath; a name of 15 characters may have been cut.
    """
    what = watch.what
    if watch.how == "pid":
        return what.isdecimal() and face.pid == int(what)
    if watch.how == "cmdline":
        return re.search(what, f"{face.path} {face.parameters}".strip() or face.name) is not None
    if watch.how == "pidfile":
        return False
    names = {face.name, PurePosixPath(face.path.split(" ")[0].lstrip("-")).name} - {""}
    if watch.how == "glob" or _GLOB.search(what):
        return any(fnmatchcase(name, what) for name in names)
    cut = len(face.name) == CUT and len(what) > CUT and not face.path and what[:CUT] == face.name
    return what in names or cut
