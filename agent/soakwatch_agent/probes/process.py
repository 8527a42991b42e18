"""Watched processes: life, CPU, memory, threads and descriptors; starts, exits and restarts. Processes in all."""

from __future__ import annotations

import os
import time
from typing import Dict, List, Optional, Tuple

import psutil

from soakwatch_agent.census import Census
from soakwatch_agent.place import SECOND, Notes, Place, ProcAt, Watch, why
from soakwatch_agent.procfs import PidStat, read_text
from soakwatch_agent.sample import Answer, object_text
from soakwatch_agent.slots import MOST, Owner, Slot, Slots
from soakwatch_agent.watching import Identity, Portrait, pid_of_file, portrait

METRICS = (
    "process.up",
    "process.child",
    "process.count",
    "process.start_time",
    "process.pid",
    "process.state",
    "process.cpu.time",
    "process.cpu.utilization",
    "process.memory.usage",
    "process.memory.pss",
    "process.memory.uss",
    "process.memory.virtual",
    "process.threads",
    "process.open_files",
    "process.open_files.limit",
    "system.processes",
)
_DEAR_NS = 30 * SECOND  # PSS and USS walk the page tables under the process's own lock
_DEAR_SHARE = 200  # ... and take at most this part of the time (0.5 %), however large the process


