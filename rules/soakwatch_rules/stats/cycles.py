"""Relaxation patterns: a sawtooth is judged by the floor of its cycles, growth after one release not at all. And the
question whether a series moves as one sine of a day."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from soakwatch_rules.stats.blocks import MAD

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

_FINE: Final = 480  # blocks in which falls are looked for
_MIN_BLOCKS: Final = 32
_FALL: Final = 0.3  # of the range between the 2nd and the 98th percentile
_PARTS: Final = 4
_SIGMAS: Final = 5.0
_QUANTA: Final = 3.0
DAY_S: Final = 86400.0
_MIN_BLOCKS_OF_A_DAY: Final = 16
_UNEXPLAINED: Final = 0.1  # of the variance
_BENDS: Final = 9
_APART: Final = 4  # blocks between falls: faster cycles vanish in the block means
_LASTING: Final = 0.75  # of a fall, by which the medians before and after it differ
_RISES: Final = 0.5  # abrupt rises for each abrupt fall: batches and level flips rise abruptly too
_CLIMB: Final = 0.5  # correlation with time within a cycle
_BLURRED: Final = 3.0  # blocks of climb by which two peaks may differ
_CLIMBED: Final = 0.05  # of the run, that a climb before a release takes at least
_MADE_UP: Final = 0.5  # of a release, that had grown before it in the run
_RARE: Final = 2  # releases; more are a habit
_ALIKE: Final = 0.5  # of the climb after a release, that the climb before it has at least
_ABOVE: Final = 0.25  # of the range, between the floors and the median


@dataclass(frozen=True, slots=True, eq=False)
class Cycles:
    """The floor of each cycle (mean of its two lowest blocks) and its time; ``falls`` are the times of the falls,
    ``block_s`` is the length of a block."""

    time_s: Floats
    floor: Floats
    falls: Floats
    block_s: float


def cycles(time_s: Floats, value: Floats, *, begin_s: float, end_s: float, quantum: float = 0.0) -> Cycles | None:
    """The cycles of a sawtooth, or None where there is none.

    A fall takes one or two of at most 480 block means and at least max(30 % of the range, 5 robust sigmas of the steps
    between blocks, 3 quanta). There is a sawtooth if there are two falls or more, at least 4 blocks apart (median), at
    most half as many abrupt rises, a climb within the cycles (mean correlation with time of 0.5) and a median
    that lies above the floors by a quarter of the range.
    """
    number = min(_FINE, value.size // 2)
    if number < _MIN_BLOCKS:
        return None
    edges = np.linspace(begin_s, end_s, number + 1)
    positions = np.searchsorted(time_s, edges[:-1])
    counts = np.diff(np.append(positions, value.size))
    filled = counts > 0
    if filled.sum() < _MIN_BLOCKS:
        return None
    means = np.add.reduceat(value, positions[filled]) / counts[filled]
    centre = 0.5 * (edges[1:] + edges[:-1])[filled]
    jump, spread = _abrupt(means, quantum)
    if not jump > 0:
        return None
    falls, rises = _places(means, -jump), _places(means, jump)
    if falls.size < 2 or float(np.median(np.diff(falls))) < _APART or rises.size > _RISES * falls.size:
        return None
    times, floors = [], []
    # a cycle that has just begun is noise: each counts by its length, also the one that was cut by the begin
    limits = [0, *falls.tolist(), means.size]
    climbs = [(end - begin) * _climb(means[begin:end]) for begin, end in pairwise(limits)]
    for begin, end in zip(falls.tolist(), [*falls[1:].tolist(), means.size], strict=True):
        cycle = means[begin:end]
        if cycle.size < 3:
            continue
        lowest = np.argsort(cycle, kind="stable")[:2]
        floors.append(float(cycle[lowest].mean()))
        times.append(float(centre[begin + lowest].mean()))
    if not floors or sum(climbs) < _CLIMB * means.size:
        return None
    if float(np.median(means)) < float(np.median(floors)) + _ABOVE * spread:
        return None
    return Cycles(np.array(times), np.array(floors), centre[falls], (end_s - begin_s) / number)


@dataclass(frozen=True, slots=True)
class Release:
    """A lasting abrupt fall: its block, its height, and whether it took all that had come before at the same pace."""

    index: int
    height: float
    whole: bool


def released(value: Floats, allowed: float = 0.0) -> Release | None:
    """The last lasting abrupt fall whose height the end has not regained, None where there is none.

    What grows since then may be the climb of a long sawtooth: a cache flush, a rotation, a full collection. Heights are
    medians of a sixteenth of the blocks, so that a single block is neither a peak nor a fall, and a job that came and
    went is no fall; ``allowed`` is the growth a block by which a later peak may be higher. The release was ``whole`` if
    it fell as low as the run had been before it (but for what is allowed), from a climb at least half as steep as the
    one after it: then it is a sawtooth that was seen once.
    """
    jump, _ = _abrupt(value, 0.0)
    if not jump > 0:
        return None
    some = max(3, value.size // 16)
    for fall in _places(value, -jump)[::-1].tolist():
        if fall < 4:
            continue
        # the fall itself may take two blocks, which belong to neither side
        before = float(np.median(value[max(0, fall - 1 - some) : fall - 1]))
        after = float(np.median(value[fall : fall + some]))
        if before - after < _LASTING * jump or _came_at_once(value, fall, before - after, some):
            continue
        pace = max(_steep(value[fall:]), 0.0)
        if float(np.median(value[-some:])) > before + allowed * (value.size - fall) + _BLURRED * pace:
            return None
        low = value[fall : fall + 3].min() <= value[: fall - 1].min() + allowed * value.size
        steep = _steep(value[: fall - 1]) >= _ALIKE * pace
        return Release(fall, before - after, bool(low) and steep)
    return None


def _came_at_once(value: Floats, fall: int, height: float, some: int) -> bool:
    """Whether what fell had come as abruptly shortly before: the end of a job, which says nothing of what climbs."""
    earlier = value[max(0, fall - 1 - 3 * some) : fall - 1]
    ups = np.diff(earlier)
    if not ups.size or float(ups.max()) < _ALIKE * height:
        return False
    up = int(np.argmax(ups))
    rise = float(np.median(earlier[up + 1 :][:some]) - np.median(earlier[: up + 1][-some:]))
    return rise >= _LASTING * height


def freed(value: Floats) -> Release | None:
    """The highest lasting abrupt fall that took back what had grown before it; None where there is none.

    For what grew without a sawtooth's habit: at most two such falls, each after a climb of a twentieth of the run that
    made up most of it.
    """
    jump, _ = _abrupt(value, 0.0)
    if not jump > 0:
        return None
    some, matches = max(3, value.size // 32), []
    begin = 0
    for fall in _places(value, -jump).tolist():
        climb = value[begin : max(fall - 1, begin)]
        begin = fall + 1
        if climb.size < max(_CLIMBED * value.size, 3) or fall + 1 >= value.size:
            continue
        before, after = float(np.median(climb[-some:])), float(np.median(value[fall + 1 : fall + 1 + some]))
        height = before - after
        rise = before - float(np.median(climb[:some]))
        if height >= _LASTING * jump and rise >= _MADE_UP * height and _climb(climb) >= _CLIMB:
            matches.append(Release(fall, height, whole=True))
    return max(matches, key=lambda cycle: cycle.height) if 0 < len(matches) <= _RARE else None


def _steep(value: Floats) -> float:
    """The slope of the straight line, per block; 0 for fewer than three."""
    if value.size < 3:
        return 0.0
    indices = np.arange(value.size) - (value.size - 1) / 2
    return float(indices @ value) / float(indices @ indices)


def _abrupt(value: Floats, quantum: float) -> tuple[float, float]:
    """What counts as an abrupt fall, and the range: the median one of a quarter, so that a warm-up adds nothing."""
    steps = np.diff(value)
    sigma = MAD * float(np.median(np.abs(steps - np.median(steps))))
    edges = [value.size * part // _PARTS for part in range(_PARTS + 1)]
    ranges = sorted(_range(value[begin:end]) for begin, end in pairwise(edges) if end > begin)
    spread = 0.5 * (ranges[(len(ranges) - 1) // 2] + ranges[len(ranges) // 2])
    return max(_FALL * spread, _SIGMAS * sigma, _QUANTA * quantum), spread


def _range(value: Floats) -> float:
    """Between about the 2nd and the 98th percentile; numpy's own take ten times as long on so few values."""
    ordered, rim = np.sort(value), round(0.02 * (value.size - 1))
    return float(ordered[value.size - 1 - rim] - ordered[rim])


