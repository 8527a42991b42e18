"""Takes a ledger of a machine: once and in full, or again and again at a bounded cost."""

from __future__ import annotations

import os
import time
from typing import Callable, Dict, FrozenSet, Iterable, Mapping, Optional, Set, Tuple, TypeVar

from soakwatch_agent.context import SECOND, HostContext
from soakwatch_agent.memory_ledger.kernel_counts import KernelCounts, owned_by_kernel_counts
from soakwatch_agent.memory_ledger.ledger import Ledger, ProcessMemory
from soakwatch_agent.memory_ledger.page_pools import page_pools
from soakwatch_agent.memory_ledger.parts import (
    Slab,
    Vmalloc,
    parse_allocinfo,
    parse_slabinfo,
    parse_sysvipc,
    parse_vmallocinfo,
)
from soakwatch_agent.memory_ledger.processes import ProcessMemories, by_name
from soakwatch_agent.procfs import clean, read_line, read_text
from soakwatch_agent.spaces import parse_spaces

LEDGER_S, MIRRORED_PARTS_S = 60, 300
"""How often a ledger is taken, and how often, of a machine that is mirrored, the expensive files are mirrored."""
_NEEDS = "; it needs root or CAP_DAC_READ_SEARCH"
PAGE_SIZE = "/pagesize"
"""The file of a mirrored machine with the size of its pages."""
T = TypeVar("T")
_EARLY = 0.95  # a poll that comes a little early still counts
_SHARE = 150_000  # a file that takes 2 ms of CPU is read every 5 minutes: 1/150,000 of the time
_SMAPS_NS = 1_000_000  # CPU time for smaps in one ledger
_SMAPS_SHARE = 120_000
_IN_MEMORY = frozenset(["tmpfs", "devtmpfs"])  # ramfs is page cache


class _Turns:
    """When the next reading of an expensive file is due: the more it took, the later."""

    def __init__(self, share: int, least_s: float = LEDGER_S) -> None:
        self._share, self._least_ns, self._next_ns = share, int(least_s * _EARLY * SECOND), 0

    def due(self, now_ns: int) -> bool:
        """Whether it is due again."""
        return now_ns >= self._next_ns

    def took(self, now_ns: int, cpu_ns: int) -> None:
        """It took so much CPU time."""
        self._next_ns = now_ns + max(self._least_ns, cpu_ns * self._share)


