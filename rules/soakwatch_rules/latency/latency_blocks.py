"""A latency in blocks of time: medians, loads, which blocks are judged, and which give the usual level."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.series import Floats, Ints, Mask, Series
from soakwatch_model.window import Window
from soakwatch_rules.load.load_account import LoadAccount
from soakwatch_rules.load.offered import OVERLOADS
from soakwatch_rules.stats.counted_amounts import binned
from soakwatch_rules.stats.medians import median
from soakwatch_rules.stats.slowdown import Slowness, block_medians, slowness

ROUND_TRIP: Final = "reach.round_trip"
READINGS: Final = 3  # readings that a block needs
EARLY: Final = 0.25  # share of the judged blocks that gives the usual level without a baseline
MIN_REFERENCE_BLOCKS: Final = 6  # blocks needed for the usual level
_AFTER: Final = frozenset({"recovery", "cooldown"})
_BEFORE: Final = frozenset({"ramp", "warm-up", "warmup"})
_BASELINE: Final = "baseline"
_SETTLE, _SETTLE_S = 0.05, 600.0  # share of the run, and seconds at most, in which caches are cold
_SETTLED = 0.75  # if the second quarter is below this share of the first, the first was a warm-up


@dataclass(frozen=True, slots=True, eq=False)
class LatencyGrid:
    """Blocks of equal length: edges, medians, log loads, which are judged, and which give the usual level."""

    edges_ns: Ints
    value: Floats
    load: Floats
    judged: Mask
    reference: Mask
    early: bool  # without a baseline, the reference is the early blocks

    @property
    def block_s(self) -> float:
        """The length of a block in seconds."""
        return float(self.edges_ns[1] - self.edges_ns[0]) * 1e-9

    @property
    def value_log(self) -> Floats:
        """The logs of the medians."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.log(self.value))


def grid_of(case: Case, series: Series, block_s: float) -> LatencyGrid:
    """Blocks over the window of a case, from its begin on."""
    block_ns = max(round(block_s * 1e9), 1)
    number = max(-(-(case.window.end_ns - case.window.begin_ns) // block_ns), 1)
    edges = case.window.begin_ns + block_ns * np.arange(number + 1, dtype=np.int64)
    indices = np.minimum((series.time_ns - case.window.begin_ns) // block_ns, number - 1)
    value = block_medians(indices, series.values, number, READINGS if number > 1 else 1)
    load = np.full(number, np.nan)
    if offered := LoadAccount.of(case.load).demand():
        with np.errstate(all="ignore"):
            load = np.log(binned(offered, edges) / block_s)
        known = np.isfinite(load)
        if known.any():  # blocks without a load reading are interpolated from their neighbours
            load = np.interp(np.arange(number), np.flatnonzero(known), load[known])
        else:
            load = np.full(number, np.nan)
    judged = judged_blocks(case, series, edges)
    reference, early = usual_blocks(case, edges, judged & np.isfinite(value))
    return LatencyGrid(edges, value, load, judged, reference, early)


def compared_blocks(grid: LatencyGrid, own: float | None) -> Slowness:
    """The blocks compared with the baseline, else with the first quarter, or the second if the first was a warm-up."""
    slow = slowness(grid.value_log, grid.load, grid.reference, own)
    positions = np.flatnonzero(grid.judged & np.isfinite(slow.off))
    second = positions[positions.size // 4 : positions.size // 2]
    if not grid.early or own is not None or second.size < MIN_REFERENCE_BLOCKS:
        return slow
    if median(slow.off[second]) > math.log(_SETTLED):
        return slow
    reference = np.zeros(grid.reference.size, dtype=bool)
    reference[second] = True
    return slowness(grid.value_log, grid.load, reference)


def earlier_level(before: Series) -> float | None:
    """The log of the median of an earlier run's readings; None if they are too few."""
    value = before.values[before.values > 0]
    return math.log(median(value)) if value.size >= READINGS * MIN_REFERENCE_BLOCKS else None


def baselines(case: Case) -> list[Window]:
    """The windows of the run's own baseline phases."""
    return [p.window for p in case.phases if p.name == _BASELINE]


def judged_blocks(case: Case, series: Series, edges: Ints) -> Mask:
    """Which blocks are judged: those outside of overloads, ramps, the return from an overload, and announced events."""
    begin, end = edges[:-1], edges[1:]
    judged = np.ones(begin.size, dtype=bool)
    loaded = [p.window.end_ns for p in case.phases if p.name in OVERLOADS]
    for phase in case.phases:
        window, out = phase.window, phase.name in OVERLOADS | _BEFORE
        if phase.name in _AFTER and loaded and window.begin_ns >= min(loaded):
            out = True
            if series.metric == ROUND_TRIP:  # the rule recovery does not judge these, so their second half is judged
                window = Window(window.begin_ns, (window.begin_ns + window.end_ns) // 2)
        if out:
            judged &= (end <= window.begin_ns) | (begin >= window.end_ns)
    for event in case.events:
        if event.expect and event.target in {"", case.target}:
            until = max(event.end_ns or event.begin_ns, event.deadline_ns or event.begin_ns)
            judged &= (end <= event.begin_ns) | (begin > until)
    return judged


def usual_blocks(case: Case, edges: Ints, usable: Mask) -> tuple[Mask, bool]:
    """The blocks that give the usual level: those of the baseline phase, else (then True) the early ones of the
    soak."""
    begin, end = edges[:-1], edges[1:]
    calm = np.zeros(usable.size, dtype=bool)
    for window in baselines(case):
        calm |= (begin >= window.begin_ns) & (end <= window.end_ns)
    if int((calm & usable).sum()) >= MIN_REFERENCE_BLOCKS:
        return calm & usable, False
    first = min((p.window.begin_ns for p in case.phases if p.name == "soak"), default=case.window.begin_ns)
    cold_ns = round(min(_SETTLE * case.window.seconds, _SETTLE_S) * 1e9)
    positions = np.flatnonzero(usable & (begin >= first + cold_ns))
    early = np.zeros(usable.size, dtype=bool)
    early[positions[: max(MIN_REFERENCE_BLOCKS, round(EARLY * positions.size))]] = True
    return early, True


def ratio_words(times: float) -> str:
    """A ratio in words.

    >>> ratio_words(2.13), ratio_words(30.0)
    ('2.1 times', '30 times')
    """
    return f"{times:.2g} times" if times < 10 else f"{times:.0f} times"
