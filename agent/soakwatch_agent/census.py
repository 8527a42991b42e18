"""Finds the processes that watches mean, cheaply: by the difference of two listings of /proc."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Dict, FrozenSet, List, Optional, Sequence, Set

from soakwatch_agent.place import SECOND, Place, Watch
from soakwatch_agent.procfs import PidStat, read_text
from soakwatch_agent.watching import Identity, Match, Portrait, matcher, own_line, portrait, read_stat

_RESCAN_NS = 60 * SECOND  # within this time every process is looked at again
_MOST_NEW = 256  # new processes examined a look; the rescan finds the others
_LOOKS_AGAIN = 2  # a new process is looked at again so often, since exec gives it another name
_SETTLED_S = 2.0  # until this age it is looked at again at each look: a busy machine execs late
_YOUNG_S = 0.5  # a fork carries its parent's name until it execs: it is taken for itself only when it is older


@dataclass(frozen=True)
class Found:
    """A process, and the numbers of the watches (by name, glob or command line) that mean it."""

    __slots__ = ("face", "watches")
    face: Portrait
    watches: Sequence[int]


class Census:
    """The processes of a place, kept from look to look."""

    def __init__(self, place: Place, watches: Sequence[Watch]) -> None:
        own: FrozenSet[int] = own_line(place)
        self._place = place
        self._proc = place.path("/proc")
        self._matches: Dict[int, Match] = {
            at: matcher(watch, own) for at, watch in enumerate(watches) if watch.how in ("name", "glob", "cmdline")
        }
        self._hz = os.sysconf("SC_CLK_TCK")
        self._known: Set[str] = set()
        self._again: Dict[str, int] = {}
        self._round: List[str] = []
        self._round_size = 0
        self._debt = 0.0
        self._last_ns: Optional[int] = None
        self._first = True
        self._uptime_s: Optional[float] = None
        self._queue: List[str] = []
        self._stats: Dict[int, Optional[PidStat]] = {}
        self.count = 0

    def stat(self, pid: int) -> Optional[PidStat]:
        """A process's stat, read once a look; None if it is gone."""
        if pid not in self._stats:
            self._stats[pid] = read_stat(self._place, pid)
        return self._stats[pid]

    def look(self, now_ns: int) -> None:
        """Begins a look: lists the processes."""
        self._stats.clear()
        self._uptime_s = None
        names = set(os.listdir(self._proc))
        fresh = [name for name in names - self._known if name.isdigit()]
        self.count += len(fresh) - sum(name.isdigit() for name in self._known - names)
        first = self._first = self._last_ns is None
        self._known = names
        again = {name: left for name, left in self._again.items() if name in names}
        self._queue = list(again)
        self._again = {name: left - 1 for name, left in again.items() if left > 1}
        if self._matches:
            taken = fresh if first else fresh[:_MOST_NEW]
            self._queue += taken
            if not first:
                self._again.update(dict.fromkeys(taken, _LOOKS_AGAIN))
                self._queue += self._slice(now_ns)
        self._last_ns = now_ns

    def _slice(self, now_ns: int) -> List[str]:
        """The next part of the slow round over all processes, which finds a pid that changed hands between looks."""
        if not self._round:
            self._round = [name for name in self._known if name.isdigit()]
            self._round_size = len(self._round)
        passed = max(now_ns - (self._last_ns or now_ns), 0)
        self._debt = min(self._debt + self._round_size * passed / _RESCAN_NS, float(_MOST_NEW))
        part = [self._round.pop() for _ in range(min(int(self._debt), len(self._round)))]
        self._debt -= len(part)
        return [name for name in part if name in self._known]

    def changed_hands(self, pid: int) -> None:
        """A pid that was watched is somebody else now: look at it as if it were new."""
        self._queue.append(str(pid))
        self._again[str(pid)] = _LOOKS_AGAIN

    def found(self, seated: Set[Identity]) -> List[Found]:
        """The processes that watches mean among those due for a look; zombies, the very young and the already
        ``seated`` (by all watches that could mean them) are left out."""
        finds = []
        for name in dict.fromkeys(self._queue):
            pid = int(name)
            stat = self.stat(pid)
            if stat is None or stat.dead or (pid, stat.start) in seated:
                continue
            face = portrait(self._place, pid, stat)
            watches = [at for at, match in self._matches.items() if match(face)]
            age_s = self._uptime() - stat.start / self._hz
            if watches and (self._first or not 0 <= age_s < _YOUNG_S):
                finds.append(Found(face, watches))
            elif 0 <= age_s < _SETTLED_S:
                self._again.setdefault(name, 1)
        return finds

    def _uptime(self) -> float:
        """Seconds since boot, read once a look; without them every process counts as old."""
        if self._uptime_s is None:
            try:
                self._uptime_s = float(read_text(f"{self._proc}/uptime").split()[0])
            except (OSError, ValueError):
                self._uptime_s = math.inf
        return self._uptime_s
