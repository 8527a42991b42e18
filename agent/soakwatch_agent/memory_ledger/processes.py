"""The memory of all processes at a bounded cost: statm of each, smaps of a few in turns."""

from __future__ import annotations

import os
import time
from typing import Dict, Iterable, List, Optional, Set, Tuple

from soakwatch_agent.context import HostContext, Periodic
from soakwatch_agent.memory_ledger.ledger import ProcessMemory
from soakwatch_agent.memory_ledger.parts import Mappings, anonymous_of_statm, parse_smaps
from soakwatch_agent.procfs import clean, parse_keyed_kib, read_text

STATMS = "/statms"
"""The file of a mirrored machine with statm and comm of all its processes, as ``grep`` prints them."""
MAPPINGS_OF = "/mappings/{}"
"""The file of a mirrored machine with the sizes that smaps of a process has; psutil would take smaps for the whole."""
_SMALL = 4 << 20  # smaller processes are read each ``_TURNS``-th time
_TURNS = 10
_MOST_WALKED = 1 << 30  # resident bytes: walking a GiB takes 25 ms, in which the process cannot map memory
_STATUS, _LARGE = 8, 16 << 20  # processes whose status is read, and the least files and shared memory of one
_RSS_SHARED = frozenset(["RssShmem"])
_FORGET_S = 600.0  # kernel threads and names are looked at again, for their pids may be others' by now


def parse_statms(text: str, page: int) -> Dict[int, ProcessMemory]:
    """Parses lines ``/proc/PID/statm:...`` and ``/proc/PID/comm:...``; kernel threads are left out.

    >>> parse_statms("/proc/7/statm:90 50 20 1\\n/proc/7/comm:bgpd\\n/proc/2/statm:0 0 0 0\\n", 4096)[7].name
    'bgpd'
    """
    sizes: Dict[int, Tuple[int, int]] = {}
    names: Dict[int, str] = {}
    for line in text.splitlines():
        path, colon, rest = line.partition(":")
        word = path.split("/")
        if not colon or len(word) != 4 or not word[2].isdigit():
            continue
        if word[3] == "comm":
            names[int(word[2])] = clean(rest)
        elif word[3] == "statm" and rest.count(" ") >= 3 and not rest.startswith("0 "):
            sizes[int(word[2])] = anonymous_of_statm(rest, page)
    return {
        pid: ProcessMemory(pid, names.get(pid, "?"), anonymous, other, None, looked=False)
        for pid, (anonymous, other) in sizes.items()
    }


