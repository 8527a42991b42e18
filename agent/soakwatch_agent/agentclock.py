"""The agent's steady clock: one time line for each boot of the host, even if the agent restarts.

The wall clock is read once a boot and carried on by CLOCK_BOOTTIME, which never steps and counts suspend. The anchor
is kept on disk, so a restarted agent continues the same time line. A new boot starts a new epoch.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Callable

from soakwatch_agent.framing import FrameError, Object, object_of, whole, word
from soakwatch_agent.procfs import read_line
from soakwatch_agent.service import read_state, write_state

_FILE = "clock.json"


@dataclass(frozen=True)
class AgentClock:
    """Steady UTC nanoseconds within one epoch: ``anchor_ns`` is wall clock minus CLOCK_BOOTTIME, read once."""

    __slots__ = ("anchor_ns", "boot", "epoch")
    epoch: int
    boot: str
    anchor_ns: int

    def now_ns(self) -> int:
        """Steady time now."""
        return self.anchor_ns + time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def _boot_id() -> str:
    return read_line("/proc/sys/kernel/random/boot_id") or ""


def agent_clock(folder: str, boot_id: Callable[[], str] = _boot_id) -> AgentClock:
    """The clock stored in a spool's folder if it is of this boot, else the stored clock of a new epoch."""
    boot = boot_id()
    epoch = 0
    try:
        stored = object_of(read_state(folder, _FILE))
        epoch = whole(stored, "epoch")
        if word(stored, "boot") == boot:
            return AgentClock(epoch, boot, whole(stored, "anchor_ns"))
    except (OSError, FrameError):
        pass  # the first start, or a file that was cut by a power failure: a new epoch
    clock = AgentClock(epoch + 1, boot, time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME))
    tree: Object = {"epoch": clock.epoch, "boot": boot, "anchor_ns": clock.anchor_ns}
    write_state(folder, _FILE, tree)
    return clock