def _places(value: Floats, jump: float) -> Places:
    """Blocks at which the value moved by ``jump`` (its sign tells the direction) within one or two steps."""
    values = np.concatenate(([0.0], np.diff(value)))
    two = values + np.concatenate(([0.0], values[:-1]))
    hit = np.flatnonzero(np.maximum(values, two) >= jump if jump > 0 else np.minimum(values, two) <= jump)
    kept: list[int] = []
    for i in hit.tolist():
        if not kept or i - kept[-1] > 2:
            kept.append(i)
    return np.array(kept, dtype=np.int64)


def _climb(cycle: Floats) -> float:
    indices = np.arange(cycle.size) - (cycle.size - 1) / 2
    off = cycle - cycle.mean()
    size = float(np.sqrt((indices @ indices) * (off @ off)))
    return float(indices @ off) / size if size > 0 else 0.0


def of_a_day(seconds: NDArray[np.float64], value: NDArray[np.float64]) -> bool:
    """Whether one sine of a day explains nearly all of it, more than a straight line does, and no less than a line with
    one bend, which has as many parameters: what begins to grow in mid-run looks like half of a sine, too."""
    if value.size < _MIN_BLOCKS_OF_A_DAY:
        return False
    turn = 2 * np.pi * seconds / DAY_S
    ones, whole = np.ones(value.size), float(np.sum((value - value.mean()) ** 2))

    def left(*columns: NDArray[np.float64]) -> float:
        basis = np.stack([ones, *columns], axis=1)
        return float(np.sum((value - basis @ np.linalg.lstsq(basis, value, rcond=None)[0]) ** 2))

    sine = left(np.sin(turn), np.cos(turn))
    if not whole > 0 or sine >= _UNEXPLAINED * whole or sine >= left(seconds) / 2:
        return False
    bends = np.linspace(seconds[0], seconds[-1], _BENDS + 2)[1:-1]
    return sine <= min(left(seconds, np.maximum(seconds - index, 0.0)) for index in bends.tolist())
