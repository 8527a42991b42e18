"""Which processes a watch matches (by name, glob or command line), and the search for new ones.

A poll lists /proc if anything began or ended, and examines only new pids, plus a slice of the others.
"""

from __future__ import annotations

import math
import os
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Callable, Dict, FrozenSet, List, Optional, Sequence, Set, Tuple

from soakwatch_agent.command_pattern import search_of
from soakwatch_agent.context import SECOND, HostContext, Watch
from soakwatch_agent.kept_files import KeptFiles, KeptProcesses
from soakwatch_agent.procfs import PidStat, clean, parse_pid_stat, read_text

COMM_LENGTH = 15  # the kernel cuts the name of a process here

Identity = Tuple[int, int]  # pid and start in ticks after boot, since pids are reused


@dataclass(frozen=True)
class ProcessInfo:
    """A process as watches match it: its names and its command line.

    ``cut`` is the kernel's name (15 characters, perhaps truncated) if nothing longer is known.
    """

    __slots__ = ("cmdline", "cut", "names", "pid", "stat")
    pid: int
    stat: PidStat
    names: FrozenSet[str]
    cut: Optional[str]
    cmdline: str

    @property
    def identity(self) -> Identity:
        """Pid and start."""
        return self.pid, self.stat.start


def read_command(context: HostContext, pid: int) -> str:
    """The command line of a process as the kernel has it; empty if there is none, or it may not be read."""
    try:
        return read_text(context.path(f"/proc/{pid}/cmdline"))
    except OSError:
        return ""


def process_info(context: HostContext, pid: int, stat: PidStat, command: Optional[str] = None) -> ProcessInfo:
    """Reads names and command line of a process (or takes its ``command``); what may not be read is left out."""
    folder = context.path(f"/proc/{pid}")
    words = (read_command(context, pid) if command is None else command).rstrip("\0").split("\0")
    names = {clean(stat.comm)}
    if words[0]:
        names.add(clean(os.path.basename(words[0]).lstrip("-")))  # noqa: PTH119 - a login shell is called -bash
    try:
        program = os.readlink(f"{folder}/exe")
    except OSError:
        program = ""
    if program:
        names.add(clean(os.path.basename(program)).replace(" (deleted)", ""))  # noqa: PTH119 - upgraded while it ran
    cut = stat.comm if len(stat.comm) == COMM_LENGTH and not words[0] and not program else None
    return ProcessInfo(pid, stat, frozenset(names), cut, clean(" ".join(words)))


Match = Callable[[ProcessInfo], bool]


def matcher(watch: Watch, own: FrozenSet[int]) -> Match:
    """The predicate of a watch by name, glob or command line.

    ``own`` holds this process and its ancestors. This process never matches, nor do ancestors that carry the expression
    in their own command line (``sh -c 'soakwatch run --process cmdline:x'``).
    """
    what, me = watch.what, os.getpid() if own else -1
    if watch.how == "cmdline":
        found = search_of(what)
        return lambda p: found(p.cmdline) and p.pid != me and not (p.pid in own and "soakwatch" in p.cmdline)
    if watch.how == "glob":
        return lambda p: p.pid != me and any(fnmatchcase(name, what) for name in p.names)
    return lambda p: (
        p.pid != me and (what in p.names or (p.cut is not None and what[:COMM_LENGTH] == p.cut and len(what) > 15))
    )


def own_ancestry(context: HostContext) -> FrozenSet[int]:
    """This process and its ancestors; empty for a recorded machine, whose pids are of others."""
    if not context.real:
        return frozenset()
    ancestry, pid = {os.getpid()}, os.getppid()
    while pid > 0 and pid not in ancestry:
        ancestry.add(pid)
        try:
            text = read_text(f"/proc/{pid}/stat")
        except OSError:
            break
        pid = int(text[text.rindex(")") + 2 :].split(None, 2)[1])
    return frozenset(ancestry)