class ProcessMemories:
    """Reads the memory of all processes; keeps from time to time what does not change fast.

    Exact each time: statm of processes with 4 MiB of their own memory or more, of the others each tenth time. A page
    that a child shares with its parent after a fork counts in both, until smaps of one of them was read: from then on
    its share counts. smaps walks the process's page tables, so it is read only within a budget.
    """

    def __init__(self, context: HostContext, page: int) -> None:
        self._context, self._page = context, page
        self._proc = context.path("/proc")
        self._smaps = context.path("/proc/{}/smaps" if context.real else MAPPINGS_OF)
        self._names: Dict[int, str] = {}
        self._kernel: Set[int] = set()
        self._small: Dict[int, ProcessMemory] = {}
        self._looked: Dict[int, Tuple[str, int, Mappings]] = {}  # pid: name, its own share then, its smaps
        self._forget = Periodic(_FORGET_S)
        self._turn = 0

    def read(self, now_ns: int) -> Dict[int, ProcessMemory]:
        """All processes by pid. Raises OSError if they cannot be listed."""
        try:
            found = parse_statms(read_text(self._context.path(STATMS)), self._page) if not self._context.real else None
        except FileNotFoundError:
            found = None
        if found is None:
            found = self._walk(now_ns)
        for pid in [pid for pid in self._looked if pid not in found]:
            del self._looked[pid]
        return {pid: self._shared_out(each) for pid, each in found.items()}

    def _walk(self, now_ns: int) -> Dict[int, ProcessMemory]:
        self._turn += 1
        if self._forget.due(now_ns):
            self._names.clear()
            self._kernel.clear()
            self._small.clear()
        pids = [int(name) for name in os.listdir(self._proc) if name.isdigit()]
        self._kernel.intersection_update(pids)
        found: Dict[int, ProcessMemory] = {}
        for pid in pids:
            if pid in self._kernel:
                continue
            small = self._small.get(pid)
            if small is not None and (pid + self._turn) % _TURNS:
                found[pid] = small
                continue
            each = self._one(pid)
            if each is not None:
                found[pid] = each
        self._small = {pid: each for pid, each in found.items() if each.anonymous < _SMALL}
        self._names = {pid: name for pid, name in self._names.items() if pid in found}
        return found

    def _one(self, pid: int) -> Optional[ProcessMemory]:
        try:
            text = _line(f"{self._proc}/{pid}/statm")
        except OSError:
            return None  # it is gone
        if text.startswith("0 "):
            self._kernel.add(pid)
            return None
        anonymous, other = anonymous_of_statm(text, self._page)
        name = self._names.get(pid)
        if name is None or not (pid + self._turn) % _TURNS:  # a program gets its name late
            name = self._names[pid] = self._name(pid)
        return ProcessMemory(pid, name, anonymous, other, None, looked=False)

    def mapped_shared(self, processes: Iterable[ProcessMemory]) -> Dict[str, int]:
        """Shared memory that processes map, by name: of those of a name that map most, for they mostly map the same.

        Read of the ``_STATUS`` processes with most files and shared memory.
        """
        if not self._context.real:
            return {}
        largest = sorted((each for each in processes if each.other >= _LARGE), key=lambda each: -each.other)
        mapped: Dict[str, int] = {}
        for each in largest[:_STATUS]:
            try:
                shared = parse_keyed_kib(read_text(f"{self._proc}/{each.pid}/status"), _RSS_SHARED).get("RssShmem", 0)
            except OSError:
                continue
            mapped[each.name] = max(mapped.get(each.name, 0), shared)
        return {name: size for name, size in mapped.items() if size}

    def _name(self, pid: int) -> str:
        try:
            text = _line(f"{self._proc}/{pid}/stat")
            return clean(text[text.index("(") + 1 : text.rindex(")")])
        except (OSError, ValueError):
            return "?"

    def _shared_out(self, each: ProcessMemory) -> ProcessMemory:
        looked = self._looked.get(each.pid)
        if looked is None or looked[0] != each.name:
            return each
        mappings = looked[2]
        if mappings.anonymous_rss > mappings.anonymous_pss:
            own = each.anonymous * mappings.anonymous_pss // mappings.anonymous_rss
            return ProcessMemory(each.pid, each.name, own, each.other, mappings, looked=False)
        return ProcessMemory(each.pid, each.name, each.anonymous, each.other, mappings, looked=False)

    def look(
        self, processes: Iterable[ProcessMemory], first: Iterable[int], budget_ns: Optional[int]
    ) -> List[ProcessMemory]:
        """Reads smaps of the processes that changed most since theirs was read, those in ``first`` before others.

        Stops when the ``budget_ns`` of CPU time is spent, and leaves out processes of more than 1 GiB; None: reads all
        of them. A process that may not be read is left out.
        """
        wanted = frozenset(first)
        turns = sorted(processes, key=lambda each: (each.pid not in wanted, -self._changed(each)))
        begun, seen = time.thread_time_ns(), []
        for each in turns:
            if budget_ns is not None and time.thread_time_ns() - begun >= budget_ns:
                break
            if budget_ns is not None and each.anonymous + each.other > _MOST_WALKED:
                continue
            try:
                mappings = parse_smaps(read_text(self._smaps.format(each.pid)))
            except (OSError, ValueError):
                continue
            if mappings.anonymous_rss or each.pid in wanted:
                self._looked[each.pid] = each.name, mappings.anonymous_pss, mappings
                seen.append(
                    ProcessMemory(each.pid, each.name, mappings.anonymous_pss, each.other, mappings, looked=True)
                )
        return seen

    def _changed(self, each: ProcessMemory) -> int:
        looked = self._looked.get(each.pid)
        return each.anonymous if looked is None else abs(each.anonymous - looked[1])


def _line(path: str) -> str:
    """A line of the kernel in one reading, cut where it is long. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 256).decode("utf-8", "surrogateescape")
    finally:
        os.close(fd)


def by_name(processes: Iterable[ProcessMemory], most: int) -> Dict[str, int]:
    """The own memory of all processes of a name, together at most ``most`` bytes.

    What forks share counts twice: it is taken from the processes whose smaps was not read, by their size.

    >>> by_name([ProcessMemory(pid, "a", 60, 0, None, looked=False) for pid in (1, 2)], 100)
    {'a': 100}
    """
    every = list(processes)
    known = sum(each.anonymous for each in every if each.mappings is not None)
    guessed = sum(each.anonymous for each in every if each.mappings is None)
    left = max(most - known, 0)
    sums: Dict[str, int] = {}
    for each in every:
        size = each.anonymous
        if each.mappings is None and guessed > left:
            size = size * left // guessed
        sums[each.name] = sums.get(each.name, 0) + size
    total = sum(sums.values())  # they were not all read at the same time
    return {name: size * most // total for name, size in sums.items()} if total > most else sums
