"""Stretches in which a latency was slower than usual, and what explains them: the load, a wave, a cold start."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.series import Floats, Series
from soakwatch_model.window import Window
from soakwatch_rules.latency.latency_blocks import ROUND_TRIP, LatencyGrid
from soakwatch_rules.stats.hysteresis import stretches
from soakwatch_rules.stats.medians import median
from soakwatch_rules.stats.slowdown import Slowness, slowness_at_like_load

DOUBLED: Final = 1.8  # times the usual: a stretch with this median counts as doubled
_COLD = 0.4  # share of the judged blocks: slow answers that end within it at the begin are a cold start
_HIGH = 0.8  # share of slow readings that a short stretch needs: single slow answers are no block
_LEAVE = 0.6  # share of the threshold, on the log scale
_GRADUAL, _GRADUAL_S = 0.05, 3600.0  # share of the run, seconds at most: the time compared before and after its begin;
_STEP = 0.65  # ... a step rises by this share of its height (log) between the two, a wave by less
_OF_LOAD = 0.1  # share of the floor for latencies of the load, which no kernel timer blurs
_SURELY = 4.0  # times the usual: too much for a load wave, or for a load never seen before
_BEYOND = 10.0  # times the usual: exceeds the floor in any case, except for round trips


@dataclass(frozen=True, slots=True)
class SlowStretch:
    """A stretch of slow blocks: how many times slower than usual, and what may excuse it."""

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
        """Its length in seconds."""
        return self.window.seconds


def slow_stretches(
    case: Case, series: Series, grid: LatencyGrid, slow: Slowness, least: float, floor_s: float, *, gross: bool = False
) -> list[SlowStretch]:
    """The stretches of blocks slower than usual by ``least`` (a log) and ``floor_s`` seconds, with what may excuse
    them."""
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
        times, to_end = median(slow.off[inside]), close == positions.size
        if median((away - floor)[inside]) < 0:
            continue
        if end - begin < 3 and not _high(series, grid, begin, end, usual, _LEAVE * least):
            continue
        same = slowness_at_like_load(grid.value_log, grid.load, begin, end, grid.judged)
        if slow.slope > 0 and same.share >= 1 / 3 and same.off < _LEAVE * least:
            continue
        near = max(round(min(_GRADUAL * length_s, _GRADUAL_S) / grid.block_s), 3)
        rise = median(off[first : first + near]) - median(off[max(first - near, 0) : first + 1])
        steep = first > 0 and rise >= _STEP * times
        gradual = first > 0 and not steep and not (knows and to_end)
        if first == 0 and close < _COLD * positions.size and grid.early:
            continue  # cold caches
        matches.append(
            SlowStretch(
                Window(int(grid.edges_ns[begin]), int(min(grid.edges_ns[end], case.window.end_ns))),
                math.exp(times),
                median(grid.value[inside]),
                median(usual[inside]),
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
    """Stretches joined across single blocks.

    >>> _joined([[0, 4], [5, 9], [12, 13]])
    [(0, 9), (12, 13)]
    """
    result: list[tuple[int, int]] = []
    for first, close in pairs:
        near = bool(result) and first - result[-1][1] <= 1
        result[-1:] = [(result[-1][0], close)] if near else [*result[-1:], (first, close)]
    return result


def without_overlap(slow: list[SlowStretch]) -> list[SlowStretch]:
    """The longest stretches in time order, without shorter ones that overlap them."""
    kept: list[SlowStretch] = []
    for stretch in sorted(slow, key=lambda s: -s.seconds):
        if all(stretch.window.end_ns <= k.window.begin_ns or stretch.window.begin_ns >= k.window.end_ns for k in kept):
            kept.append(stretch)
    return sorted(kept, key=lambda s: s.window.begin_ns)


def _high(series: Series, grid: LatencyGrid, begin: int, end: int, usual: Floats, least: float) -> bool:
    """Whether 80 % of the readings in some blocks are slower than usual by ``least`` (a log), not only their median."""
    edges = grid.edges_ns
    inside = series.between(int(edges[begin]), int(edges[end]))
    index = np.clip((inside.time_ns - edges[0]) // (edges[1] - edges[0]), 0, usual.size - 1)
    with np.errstate(divide="ignore"):
        off = np.log(inside.values / usual[index])
    return off.size > 0 and float((off >= least).mean()) >= _HIGH