def pid_of_file(context: HostContext, path: str) -> Tuple[Optional[int], str]:
    """The pid in a pidfile and, if there is none, what is wrong with the file (empty if it does not exist)."""
    try:
        words = read_text(context.path(path)).split()
    except FileNotFoundError:
        return None, ""
    except OSError as error:
        return None, f"the pidfile {path} cannot be read: {(error.strerror or 'no reason given').lower()}"
    if not words or not words[0].isdigit() or int(words[0]) <= 0:
        return None, f"the pidfile {path} holds no pid"
    return int(words[0]), ""


def read_stat(context: HostContext, pid: int) -> Optional[PidStat]:
    """A process's stat line; None if it is gone."""
    try:
        return parse_pid_stat(read_text(context.path(f"/proc/{pid}/stat")))
    except (OSError, ValueError):
        return None


_RESCAN_NS = 60 * SECOND  # every process is examined again within this time
_RELIST_NS = 5 * SECOND  # /proc is listed at least so often: what a container shows as its load may be stale
_MAX_NEW = 256  # new processes examined per poll; the rescan finds the others
_REEXAMINATIONS = 2  # how often a new process is examined again, since exec renames it
_SETTLED_S = 2.0  # younger processes are examined at each poll: on a busy machine exec comes late
_YOUNG_S = 0.5  # younger processes never match: a fork has its parent's name until it execs


@dataclass(frozen=True)
class MatchedProcess:
    """A process, and the indices of the watches (by name, glob or command line) that match it."""

    __slots__ = ("process", "watches")
    process: ProcessInfo
    watches: Sequence[int]


_State = Tuple[int, str, str]
"""Start, name and command line: what a process is matched by, but for its program, which does not change alone."""


def tasks_of(loadavg: str) -> str:
    """What changes in /proc/loadavg whenever a process or thread begins or ends: how many there are, and the last pid
    that was given; "" where a kernel does not tell.

    >>> tasks_of("0.20 0.18 0.12 1/80 11206\\n"), tasks_of("0.00 0.00 0.00 0/0 0\\n"), tasks_of("")
    ('80 11206', '', '')
    """
    words = loadavg.split()
    if len(words) < 5 or not words[4].isdigit() or not int(words[4]):
        return ""
    return f"{words[3].rpartition('/')[2]} {words[4]}"