class _Watched:
    """A watch with its slots, and the process that its pid or pidfile was bound to."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.slots = Slots(watch.name)
        self.thing = object_text(process=watch.name)
        self.bound: Optional[Tuple[int, int, int]] = None  # pid, start, mtime of the pidfile
        self.bound_to = ""


class ProcessProbe:
    """Reads /proc/PID/stat of each watched process once a look; psutil gives PSS and USS every 30 s or slower."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._hz, self._page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
        self._notes = Notes()
        self._watched = [_Watched(watch) for watch in place.watches]
        self._census = Census(place, place.watches)
        self._first = True

    def read(self, now_ns: int) -> Answer:
        """One look. Instance 0 of each watch answers ``process.up`` 0 until something appears."""
        notes, census = self._notes, self._census
        notes.begin(now_ns)
        census.look(now_ns)
        notes.sample("system.processes", "", census.count)
        for watched in self._watched:
            self._bury(watched)
        births = self._births()
        self._place.board.watched.clear()
        for at, watched in enumerate(self._watched):
            self._seat(watched, births.get(at, []))
            alive = 0
            for slot in watched.slots.slots:
                if slot.owner is None:
                    self._tell_dead(slot)
                else:
                    alive += 1
                    self._tell_alive(slot, slot.owner, now_ns)
            notes.sample("process.count", watched.thing, alive)
        self._first = False
        return notes.answer()

    # --- deaths and births ---------------------------------------------------------------------------------

    def _bury(self, watched: _Watched) -> None:
        for slot in watched.slots.slots:
            owner = slot.owner
            if owner is None:
                continue
            pid, start = owner.identity
            stat = self._census.stat(pid)
            if stat is not None and stat.start != start:
                self._census.changed_hands(pid)
                stat = None
            if stat is not None and not stat.dead:
                continue
            if stat is not None:
                owner.stat = stat
            self._notes.event(
                "process.exit",
                slot.thing,
                pid=pid,
                started=self._started(start),
                cpu_s=(owner.stat.user + owner.stat.system) / self._hz,
                zombie="yes" if stat is not None else "no",
            )
            watched.slots.release(slot, zombie=stat is not None)

    def _births(self) -> Dict[int, List[Portrait]]:
        births: Dict[int, List[Portrait]] = {}
        matching = [w for w in self._watched if w.watch.how not in ("pid", "pidfile")]
        seated: Optional[set[Identity]] = None
        for watched in matching:
            taken = watched.slots.taken.keys()
            seated = set(taken) if seated is None else seated & taken
        for find in self._census.found(seated or set()):
            for at in find.watches:
                if find.face.identity not in self._watched[at].slots.taken:
                    births.setdefault(at, []).append(find.face)
        for at, watched in enumerate(self._watched):
            if watched.watch.how in ("pid", "pidfile"):
                face = self._named(watched)
                if face is not None and face.identity not in watched.slots.taken:
                    births[at] = [face]
        return births

    def _named(self, watched: _Watched) -> Optional[Portrait]:
        """The process of a watch by pid or pidfile, unless its pid went to a stranger."""
        watch, mtime = watched.watch, 0
        if watch.how == "pid":
            pid: Optional[int] = int(watch.what)
        else:
            pid, fault = pid_of_file(self._place, watch.what)
            if fault:
                self._notes.fault("process.up", watched.thing, fault)
            elif pid is not None:
                self._notes.mended("process.up", watched.thing)
                mtime = self._mtime(watch.what)
        stat = None if pid is None else self._census.stat(pid)
        if pid is None or stat is None or stat.dead:
            return None
        if watched.bound == (pid, stat.start, mtime):
            return portrait(self._place, pid, stat) if not watched.slots.taken else None
        face = portrait(self._place, pid, stat)
        if watched.bound is not None and watched.bound[::2] == (pid, mtime) and face.cmdline != watched.bound_to:
            self._notes.fault("process.up", watched.thing, f"pid {pid} went to another program: it is not watched")
            return None
        watched.bound, watched.bound_to = (pid, stat.start, mtime), face.cmdline
        return face

    def _mtime(self, path: str) -> int:
        try:
            return os.stat(self._place.path(path)).st_mtime_ns  # noqa: PTH116
        except OSError:
            return 0

    def _seat(self, watched: _Watched, births: List[Portrait]) -> None:
        notes = self._notes
        if watched.watch.how == "pidfile" and births:
            for slot in watched.slots.slots:  # a pidfile names one process: the one before has handed over
                if slot.owner is not None:
                    notes.event(
                        "process.exit",
                        slot.thing,
                        pid=slot.owner.identity[0],
                        started=self._started(slot.owner.identity[1]),
                        reason="the pidfile names another process",
                    )
                    watched.slots.release(slot, zombie=False)
        seatings, homeless = watched.slots.seat(births)
        if homeless:
            total = len(watched.slots.taken) + homeless
            text = f"{total} processes match {watched.watch.name}: only the first {MOST} are watched"
            notes.fault("process.up", watched.thing, text)
        for seating in seatings:
            slot, former = seating.slot, seating.former
            assert slot.owner is not None
            pid, start = slot.owner.identity
            if former is not None and not slot.owner.child:
                notes.event(
                    "process.restart",
                    slot.thing,
                    old_pid=former.identity[0],
                    new_pid=pid,
                    old_start=self._started(former.identity[1]),
                    new_start=self._started(start),
                )
            elif not self._first:
                parent = {"parent": slot.owner.stat.parent} if slot.owner.child else {}
                notes.event("process.start", slot.thing, pid=pid, started=self._started(start), **parent)

    def _started(self, ticks: int) -> str:
        seconds = self._start_s(ticks)
        if seconds is None:
            return f"{ticks / self._hz:.2f} s after boot"
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))

    def _start_s(self, ticks: int) -> Optional[float]:
        board = self._place.board
        boot_s = board.boot_s if board.boot_s is not None else self._place.boot_s()
        return None if boot_s is None else round(boot_s + ticks / self._hz, 2)

    # --- readings ------------------------------------------------------------------------------------------

    def _tell_dead(self, slot: Slot) -> None:
        self._notes.sample("process.up", slot.thing, 0)
        if slot.zombie is not None:
            pid, start = slot.zombie
            stat = self._census.stat(pid)
            if stat is None or stat.start != start:
                slot.zombie = None
            else:
                self._notes.sample("process.state", slot.thing, ord(stat.state))

    def _tell_alive(self, slot: Slot, owner: Owner, now_ns: int) -> None:
        notes, thing, (pid, start) = self._notes, slot.thing, owner.identity
        stat = self._census.stat(pid)
        assert stat is not None  # the dead are buried, and the stat is read once a look
        self._place.board.watched[pid] = thing
        notes.sample("process.up", thing, 1)
        notes.sample("process.pid", thing, pid)
        if owner.child or slot.instance:
            notes.sample("process.child", thing, float(owner.child))
        start_s = self._start_s(start)
        if start_s is None:
            notes.fault("process.start_time", thing, "the kernel does not tell when it booted")
        else:
            notes.sample("process.start_time", thing, start_s)
        notes.sample("process.state", thing, ord(stat.state))
        notes.sample("process.cpu.time", slot.user_text, stat.user / self._hz)
        notes.sample("process.cpu.time", slot.system_text, stat.system / self._hz)
        self._tell_share(slot, owner, stat, now_ns)
        self._tell_memory(thing, pid)
        notes.sample("process.threads", thing, stat.threads)
        self._tell_files(thing, pid)
        if now_ns >= slot.next_expensive_ns:
            self._tell_file_limit(thing, pid)
            self._tell_shares_of_memory(slot, pid, now_ns)

    def _tell_share(self, slot: Slot, owner: Owner, stat: PidStat, now_ns: int) -> None:
        if owner.seen_ns is not None and now_ns > owner.seen_ns:
            ticks = stat.user + stat.system - owner.stat.user - owner.stat.system
            share = max(ticks, 0) / self._hz * SECOND / (now_ns - owner.seen_ns)
            self._notes.sample("process.cpu.utilization", slot.thing, share)
        owner.stat, owner.seen_ns = stat, now_ns

    def _tell_memory(self, thing: str, pid: int) -> None:
        """From statm: its RSS is exact since kernel 6.17, while that of stat is off by some pages for each core."""
        try:
            virtual, resident = read_text(self._place.path(f"/proc/{pid}/statm")).split(None, 2)[:2]
        except OSError as error:
            if not isinstance(error, (FileNotFoundError, ProcessLookupError)):
                self._notes.fault("process.memory.usage", thing, f"memory cannot be read: {why(error)}")
            return  # or it died while we looked: the next look tells
        self._notes.sample("process.memory.usage", thing, int(resident) * self._page)
        self._notes.sample("process.memory.virtual", thing, int(virtual) * self._page)

    def _tell_files(self, thing: str, pid: int) -> None:
        folder = self._place.path(f"/proc/{pid}/fd")
        try:
            # Kernel 6.2 and later tell the number of descriptors as the size of the folder; before it is 0.
            count = os.stat(folder).st_size if self._place.real else 0  # noqa: PTH116
            if count == 0:
                count = len(os.listdir(folder))
        except (FileNotFoundError, ProcessLookupError):
            return  # it died while we looked: the next look tells
        except OSError as error:
            self._notes.fault("process.open_files", thing, f"descriptors cannot be counted: {why(error)}")
        else:
            self._notes.sample("process.open_files", thing, count)
            self._notes.mended("process.open_files", thing)

    def _tell_file_limit(self, thing: str, pid: int) -> None:
        """The soft limit, which is the one that open() meets. Unlimited, or not to be read: there is none to tell."""
        try:
            text = read_text(self._place.path(f"/proc/{pid}/limits"))
        except OSError:
            return
        for line in text.splitlines():
            if line.startswith("Max open files"):
                soft = line[len("Max open files") :].split()[0]
                if soft.isdigit():
                    self._notes.sample("process.open_files.limit", thing, int(soft))

    def _tell_shares_of_memory(self, slot: Slot, pid: int, now_ns: int) -> None:
        notes, thing, begin = self._notes, slot.thing, time.perf_counter_ns()
        try:
            with ProcAt(self._place):
                memory = psutil.Process(pid).memory_full_info()
        except psutil.AccessDenied:
            for metric in ("process.memory.pss", "process.memory.uss"):
                notes.fault(
                    metric, thing, "permission denied: PSS and USS need the process's own user or CAP_SYS_PTRACE"
                )
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            pass  # it died while we looked: the next look tells
        except (OSError, RuntimeError, ValueError, AttributeError):
            notes.fault("process.memory.pss", thing, "the kernel does not tell PSS and USS")
        else:
            if memory.pss > 0:  # psutil has 0 where the kernel tells nothing, and a kernel thread has none
                notes.sample("process.memory.pss", thing, memory.pss)
                notes.sample("process.memory.uss", thing, memory.uss)
        slot.next_expensive_ns = now_ns + max(int(_DEAR_NS * 0.95), (time.perf_counter_ns() - begin) * _DEAR_SHARE)

    def close(self) -> None:
        """Nothing stays open."""


def open_probe(place: Place) -> ProcessProbe:
    """The probe of a place."""
    return ProcessProbe(place)