class LedgerReader:
    """Reads ledgers of one machine; what is expensive in turns, so that a minute costs some ms of CPU whatever is read.

    In a ledger that is taken in turns, ``parts`` has only the owners whose parts were read this time.
    """

    def __init__(self, context: HostContext) -> None:
        self._context, self._page = context, _page_size(context)
        self._processes = ProcessMemories(context, self._page)
        share, least_s = (_SHARE, LEDGER_S) if context.real else (0, MIRRORED_PARTS_S)
        self._turns = {name: _Turns(share, least_s) for name in ("slab", "vmalloc", "sites")}
        self._smaps = _Turns(_SMAPS_SHARE)
        self._stacks: Optional[bool] = None
        self._reclaimable: Dict[str, bool] = {}
        self._unread: Dict[str, str] = {}

    def read(self, now_ns: int, *, full: bool = False, first: Iterable[int] = ()) -> Ledger:
        """A ledger at steady time ``now_ns``; ``full``: everything is read, however long it takes.

        smaps of the processes ``first`` is read before that of others. Raises OSError or ValueError without a usable
        /proc/meminfo.
        """
        parts: Dict[str, Mapping[str, int]] = {}
        turn = None if full else now_ns
        callers = self._in_turn(turn, "vmalloc", "/proc/vmallocinfo", self._parse_vmalloc)
        if callers is not None:
            parts["vmalloc"], self._stacks = callers.by_caller, callers.stacks > 0
        caches = self._in_turn(turn, "slab", "/proc/slabinfo", self._parse_slab)
        if caches is not None:
            parts["slab"], parts["reclaimable_slab"] = caches.fixed, caches.reclaimable
        sites = self._in_turn(turn, "sites", "/proc/allocinfo", parse_allocinfo)
        pools = page_pools() if self._context.real else None
        owned = owned_by_kernel_counts(
            KernelCounts(
                read_text(self._context.path("/proc/meminfo")),
                self._text("/proc/vmstat"),
                self._text("/proc/zoneinfo"),
                self._text("/proc/net/sockstat"),
            ),
            self._page,
            socket_page=os.sysconf("SC_PAGE_SIZE"),  # the file of a mirrored machine is in pages of this one
            page_pools=None if pools is None else sum(pools.values()),
            stacks_in_vmalloc=self._stacks is not False,
        )
        if pools:
            parts["page_pools"] = pools
        processes = self._read_processes(now_ns, full=full, first=first)
        parts["shared"] = self._shared(owned.by_owner.get("shared", 0), processes or ())
        if processes is not None:
            parts["processes"] = by_name(processes, owned.by_owner.get("processes", 0))
        return Ledger(
            owned.total,
            owned.by_owner,
            owned.left,
            parts,
            tuple(sorted(processes or (), key=lambda each: -each.anonymous)),
            sites,
            dict(self._unread),
        )

    def _read_processes(self, now_ns: int, *, full: bool, first: Iterable[int]) -> Optional[Tuple[ProcessMemory, ...]]:
        try:
            found = self._processes.read(now_ns)
        except OSError as error:
            self._unread["processes"] = f"the processes cannot be listed: {self._context.why(error)}"
            return None
        self._unread.pop("processes", None)
        if full or self._smaps.due(now_ns):
            begun = time.thread_time_ns()
            for each in self._processes.look(found.values(), first, None if full else _SMAPS_NS):
                found[each.pid] = each
            self._smaps.took(now_ns, time.thread_time_ns() - begun)
        return tuple(found.values())

    def _in_turn(self, now_ns: Optional[int], owner: str, path: str, parse: Callable[[str], T]) -> Optional[T]:
        """What an expensive file says, if it is due (None: always) and can be read."""
        turns = self._turns[owner]
        if now_ns is not None and not turns.due(now_ns):
            return None
        begun = time.thread_time_ns()
        try:
            parsed: Optional[T] = parse(read_text(self._context.path(path)))
            self._unread.pop(owner, None)
        except OSError as error:
            parsed = None
            denied = isinstance(error, PermissionError) or self._context.denied(error)
            needs = _NEEDS if denied else ""
            self._unread[owner] = f"{path} cannot be read: {self._context.why(error)}{needs}"
        if now_ns is not None:
            turns.took(now_ns, time.thread_time_ns() - begun)
        return parsed

    def _parse_vmalloc(self, text: str) -> Vmalloc:
        return parse_vmallocinfo(text, self._page)

    def _parse_slab(self, text: str) -> Slab:
        return parse_slabinfo(text, self._page, self._given_back(text))

    def _text(self, path: str) -> str:
        try:
            return read_text(self._context.path(path))
        except OSError:
            return ""

    def _given_back(self, slabinfo: str) -> Optional[FrozenSet[str]]:
        """The caches that the kernel gives back by itself, as each says; None where this is not known."""
        if not self._context.real:
            return None
        folder = "/sys/kernel/slab"
        for line in slabinfo.splitlines()[2:]:
            name = line.partition(" ")[0]
            if name not in self._reclaimable:
                try:
                    self._reclaimable[name] = read_text(f"{folder}/{name}/reclaim_account").startswith("1")
                except OSError:
                    return None
        return frozenset(name for name, given in self._reclaimable.items() if given)

    def _shared(self, most: int, processes: Iterable[ProcessMemory]) -> Dict[str, int]:
        """What file systems in memory and System V segments hold, and of the rest what processes map (memfd, shared
        anonymous memory), the largest first; together at most ``most``."""
        held = parse_sysvipc(self._text("/proc/sysvipc/shm"))
        found = {"System V": held} if held else {}
        found.update(self._recorded_spaces() if not self._context.real else self._spaces())
        parts: Dict[str, int] = {}
        for name, size in sorted(found.items(), key=lambda item: -item[1]):
            parts[name] = min(size, most)  # what was swapped out counts in a file system, and not in memory
            most -= parts[name]
        mapped = self._processes.mapped_shared(processes)
        for name, size in sorted(mapped.items(), key=lambda item: -item[1]):
            parts[f"mapped by {name}"] = min(size, most)
            most -= parts[f"mapped by {name}"]
        return {name: size for name, size in parts.items() if size}

    def _spaces(self) -> Dict[str, int]:
        spaces: Dict[str, int] = {}
        devices: Set[int] = set()
        for mount in self._mounts():
            try:
                device, space = os.stat(mount).st_dev, os.statvfs(mount)  # noqa: PTH116
            except OSError:
                continue
            if device not in devices:
                devices.add(device)
                spaces[clean(mount)] = space.f_frsize * (space.f_blocks - space.f_bfree)
        return spaces

    def _recorded_spaces(self) -> Dict[str, int]:
        known = parse_spaces(self._text("/statvfs"))
        return {clean(mount): known[mount].used for mount in self._mounts() if mount in known}

    def _mounts(self) -> Iterable[str]:
        for line in self._text("/proc/self/mounts").splitlines():
            word = line.split(" ", 3)
            if len(word) == 4 and word[2] in _IN_MEMORY:
                yield word[1].replace("\\040", " ")


def _page_size(context: HostContext) -> int:
    text = "" if context.real else read_line(context.path(PAGE_SIZE)) or ""
    return int(text) if text.isdigit() and int(text) else os.sysconf("SC_PAGE_SIZE")


def take_ledger(context: HostContext, now_ns: int, watched: Iterable[int] = ()) -> Ledger:
    """A full ledger of a machine, now: every file, and smaps of every process that may be read (ms for each).

    Raises OSError or ValueError if there is no usable /proc/meminfo.
    """
    return LedgerReader(context).read(now_ns, full=True, first=watched)
