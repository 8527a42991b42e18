"""Memory: used, available, cached, slab, committed and swap; processes killed when it ran out."""

from __future__ import annotations

from typing import Mapping, Tuple

import psutil

from soakwatch_agent.context import HostContext, Periodic, ProbeAnswer, ProcAt
from soakwatch_agent.kept_files import KeptFiles
from soakwatch_agent.procfs import parse_keyed_kib, parse_words, read_text
from soakwatch_model.sample import Answer

_MEMINFO = (
    ("system.memory.slab", "Slab"),
    ("system.memory.committed", "Committed_AS"),
    ("system.memory.commit_limit", "CommitLimit"),
    ("system.memory.swap.limit", "SwapTotal"),
)
_KEYS = frozenset({"MemTotal", "MemAvailable", "Cached", "SReclaimable", "SwapFree", *(key for _, key in _MEMINFO)})


class MemoryProbe:
    """All from one reading of /proc/meminfo; what is available is estimated by psutil where the kernel does not."""

    def __init__(self, context: HostContext) -> None:
        self._context = context
        self._files = KeptFiles(context)
        self._meminfo, self._vmstat = self._files.reader("/proc/meminfo", whole=True), context.path("/proc/vmstat")
        self._notes = ProbeAnswer()
        self._slow = Periodic(10)

    def read(self, now_ns: int) -> Answer:
        """``usage`` is total minus available: it grows with a leak and excludes reclaimable cache."""
        notes = self._notes
        notes.begin(now_ns)
        info = parse_keyed_kib(self._meminfo(), _KEYS)
        total, available, cached = self._of(info)
        notes.sample("system.memory.limit", "", total)
        notes.sample("system.memory.usage", "", total - available)
        notes.sample("system.memory.available", "", available)
        notes.sample("system.memory.cached", "", cached)
        for metric, key in _MEMINFO:
            if key in info:
                notes.sample(metric, "", info[key])
            else:
                notes.fault(metric, "", f"the kernel does not report {key}")
        if "SwapTotal" in info and "SwapFree" in info:
            notes.sample("system.memory.swap.usage", "", info["SwapTotal"] - info["SwapFree"])
        if self._slow.due(now_ns):
            self._read_kills()
        return notes.answer()

    def _of(self, info: Mapping[str, int]) -> Tuple[int, int, int]:
        """Total, available and cached memory, as psutil computes them: what can be reclaimed of slab is cached."""
        total, available = info.get("MemTotal", 0), info.get("MemAvailable", 0)
        if 0 < available <= total and "Cached" in info:
            return total, available, info["Cached"] + info.get("SReclaimable", 0)
        with ProcAt(self._context):  # kernels before 3.14, and containers that show another machine's memory
            memory = psutil.virtual_memory()
        return memory.total, memory.available, memory.cached

    def _read_kills(self) -> None:
        metric = "system.memory.oom_kills"
        try:
            kills = parse_words(read_text(self._vmstat), "oom_kill").get("oom_kill")
        except OSError as error:
            self._notes.fault(metric, "", f"/proc/vmstat cannot be read: {self._context.why(error)}")
            return
        if kills is None:
            self._notes.fault(metric, "", "the kernel does not count its OOM kills (it does from 4.13 on)")
        else:
            self._notes.sample(metric, "", kills)

    def close(self) -> None:
        """Closes the kernel's files."""
        self._files.close()


def open_probe(context: HostContext) -> MemoryProbe:
    """Opens the probe of a host."""
    return MemoryProbe(context)
