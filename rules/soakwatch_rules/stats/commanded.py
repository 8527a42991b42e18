"""Commanded against achieved: a commanded rate, and counters of what was done."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from soakwatch_model.flow import FAILED, REQUESTS
from soakwatch_model.metric import flows
from soakwatch_model.series import Floats, Mask, Series
from soakwatch_model.window import Window
from soakwatch_rules.stats.counted_amounts import binned

_JUMP = 0.02  # share by which the command changes between two readings: it is unknown when it changed
_MIN_BINS = 8
_MIN_COUNT = 100.0  # so that one is at most one per cent
_IDLE = 0.8  # share of the connections below which there were free ones
_MAX_VALUE = 1e200


@dataclass(frozen=True, slots=True)
class Shortfall:
    """One stretch: ``ratio`` is achieved / commanded.

    ``noise`` is what chance may add or take: 3 / sqrt(commanded) for sending at random times (Poisson), plus one of the
    compared readings, since command and counter are not read at the same moment.
    """

    window: Window
    phase: str
    ratio: float
    noise: float


def shortfall(
    reported: Series, did: Sequence[Series], window: Window, phase: str, waits: Sequence[Series] | None = None
) -> Shortfall | None:
    """Compares a commanded rate with counters (or rates) in a stretch; None if too little is known.

    The command is interpolated between readings; where it jumps by more than 2 % nothing is compared. It takes 8
    stretches between readings and a total command of 100. With ``waits`` (connections, latencies and failures of a
    generator that waits for answers) only stretches count in which it certainly did not wait.
    """
    good = reported.between(window.begin_ns, window.end_ns).finite()
    if len(good) <= _MIN_BINS:
        return None
    rate = good.values
    with np.errstate(over="ignore", invalid="ignore"):
        commanded = 0.5 * rate[1:] + 0.5 * rate[:-1]
        steady = np.abs(np.diff(rate)) <= _JUMP * np.abs(commanded)
        commanded = commanded * np.diff(good.time_ns) * 1e-9
        achieved = binned(did, good.time_ns)
        usable = steady & np.isfinite(achieved) & np.isfinite(commanded) & (commanded >= 0) & (commanded < _MAX_VALUE)
        if waits is not None:
            usable &= _idle(good, waits, achieved)
        total = float(np.sum(commanded[usable]))
        done = float(np.sum(achieved[usable]))
    if int(usable.sum()) < _MIN_BINS or not _MIN_COUNT <= total < _MAX_VALUE or not np.isfinite(done):
        return None
    noise = 3 / math.sqrt(total) + 1 / int(usable.sum())
    return Shortfall(window, phase, min(max(done / total, -_MAX_VALUE), _MAX_VALUE), noise)


def _idle(reported: Series, waits: Sequence[Series], achieved: Floats) -> Mask:
    """Where a generator had free connections by Little's law: answers per second times the longest reported latency.

    If a request failed, or latency or number of connections is not reported, it may have waited.
    """
    edges = reported.time_ns
    open_, late = np.full(edges.size - 1, np.nan), np.full(edges.size - 1, np.nan)
    calm = np.ones(edges.size - 1, dtype=np.bool_)
    for series in waits:
        good = series.finite()
        if series.metric in flows(FAILED, REQUESTS):
            calm &= binned([good], edges) == 0
            continue
        positions = np.searchsorted(good.time_ns, edges[1:], side="right") - 1
        fresh = (
            (positions >= 0) & (good.time_ns[positions] > edges[:-1])
            if len(good)
            else np.zeros(positions.size, dtype=np.bool_)
        )
        value = np.where(fresh, good.values[positions], np.nan) if len(good) else np.full(positions.size, np.nan)
        if series.metric == "load.connections":
            open_ = np.fmax(open_, value)
        elif series.metric == "load.latency":
            late = np.fmax(late, value)
    with np.errstate(over="ignore", invalid="ignore"):
        busy = achieved / (np.diff(edges) * 1e-9) * late
        idle: Mask = calm & (busy < _IDLE * open_)
    return idle