class ProcessSearch:
    """Finds the processes that match; keeps state from poll to poll."""

    def __init__(
        self, context: HostContext, watches: Sequence[Watch], loadavg: Optional[Callable[[], str]] = None
    ) -> None:
        """``loadavg`` reads /proc/loadavg, if not that of the machine."""
        own: FrozenSet[int] = own_ancestry(context)
        self._context = context
        self._proc = context.path("/proc")
        self._matches: Dict[int, Match] = {
            index: matcher(watch, own)
            for index, watch in enumerate(watches)
            if watch.how in ("name", "glob", "cmdline")
        }
        self._hz = os.sysconf("SC_CLK_TCK")
        self._known: Set[str] = set()
        self._tasks, self._listed_ns = "", 0  # when /proc was listed
        self._again: Dict[str, int] = {}
        self._round: List[str] = []
        self._round_size = 0
        self._debt = 0.0
        self._last_ns: Optional[int] = None
        self._first = True
        self._files = KeptFiles(context)
        self._read_uptime = self._files.reader("/proc/uptime", whole=True)
        self._read_loadavg = loadavg or self._files.reader("/proc/loadavg", whole=True)
        self._uptime_s: Optional[float] = None
        self._queue: List[str] = []
        self._stats: Dict[int, Optional[PidStat]] = {}
        self._examined: Dict[str, Tuple[_State, MatchedProcess]] = {}
        self.kept = KeptProcesses(context)
        self.count = 0

    def stat(self, pid: int) -> Optional[PidStat]:
        """A process's stat, read once a poll; None if it is gone."""
        if pid not in self._stats:
            self._stats[pid] = self._read_stat(pid)
        return self._stats[pid]

    def _read_stat(self, pid: int) -> Optional[PidStat]:
        kept = self.kept.of(pid)
        if kept is not None:
            try:
                return parse_pid_stat(kept.stat.read())
            except (OSError, ValueError):
                self.kept.drop(pid)  # it is gone, and another one may have its pid
        return read_stat(self._context, pid)

    def begin_poll(self, now_ns: int) -> None:
        """Starts a poll: lists /proc, if anything began or ended, and queues the pids to examine."""
        self._stats.clear()
        self._uptime_s = None
        names = self._names(now_ns)
        fresh = [name for name in names - self._known if name.isdigit()]
        gone = self._known - names
        self.count += len(fresh) - sum(name.isdigit() for name in gone)
        for name in gone:
            self._examined.pop(name, None)
        first = self._first = self._last_ns is None
        self._known = names
        again = {name: left for name, left in self._again.items() if name in names}
        self._queue = list(again)
        self._again = {name: left - 1 for name, left in again.items() if left > 1}
        if self._matches:
            taken = fresh if first else fresh[:_MAX_NEW]
            self._queue += taken
            if not first:
                self._again.update(dict.fromkeys(taken, _REEXAMINATIONS))
                self._queue += self._slice(now_ns)
        self._last_ns = now_ns

    def _names(self, now_ns: int) -> Set[str]:
        """What is in /proc. To list it takes as long as to read ten processes."""
        tasks = ""
        if self._context.real:
            with suppress(OSError):
                tasks = tasks_of(self._read_loadavg())
        # Read before the list: what begins in between is in the next reading as well.
        if tasks and tasks == self._tasks and 0 <= now_ns - self._listed_ns < _RELIST_NS:
            return self._known
        self._tasks, self._listed_ns = tasks, now_ns
        return set(os.listdir(self._proc))

    def _slice(self, now_ns: int) -> List[str]:
        """The next slice of the rescan of all processes, which finds a pid that was reused between polls."""
        if not self._round:
            self._round = [name for name in self._known if name.isdigit()]
            self._round_size = len(self._round)
        passed = max(now_ns - (self._last_ns or now_ns), 0)
        self._debt = min(self._debt + self._round_size * passed / _RESCAN_NS, float(_MAX_NEW))
        part = [self._round.pop() for _ in range(min(int(self._debt), len(self._round)))]
        self._debt -= len(part)
        return [name for name in part if name in self._known]

    def reexamine(self, pid: int) -> None:
        """Queues a formerly watched pid as if new: it belongs to another process now."""
        self._queue.append(str(pid))
        self._again[str(pid)] = _REEXAMINATIONS

    def matches(self, taken: Set[Identity]) -> List[MatchedProcess]:
        """The queued processes that watches match, without zombies, the very young, and those in ``taken``, which every
        watch that could match has already."""
        matched = []
        for name in dict.fromkeys(self._queue):
            pid = int(name)
            stat = self.stat(pid)
            if stat is None or stat.dead or (pid, stat.start) in taken:
                continue
            found = self._examine(name, pid, stat)
            age_s = self._uptime() - stat.start / self._hz
            if found.watches and (self._first or not 0 <= age_s < _YOUNG_S):
                matched.append(found)
            elif 0 <= age_s < _SETTLED_S:
                self._again.setdefault(name, 1)
        return matched

    def _examine(self, name: str, pid: int, stat: PidStat) -> MatchedProcess:
        """Which watches match a process; known already if it is what it was when it was examined last."""
        command = read_command(self._context, pid)
        state = stat.start, stat.comm, command
        before = self._examined.get(name)
        if before is not None and before[0] == state:
            process, watches = before[1].process, before[1].watches
            now = ProcessInfo(pid, stat, process.names, process.cut, process.cmdline) if watches else process
            return MatchedProcess(now, watches)
        process = process_info(self._context, pid, stat, command)
        found = MatchedProcess(process, [index for index, match in self._matches.items() if match(process)])
        self._examined[name] = state, found
        return found

    def close(self) -> None:
        """Closes the kernel's files."""
        self.kept.close()
        self._files.close()

    def _uptime(self) -> float:
        """Seconds since boot, read once a poll; infinite, so that every process counts as old, if unreadable."""
        if self._uptime_s is None:
            try:
                self._uptime_s = float(self._read_uptime().split()[0])
            except (OSError, ValueError):
                self._uptime_s = math.inf
        return self._uptime_s
