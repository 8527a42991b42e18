"""Watched processes: lifetime, CPU, memory, threads and descriptors; starts, exits and restarts. Number of
processes."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Dict, List, Optional, Set, Tuple

import psutil

from soakwatch_agent.context import SECOND, HostContext, ProbeAnswer, ProcAt, Watch, why
from soakwatch_agent.process_match import Identity, ProcessInfo, ProcessSearch, pid_of_file, process_info
from soakwatch_agent.procfs import PidStat, read_text
from soakwatch_agent.slots import MAX_SLOTS, Slot, Slots
from soakwatch_model.sample import Answer, object_text

_EXPENSIVE_NS = 30 * SECOND  # PSS and USS walk the page tables under the process's own lock: rarely,
_EXPENSIVE_SHARE = 200  # ... and at most 1/200 (0.5 %) of the time, however large the process


@dataclass
class _Owner:
    """The process in a slot, and its last reading."""

    identity: Identity
    cmdline: str
    stat: PidStat
    child: bool  # of another process of the watch: a pool worker, a session
    read_ns: Optional[int] = None  # when ``stat`` was read; None before the first reading
    next_expensive_ns: int = 0  # when PSS and USS are due again
    zombie: bool = False  # it exited, and its parent has not reaped it


class _Watched:
    """A watch with its slots, and the process that its pid or pidfile is bound to."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.slots: Slots[_Owner] = Slots(watch.name, lambda owner: owner.cmdline, lambda owner: owner.child)
        self.label = object_text(process=watch.name)
        self.bound: Optional[Tuple[int, int, int]] = None  # pid, start, mtime of the pidfile
        self.bound_cmdline = ""

    @property
    def taken(self) -> Set[Identity]:
        """The processes that have a slot."""
        return {owner.identity for _, owner in self.slots.occupied}


