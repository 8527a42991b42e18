"""Kernel log events and what each means without further information."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from soakwatch_model.finding import Outcome


@dataclass(frozen=True, slots=True)
class KernelKind:
    """Name and default outcome of a kernel log event."""

    words: str
    outcome: Outcome


KERNEL: Final[Mapping[str, KernelKind]] = {
    "kernel.panic": KernelKind("kernel panic", Outcome.FAIL),
    "kernel.oops": KernelKind("kernel oops", Outcome.FAIL),
    "kernel.lockup": KernelKind("lockup", Outcome.FAIL),
    "kernel.hung_task": KernelKind("hung task", Outcome.FAIL),
    "kernel.hardware": KernelKind("hardware error", Outcome.FAIL),
    "kernel.segfault": KernelKind("segfault", Outcome.WARN),  # fails if the process is watched
    "kernel.hardware_corrected": KernelKind("corrected hardware error", Outcome.WARN),
    "kernel.thermal": KernelKind("thermal throttling", Outcome.WARN),
    "hardware.fault": KernelKind("hardware fault", Outcome.WARN),
}
"""Kernel log events, worst first, and the device's own hardware faults. The counter ``system.kernel.alarms`` has the
same kinds without the first word."""
