"""Processes of a device in the mirror: who is new, who a watch means, and what is asked of those."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from soakwatch.sources.transport.ssh.linux.mirror import Mirror, files_of
from soakwatch_agent.context import HostContext, Watch
from soakwatch_agent.process_match import matcher, pid_of_file, process_info
from soakwatch_agent.procfs import parse_pid_stat

_BEGIN = re.compile(rb"^(\d{1,10}) \(", re.MULTILINE)
_LINK = re.compile(r"(/proc/\d+/(?:exe|cwd)) -> (.+)")
_FIELDS = 22  # state is the first after the name; start time the twentieth, size the twenty-first
YOUNG_S = 3.0  # until this age a process may still become another program
MAX_EXAMINED = 256  # processes looked at closely in one look, but all of them in the first

Age = Callable[[int], float]  # seconds since a start in ticks after boot


@dataclass(frozen=True, slots=True)
class StatLine:
    """One process: its line and what of it is needed here; times in ticks."""

    pid: int
    line: bytes
    parent: int
    start: int
    cpu: int  # ticks of user and system time


def stat_lines(text: bytes) -> dict[int, StatLine]:
    r"""The lines of ``cat /proc/[0-9]*/stat`` by pid. A name may hold line ends and brackets; a cut line is left out.

    >>> lines = stat_lines(b"7 (a) b) S 1 7 7 0 -1 0 0 0 0 0 11 22 0 0 20 0 3 0 99 4096 5 0\n8 (x) R 1\n")
    >>> sorted(lines), lines[7].start, lines[7].cpu
    ([7], 99, 33)
    """
    by_pid: dict[int, StatLine] = {}
    begins = [match.start() for match in _BEGIN.finditer(text)]
    index = 0
    while index < len(begins):
        following = index + 1
        # A name with a line end and something like "7 (" in it: lines are joined until the record is whole.
        while True:
            end = begins[following] if following < len(begins) else len(text)
            record = _record(text[begins[index] : end])
            if record is not None or following >= len(begins) or following - index > 3:
                break
            following += 1
        if record is not None:
            by_pid[record.pid] = record
            index = following
        else:
            index += 1
    return by_pid


def _record(line: bytes) -> StatLine | None:
    close = line.rfind(b")")
    part = line[close + 2 :].split(None, _FIELDS)
    if close < 0 or len(part) < _FIELDS - 1 or not all(part[index].isdigit() for index in (1, 11, 12, 17, 19)):
        return None
    head = line[:close].partition(b" (")[0]
    try:
        return StatLine(
            int(head),
            line,
            int(part[1]),
            int(part[19]),
            int(part[11]) + int(part[12]),
        )
    except ValueError:
        return None


class Processes:
    """Keeps the mirror's /proc/PID folders, and the set of processes that a watch may mean.

    Each look lists the pids, which costs next to nothing; lines are read of those that are new, young or watched, and
    of all of them once a minute, when a pid that changed hands or a program that became another is found.
    """

    def __init__(self, mirror: Mirror, watches: Sequence[Watch]) -> None:
        self._mirror = mirror
        self._context = HostContext(mirror.root, tuple(watches))
        self._watches = tuple(watches)
        self._matches = [matcher(watch, frozenset()) for watch in watches if watch.how in ("name", "glob", "cmdline")]
        self._lines: dict[int, StatLine | None] = {}
        self._young: set[int] = set()
        self._named: set[int] = set()
        self.interesting: set[int] = set()

    @property
    def matching(self) -> bool:
        """True if a watch goes by name or command line."""
        return bool(self._matches)

    @property
    def pids(self) -> Iterable[int]:
        """All processes of the last list."""
        return self._lines.keys()

    def take(self, pids: set[int], watched: Sequence[int], contents: Mapping[str, bytes]) -> list[int]:
        """Takes the list of a look and the lines of those that were ``watched``; returns the pids whose faces are to
        be looked at (again), the youngest first."""
        for pid in self._lines.keys() - pids:
            self._bury(pid)
        for pid in watched:
            lines = stat_lines(contents.get(f"/proc/{pid}/stat", b""))
            if pid in self._lines and (pid not in lines or not self._hold(lines[pid])):
                self._bury(pid)
        fresh = pids - self._lines.keys()
        for pid in fresh:
            self._mirror.folder(f"/proc/{pid}")
            self._lines[pid] = None
        return sorted(fresh | self._young, reverse=True) if self._matches else []

    def _hold(self, line: StatLine) -> bool:
        """Keeps a line; False if its pid went to another process."""
        before = self._lines.get(line.pid)
        if before is not None and before.start != line.start:
            return False
        self._lines[line.pid] = line
        self._mirror.put(f"/proc/{line.pid}/stat", line.line)
        return True

    def _bury(self, pid: int) -> None:
        self._lines.pop(pid, None)
        self._young.discard(pid)
        self._named.discard(pid)
        self.interesting.discard(pid)
        self._mirror.drop_folder(f"/proc/{pid}")

    def see_faces(self, pids: Iterable[int], stats: bytes, files: bytes, links: bytes, age: Age) -> set[int]:
        """Takes lines, command lines and programs; returns the pids that a watch means now and did not before."""
        contents, lines = files_of(files), stat_lines(stats)
        self.take_links(links)
        fresh = set()
        for pid in pids:
            line = lines.get(pid)
            if line is None:
                continue  # it is gone: the next list tells
            if not self._hold(line):
                self._bury(pid)
                self._mirror.folder(f"/proc/{pid}")
                self._hold(line)
            if f"/proc/{pid}/cmdline" in contents:
                self._mirror.put(f"/proc/{pid}/cmdline", contents[f"/proc/{pid}/cmdline"])
            if 0 <= age(line.start) < YOUNG_S:
                self._young.add(pid)
            else:
                self._young.discard(pid)
            if not self._meant(pid, line):
                self.interesting.discard(pid)
            elif pid not in self.interesting:
                fresh.add(pid)
        self.interesting |= fresh
        return fresh

    def take_details(self, pids: Iterable[int], contents: Mapping[str, bytes]) -> None:
        """Takes the lines of processes that a watch names itself."""
        for pid in pids:
            line = stat_lines(contents.get(f"/proc/{pid}/stat", b"")).get(pid)
            if line is not None:
                self._hold(line)

    def take_links(self, links: bytes) -> None:
        """Takes the output of ``ls -l /proc/PID/exe ...``."""
        for match in _LINK.finditer(links.decode("utf-8", "surrogateescape")):
            if int(match[1].split("/")[2]) in self._lines:
                self._mirror.link(match[1], match[2])

    def named(self) -> set[int]:
        """The new pids among those that a watch names by number or by a pidfile."""
        pids = set()
        for watch in self._watches:
            pid = int(watch.what) if watch.how == "pid" else None
            if watch.how == "pidfile":
                pid, _ = pid_of_file(self._context, watch.what)
            if pid is not None and pid in self._lines and pid not in self.interesting:
                pids.add(pid)
        self._named |= pids
        self.interesting |= pids
        return pids

    def _meant(self, pid: int, line: StatLine) -> bool:
        if pid in self._named:
            return True
        try:
            stat = parse_pid_stat(line.line.decode("utf-8", "surrogateescape"))
        except ValueError:
            return False
        face = process_info(self._context, pid, stat)
        return any(match(face) for match in self._matches)
