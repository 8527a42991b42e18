"""CPU: time by mode and busy share, of all cores and of each; context switches; processes started; cores online."""

from __future__ import annotations

import os
from typing import Dict, Optional, Tuple

from soakwatch_agent.context import HostContext, Periodic, ProbeAnswer
from soakwatch_agent.kept_files import KeptFiles
from soakwatch_agent.procfs import CPU_MODES, CpuStat, parse_cpu_stat
from soakwatch_model.sample import Answer

_IDLE, _IOWAIT = CPU_MODES.index("idle"), CPU_MODES.index("iowait")
_MAX_STEP_BACK_S = 5  # idle and iowait of a tickless kernel may step back a little; a reboot resets them

Ticks = Tuple[int, ...]


def busy_share(before: Ticks, after: Ticks) -> Optional[float]:
    """Share of the time between two readings that was neither idle nor iowait; None if no time passed.

    >>> busy_share((0, 0, 0, 0, 0, 0, 0, 0), (1, 0, 1, 5, 1, 0, 0, 0))
    0.25
    """
    spent = [max(b - a, 0) for a, b in zip(before, after)]  # noqa: B905
    total = sum(spent)
    if total <= 0 or sum(after) < sum(before):
        return None
    return 1.0 - (spent[_IDLE] + spent[_IOWAIT]) / total


def without_step_back(before: Optional[Ticks], after: Ticks, max_step: int) -> Ticks:
    """The reading, with idle and iowait held at ``before`` if they step back by less than ``max_step`` ticks.

    >>> without_step_back((1, 0, 0, 100, 50, 0, 0, 0), (2, 0, 0, 101, 49, 0, 0, 0), 500)[4]
    50
    """
    if before is None or (after[_IDLE] >= before[_IDLE] and after[_IOWAIT] >= before[_IOWAIT]):
        return after
    fixed = list(after)
    for mode in (_IDLE, _IOWAIT):
        if 0 < before[mode] - after[mode] < max_step and after[0] >= before[0]:
            fixed[mode] = before[mode]
    return tuple(fixed)


class CpuProbe:
    """Reads /proc/stat once a poll (psutil would read it three times)."""

    def __init__(self, context: HostContext) -> None:
        self._files = KeptFiles(context)
        self._stat = self._files.reader("/proc/stat", whole=True)
        self._hz = os.sysconf("SC_CLK_TCK")
        self._notes = ProbeAnswer()
        self._slow = Periodic(10)
        self._total: Optional[Ticks] = None
        self._cores: Dict[int, Ticks] = {}

    def read(self, now_ns: int) -> Answer:
        """Shares from the second poll on; raw times of each core every 10 s."""
        notes, hz, max_step = self._notes, self._hz, _MAX_STEP_BACK_S * self._hz
        notes.begin(now_ns)
        stat = parse_cpu_stat(self._stat())
        total = without_step_back(self._total, stat.total, max_step)
        for mode, ticks in zip(CPU_MODES, total):  # noqa: B905
            notes.sample("system.cpu.time", f"mode={mode}", ticks / hz)
        if self._total is not None:
            share = busy_share(self._total, total)
            if share is not None:
                notes.sample("system.cpu.utilization", "", share)
        self._total = total
        notes.sample("system.cpu.logical.count", "", len(stat.cores))
        if stat.switches is not None:
            notes.sample("system.context_switches", "", stat.switches)
        if stat.created is not None:
            notes.sample("system.processes.created", "", stat.created)
        self._read_cores(stat, max_step, slow=self._slow.due(now_ns))
        return notes.answer()

    def _read_cores(self, stat: CpuStat, max_step: int, *, slow: bool) -> None:
        notes, fresh = self._notes, {}
        for core, raw in stat.cores.items():
            before = self._cores.get(core)
            ticks = fresh[core] = without_step_back(before, raw, max_step)
            if before is not None:
                share = busy_share(before, ticks)
                if share is not None:
                    notes.sample("system.cpu.core.utilization", f"core={core}", share)
            if slow:
                for mode, spent in zip(CPU_MODES, ticks):  # noqa: B905
                    notes.sample("system.cpu.core.time", f"core={core},mode={mode}", spent / self._hz)
        self._cores = fresh

    def close(self) -> None:
        """Closes the kernel's files."""
        self._files.close()


def open_probe(context: HostContext) -> CpuProbe:
    """Opens the probe of a host."""
    return CpuProbe(context)
