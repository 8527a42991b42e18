"""Cores in poll mode: drivers that never sleep keep them at 100 % whether packets come or not (DPDK, VPP, AF_XDP).

That a core polls needs evidence, for a core that is saturated from the first reading on reads the same: the system sets
the core apart (``isolcpus``, ``nohz_full``), a packet driver answers, or the plan says so. Weaker evidence is a single
core that stands at the top from the first reading to the last and hardly ever eases off: work comes and goes.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from soakwatch_model.case import Case

CORE: Final = "system.cpu.core.utilization"
EVERY: Final = "*"
"""What holds for a target as a whole."""
_TOP: Final = 0.985  # the median of a core that polls
_EASED: Final = 0.95  # what it reads in all but a twentieth of the time


def evidence(case: Case, name: str) -> str:
    """What says that this object polls, in words; empty where nothing does."""
    return case.facts.polling.get(name) or case.facts.polling.get(EVERY, "")


def constant(metric: str, value: NDArray[np.float64]) -> bool:
    """Whether a single core stands at the top from the first reading to the last.

    >>> constant(CORE, np.full(60, 0.998)), constant("system.cpu.utilization", np.full(60, 0.998))
    (True, False)
    """
    if metric != CORE:
        return False
    part = max(1, value.size // 20)
    ends = min(float(np.median(value[:part])), float(np.median(value[-part:])))
    return float(np.median(value)) >= _TOP and min(ends, float(np.quantile(value, 0.05))) >= _EASED
