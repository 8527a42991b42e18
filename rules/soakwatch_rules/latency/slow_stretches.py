"""Stretches of a latency that are slower than usual, and what explains them: the load, a wave, a cold start."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.latency.blocks import ROUND_TRIP, Floats, Grid
from soakwatch_rules.stats.hysteresis import stretches
from soakwatch_rules.stats.slowdown import Slowness, alike

DOUBLED: Final = 1.8  # times what is usual, in the median of a stretch, that is taken for a doubling
_COLD = 0.4  # of what is judged: slow answers at the begin that are over by then
_HIGH = 0.8  # of the readings in a stretch: single slow answers make no block
_LEAVE = 0.6  # of the threshold, on the log scale
_GRADUAL, _GRADUAL_S = 0.05, 3600.0  # of the run, and at most: the time before and after the begin ...
_STEP = 0.65  # ... from one to the other of which a step rises by this share (of a log), and a wave by less
_OF_LOAD = 0.1  # of the floor: of packets and requests, which no kernel's timer blurs
_SURELY = 4.0  # times what is usual: too much for a wave of the load, or for a load that was never so high
_BEYOND = 10.0  # times what is usual: more than the floor allows for, except for round trips


@dataclass(frozen=True, slots=True)
class SlowStretch:
    """A stretch of slow blocks: its window, how many times slower than usual, and what can be said against it."""

    window: Window
    times: float
    value: float
    usual: float
    to_end: bool
    gross: bool = False
    steep: bool = False
    gradual: bool = False
    above: bool = False

    @property
    def seconds(self) -> float:
        """How long it lasts."""
        return self.window.seconds


def slow_stretches(
    case: Case, series: Series, grid: Grid, slow: Slowness, least: float, floor_s: float, *, gross: bool = False
) -> list[SlowStretch]:
    """The stretches of blocks that are slower than ``least`` (a log) and by ``floor_s``, each with what explains it."""
    positions = np.flatnonzero(grid.judged & np.isfinite(slow.off))
    with np.errstate(over="ignore"):
        usual = np.exp(slow.usual)
        away = grid.value - usual
    floor = np.full(away.shape, floor_s)
    if series.metric != ROUND_TRIP:
        floor = np.minimum(_OF_LOAD * floor, (_BEYOND - 1) * usual)
    off = np.where(away >= floor, slow.off, np.minimum(slow.off, 0.99 * least))[positions]
    matches = []
    length_s = case.window.seconds
    knows = series.metric != ROUND_TRIP and bool(np.isfinite(grid.load[positions]).sum() >= 0.5 * positions.size)
    for first, close in _joined(stretches(off, least, _LEAVE * least).tolist()):
        begin, end = int(positions[first]), int(positions[close - 1]) + 1
        inside = positions[first:close]
        times, to_end = float(np.median(slow.off[inside])), close == positions.size
        if float(np.median((away - floor)[inside])) < 0:
            continue
        if end - begin < 3 and not _high(series, grid, begin, end, usual, _LEAVE * least):
            continue
        same = alike(grid.value_log, grid.load, begin, end, grid.judged)
        if slow.slope > 0 and same.share >= 1 / 3 and same.off < _LEAVE * least:
            continue
        near = max(round(min(_GRADUAL * length_s, _GRADUAL_S) / grid.block_s), 3)
        rise = float(np.median(off[first : first + near])) - float(np.median(off[max(first - near, 0) : first + 1]))
        steep = first > 0 and rise >= _STEP * times
        gradual = first > 0 and not steep and not (knows and to_end)
        if first == 0 and close < _COLD * positions.size and grid.early:
            continue  # caches that were cold
        matches.append(
            SlowStretch(
                Window(int(grid.edges_ns[begin]), int(min(grid.edges_ns[end], case.window.end_ns))),
                math.exp(times),
                float(np.median(grid.value[inside])),
                float(np.median(usual[inside])),
                to_end,
                gross,
                steep=steep,
                gradual=gradual and times < math.log(_SURELY),
                above=same.above
                and not (same.share >= 1 / 10 and same.off >= math.log(DOUBLED))
                and times < math.log(_SURELY),
            )
        )
    return matches


def _joined(pairs: list[list[int]]) -> list[tuple[int, int]]:
    """Stretches between which there is a single block are one.

    >>> _joined([[0, 4], [5, 9], [12, 13]])
    [(0, 9), (12, 13)]
    """
    result: list[tuple[int, int]] = []
    for first, close in pairs:
        near = bool(result) and first - result[-1][1] <= 1
        result[-1:] = [(result[-1][0], close)] if near else [*result[-1:], (first, close)]
    return result


def without_overlap(slow: list[SlowStretch]) -> list[SlowStretch]:
    """The longest stretches, without the shorter ones that overlap them, in order of time."""
    kept: list[SlowStretch] = []
    for stretch in sorted(slow, key=lambda s: -s.seconds):
        if all(stretch.window.end_ns <= k.window.begin_ns or stretch.window.begin_ns >= k.window.end_ns for k in kept):
            kept.append(stretch)
    return sorted(kept, key=lambda s: s.window.begin_ns)


def _high(series: Series, grid: Grid, begin: int, end: int, usual: Floats, least: float) -> bool:
    """Whether nearly all readings of some blocks are slower than ``least`` (a log), not only more than half."""
    edges = grid.edges_ns
    inside = series.between(int(edges[begin]), int(edges[end]))
    index = np.clip((inside.time_ns - edges[0]) // (edges[1] - edges[0]), 0, usual.size - 1)
    with np.errstate(divide="ignore"):
        off = np.log(inside.values / usual[index])
    return off.size > 0 and float((off >= least).mean()) >= _HIGH
