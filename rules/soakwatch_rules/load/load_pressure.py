"""Pressure: when a device was under high load, and when under low load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.window import Window
from soakwatch_rules.load.load_account import LoadAccount
from soakwatch_rules.load.offered import overloads
from soakwatch_rules.spans import joined, without
from soakwatch_rules.stats.counted_amounts import binned

_BIN_S: Final = 10.0
_CALM_PHASES: Final = frozenset({"baseline", "soak"})
HIGH: Final = 0.5
"""Share of the highest load of the run above which it is high."""
LOW: Final = 0.1
"""Share of the highest load of the run below which it is low."""


@dataclass(frozen=True, slots=True)
class Pressure:
    """Stretches of high and of low load, sorted and disjoint; ``text`` says how high load was defined."""

    high: tuple[Window, ...]
    low: tuple[Window, ...]
    text: str


def pressure(case: Case) -> Pressure | None:
    """High and low load: overload phases against baseline and soak, else a load of at least half of its highest against
    at most a tenth of it; None without overload phases and load figures."""
    over = overloads(case)
    if over:
        calm = [p.window for p in case.phases if p.name in _CALM_PHASES]
        names = " and ".join(sorted({p.name for p in over}))
        high = joined(_cut(p.window, case.window) for p in over)
        return Pressure(high, without(joined(_cut(w, case.window) for w in calm), high), f"the {names} phase")
    edges = np.arange(case.window.begin_ns, case.window.end_ns + 1, round(_BIN_S * 1e9), dtype=np.int64)
    if edges.size < 3:
        return None
    demand = LoadAccount.of(case.load).demand()
    rate = binned(demand, edges) if demand else np.empty(0)
    most = float(np.nanmax(rate)) if bool(np.isfinite(rate).any()) else 0.0
    if most <= 0:
        return None
    with np.errstate(invalid="ignore"):
        sides = (rate >= HIGH * most, rate <= LOW * most)
    spans = [[Window(int(edges[i]), int(edges[i + 1])) for i in np.flatnonzero(x).tolist()] for x in sides]
    return Pressure(joined(spans[0]), joined(spans[1]), f"a load above {100 * HIGH:g} % of its maximum")


def _cut(window: Window, whole: Window) -> Window:
    begin_ns = min(max(window.begin_ns, whole.begin_ns), whole.end_ns)
    return Window(begin_ns, max(begin_ns, min(window.end_ns, whole.end_ns)))


def total_seconds(spans: Sequence[Window]) -> float:
    """Their total length."""
    return sum(span.seconds for span in spans)
