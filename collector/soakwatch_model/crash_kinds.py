"""Kinds of events of the kernel's log: what each means where nothing more is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from soakwatch_model.finding import Outcome


@dataclass(frozen=True, slots=True)
class KernelKind:
    """What an alarm of the kernel's log is called, and what it means where nothing more is known of it."""

    words: str
    outcome: Outcome


KERNEL: Final[Mapping[str, KernelKind]] = {
    "kernel.panic": KernelKind("kernel panic", Outcome.FAIL),
    "kernel.oops": KernelKind("kernel oops", Outcome.FAIL),
    "kernel.lockup": KernelKind("lockup", Outcome.FAIL),
    "kernel.hung_task": KernelKind("hung task", Outcome.FAIL),
    "kernel.hardware": KernelKind("hardware error", Outcome.FAIL),
    "kernel.segfault": KernelKind("segfault", Outcome.WARN),  # of a watched process it fails
    "kernel.hardware_corrected": KernelKind("corrected hardware error", Outcome.WARN),
    "kernel.thermal": KernelKind("thermal throttling", Outcome.WARN),
    "hardware.fault": KernelKind("hardware fault", Outcome.WARN),
}
"""The alarms of a kernel's log, worst first, and what a device tells of its hardware. The counter
``system.kernel.alarms`` has the same kinds without the first word."""