class ProcessProbe:
    """Reads /proc/PID/stat of each watched process each poll; PSS and USS, by psutil, every 30 s or slower."""

    def __init__(self, context: HostContext) -> None:
        self._context = context
        self._hz, self._page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
        self._notes = ProbeAnswer()
        self._watched = [_Watched(watch) for watch in context.watches]
        self._search = ProcessSearch(context, context.watches)
        self._modes: Dict[str, Tuple[str, str]] = {}  # by slot; a text made anew would be hashed and compared anew
        self._first = True

    def read(self, now_ns: int) -> Answer:
        """One poll. Instance 0 of each watch reports ``process.up`` 0 until a process appears."""
        notes, search = self._notes, self._search
        notes.begin(now_ns)
        search.begin_poll(now_ns)
        notes.sample("system.processes", "", search.count)
        for watched in self._watched:
            self._release_exited(watched)
        new_processes = self._new_processes()
        self._context.shared.watched.clear()
        for index, watched in enumerate(self._watched):
            self._assign(watched, new_processes.get(index, []))
            alive = 0
            for slot in watched.slots.slots:
                if slot.owner is None:
                    self._report_absent(slot)
                else:
                    alive += 1
                    self._report_running(slot, slot.owner, now_ns)
            notes.sample("process.count", watched.label, alive)
        self._first = False
        return notes.answer()

    # --- exits and starts ----------------------------------------------------------------------------------

    def _release_exited(self, watched: _Watched) -> None:
        for slot, owner in watched.slots.occupied:
            pid, start = owner.identity
            stat = self._search.stat(pid)
            if stat is not None and stat.start != start:
                self._search.reexamine(pid)
                stat = None
            if stat is not None and not stat.dead:
                continue
            if stat is not None:
                owner.stat = stat
            self._notes.event(
                "process.exit",
                slot.label,
                pid=pid,
                started=self._started(start),
                cpu_s=(owner.stat.user + owner.stat.system) / self._hz,
                zombie="yes" if stat is not None else "no",
            )
            owner.zombie = stat is not None
            self._search.kept.drop(pid)
            watched.slots.release(slot)

    def _new_processes(self) -> Dict[int, List[ProcessInfo]]:
        new_processes: Dict[int, List[ProcessInfo]] = {}
        taken = [watched.taken for watched in self._watched]
        by_match = [w.taken for w in self._watched if w.watch.how not in ("pid", "pidfile")]
        for match in self._search.matches(set.intersection(*by_match) if by_match else set()):
            for index in match.watches:
                if match.process.identity not in taken[index]:
                    new_processes.setdefault(index, []).append(match.process)
        for index, watched in enumerate(self._watched):
            if watched.watch.how in ("pid", "pidfile"):
                process = self._process_of_pid(watched)
                if process is not None and process.identity not in taken[index]:
                    new_processes[index] = [process]
        return new_processes

    def _process_of_pid(self, watched: _Watched) -> Optional[ProcessInfo]:
        """The process of a watch by pid or pidfile; None if its pid now belongs to another program."""
        watch, mtime = watched.watch, 0
        if watch.how == "pid":
            pid: Optional[int] = int(watch.what)
        else:
            pid, fault = pid_of_file(self._context, watch.what)
            if fault:
                self._notes.fault("process.up", watched.label, fault)
            elif pid is not None:
                self._notes.recovered("process.up", watched.label)
                mtime = self._mtime(watch.what)
        stat = None if pid is None else self._search.stat(pid)
        if pid is None or stat is None or stat.dead:
            return None
        if watched.bound == (pid, stat.start, mtime):
            return process_info(self._context, pid, stat) if not watched.slots.occupied else None
        process = process_info(self._context, pid, stat)
        if (
            watched.bound is not None
            and watched.bound[::2] == (pid, mtime)
            and process.cmdline != watched.bound_cmdline
        ):
            self._notes.fault(
                "process.up", watched.label, f"pid {pid} now belongs to another program: it is not watched"
            )
            return None
        watched.bound, watched.bound_cmdline = (pid, stat.start, mtime), process.cmdline
        return process

    def _mtime(self, path: str) -> int:
        try:
            return os.stat(self._context.path(path)).st_mtime_ns  # noqa: PTH116
        except OSError:
            return 0

    def _assign(self, watched: _Watched, new_processes: List[ProcessInfo]) -> None:
        notes = self._notes
        if watched.watch.how == "pidfile" and new_processes:
            for slot, owner in watched.slots.occupied:  # a pidfile names one process: the former one is replaced
                notes.event(
                    "process.exit",
                    slot.label,
                    pid=owner.identity[0],
                    started=self._started(owner.identity[1]),
                    reason="the pidfile names another process",
                )
                self._search.kept.drop(owner.identity[0])
                watched.slots.release(slot)
        new_processes = sorted(new_processes, key=lambda process: (process.stat.start, process.pid))
        pids = {pid for pid, _ in watched.taken} | {process.pid for process in new_processes}
        assignments, unassigned = watched.slots.assign(
            _Owner(process.identity, process.cmdline, process.stat, child=process.stat.parent in pids)
            for process in new_processes
        )
        if unassigned:
            total = len(watched.slots.occupied) + unassigned
            text = f"{total} processes match {watched.watch.name}: only the first {MAX_SLOTS} are watched"
            notes.fault("process.up", watched.label, text)
        for assignment in assignments:
            slot, owner, former = assignment.slot, assignment.owner, assignment.former
            pid, start = owner.identity
            if former is not None and not owner.child:
                notes.event(
                    "process.restart",
                    slot.label,
                    old_pid=former.identity[0],
                    new_pid=pid,
                    old_start=self._started(former.identity[1]),
                    new_start=self._started(start),
                )
            elif not self._first:
                parent = {"parent": owner.stat.parent} if owner.child else {}
                notes.event("process.start", slot.label, pid=pid, started=self._started(start), **parent)

    def _started(self, ticks: int) -> str:
        seconds = self._start_s(ticks)
        if seconds is None:
            return f"{ticks / self._hz:.2f} s after boot"
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))

    def _start_s(self, ticks: int) -> Optional[float]:
        shared = self._context.shared
        boot_s = shared.boot_s if shared.boot_s is not None else self._context.boot_s()
        return None if boot_s is None else round(boot_s + ticks / self._hz, 2)

    # --- readings ------------------------------------------------------------------------------------------

    def _report_absent(self, slot: Slot[_Owner]) -> None:
        self._notes.sample("process.up", slot.label, 0)
        if slot.former is not None and slot.former.zombie:
            pid, start = slot.former.identity
            stat = self._search.stat(pid)
            if stat is None or stat.start != start:
                slot.former.zombie = False
            else:
                self._notes.sample("process.state", slot.label, ord(stat.state))

    def _report_running(self, slot: Slot[_Owner], owner: _Owner, now_ns: int) -> None:
        notes, label, (pid, start) = self._notes, slot.label, owner.identity
        stat = self._search.stat(pid)
        assert stat is not None  # slots of dead processes are released, and the stat is read once a poll
        self._context.shared.watched[pid] = label
        self._search.kept.keep(pid)
        notes.sample("process.up", label, 1)
        notes.sample("process.pid", label, pid)
        if owner.child or slot.instance:
            notes.sample("process.child", label, float(owner.child))
        start_s = self._start_s(start)
        if start_s is None:
            notes.fault("process.start_time", label, "the kernel does not report its boot time")
        else:
            notes.sample("process.start_time", label, start_s)
        notes.sample("process.state", label, ord(stat.state))
        user, system = self._modes.get(label) or self._modes.setdefault(label, _modes_of(label))
        notes.sample("process.cpu.time", user, stat.user / self._hz)
        notes.sample("process.cpu.time", system, stat.system / self._hz)
        self._report_cpu_share(slot, owner, stat, now_ns)
        lives = self._report_memory(label, pid)
        notes.sample("process.threads", label, stat.threads)
        if not lives:
            return
        self._report_open_files(label, pid)
        if now_ns >= owner.next_expensive_ns:
            self._report_open_files_limit(label, pid)
            self._report_pss_and_uss(label, owner, now_ns)

    def _report_cpu_share(self, slot: Slot[_Owner], owner: _Owner, stat: PidStat, now_ns: int) -> None:
        if owner.read_ns is not None and now_ns > owner.read_ns:
            ticks = stat.user + stat.system - owner.stat.user - owner.stat.system
            share = max(ticks, 0) / self._hz * SECOND / (now_ns - owner.read_ns)
            self._notes.sample("process.cpu.utilization", slot.label, share)
        owner.stat, owner.read_ns = stat, now_ns

    def _report_memory(self, label: str, pid: int) -> bool:
        """Memory from statm: its RSS is exact since kernel 6.17; that of stat is off by some pages per core.

        False if the process is exiting: its memory is freed before it becomes a zombie or disappears.
        """
        kept = self._search.kept.of(pid)
        try:
            text = read_text(self._context.path(f"/proc/{pid}/statm")) if kept is None else kept.memory.read()
            virtual, resident = text.split(None, 2)[:2]
        except OSError as error:
            if not isinstance(error, (FileNotFoundError, ProcessLookupError)):
                self._notes.fault("process.memory.usage", label, f"its memory cannot be read: {why(error)}")
                return True
            return False  # the next poll reports that it exited
        if virtual == "0":  # a kernel thread has none either; its open files are not read
            return False
        self._notes.sample("process.memory.usage", label, int(resident) * self._page)
        self._notes.sample("process.memory.virtual", label, int(virtual) * self._page)
        return True

    def _report_open_files(self, label: str, pid: int) -> None:
        kept = self._search.kept.of(pid)
        try:
            count = 0 if kept is None else kept.open_files()
            if count == 0:
                folder = self._context.path(f"/proc/{pid}/fd")
                # Since kernel 6.2 the folder's size is the number of descriptors; before it is 0.
                count = os.stat(folder).st_size if self._context.real else 0  # noqa: PTH116
                count = count or len(os.listdir(folder))
        except (FileNotFoundError, ProcessLookupError):
            return  # it exited in between: the next poll reports it
        except OSError as error:
            self._notes.fault("process.open_files", label, f"its descriptors cannot be counted: {why(error)}")
        else:
            self._notes.sample("process.open_files", label, count)
            self._notes.recovered("process.open_files", label)

    def _report_open_files_limit(self, label: str, pid: int) -> None:
        """The soft limit, which open() obeys. Unlimited or unreadable: nothing is reported."""
        try:
            text = read_text(self._context.path(f"/proc/{pid}/limits"))
        except OSError:
            return
        for line in text.splitlines():
            if line.startswith("Max open files"):
                soft = line[len("Max open files") :].split()[0]
                if soft.isdigit():
                    self._notes.sample("process.open_files.limit", label, int(soft))

    def _report_pss_and_uss(self, label: str, owner: _Owner, now_ns: int) -> None:
        notes, begin = self._notes, time.perf_counter_ns()
        try:
            with ProcAt(self._context):
                memory = psutil.Process(owner.identity[0]).memory_full_info()
        except psutil.AccessDenied:
            for metric in ("process.memory.pss", "process.memory.uss"):
                notes.fault(
                    metric, label, "permission denied: PSS and USS need the process's own user or CAP_SYS_PTRACE"
                )
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            pass  # it exited in between: the next poll reports it
        except (OSError, RuntimeError, ValueError, AttributeError):
            notes.fault("process.memory.pss", label, "the kernel does not report PSS and USS")
        else:
            if memory.pss > 0:  # psutil says 0 if the kernel reports nothing; a kernel thread has none
                notes.sample("process.memory.pss", label, memory.pss)
                notes.sample("process.memory.uss", label, memory.uss)
        owner.next_expensive_ns = now_ns + max(
            int(_EXPENSIVE_NS * 0.95), (time.perf_counter_ns() - begin) * _EXPENSIVE_SHARE
        )

    def close(self) -> None:
        """Closes the files of the watched processes."""
        self._search.close()


def _modes_of(label: str) -> Tuple[str, str]:
    """The objects of a process's CPU time: as itself, and in the kernel."""
    return f"{label},mode=user", f"{label},mode=system"


def open_probe(context: HostContext) -> ProcessProbe:
    """Opens the probe of a host."""
    return ProcessProbe(context)
