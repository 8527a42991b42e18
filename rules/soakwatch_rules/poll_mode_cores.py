"""Cores in poll mode: drivers that never sleep keep them at 100 % whether packets arrive or not (DPDK, VPP, AF_XDP).

A saturated core reads the same, so poll mode needs evidence: the system isolates the core (``isolcpus``,
``nohz_full``), a packet driver answers, or the plan says so. Weaker evidence is a single core that stays at its maximum
from the first reading to the last and hardly ever drops, unlike work, which varies.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.series import Floats
from soakwatch_rules.stats.medians import median

CORE: Final = "system.cpu.core.utilization"
EVERY: Final = "*"
"""The key for a whole target."""
_TOP: Final = 0.985  # least median of a polling core
_EASED: Final = 0.95  # least 5 % quantile of a polling core


def evidence(case: Case, name: str) -> str:
    """The evidence that this object polls, in words; empty without any."""
    return case.facts.polling.get(name) or case.facts.polling.get(EVERY, "")


def constant(metric: str, value: Floats) -> bool:
    """Whether a single core stays at its maximum from the first reading to the last.

    >>> constant(CORE, np.full(60, 0.998)), constant("system.cpu.utilization", np.full(60, 0.998))
    (True, False)
    """
    if metric != CORE:
        return False
    part = max(1, value.size // 20)
    ends = min(median(value[:part]), median(value[-part:]))
    return median(value) >= _TOP and min(ends, float(np.quantile(value, 0.05))) >= _EASED
