"""Abrupt falls and rises in a series of blocks, and releases: lasting falls, which may make growth since then part of
a sawtooth."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from soakwatch_model.series import Floats, Ints
from soakwatch_rules.stats.medians import median
from soakwatch_rules.stats.time_blocks import MAD

_FALL: Final = 0.3  # share of the range between the 2nd and the 98th percentile
_PARTS: Final = 4
_SIGMAS: Final = 5.0
_QUANTA: Final = 3.0
_FEW: Final = 4  # with fewer values a line fits nearly anything
_LASTING: Final = 0.75  # share of a fall by which the medians before and after it must differ
_CLIMB: Final = 0.5  # correlation with time of a climb
_BLURRED: Final = 3.0  # blocks of climb by which two peaks may differ
_CLIMBED: Final = 0.05  # share of the run that a climb before a release takes at least
_MADE_UP: Final = 0.5  # share of a release that must have grown before it in the run
_RARE: Final = 2  # releases; more are a habit
_ALIKE: Final = 0.5  # least slope of the climb before a release, as a share of the climb after it
_STRAIGHT: Final = 0.12  # share of a release that a straight line may leave of the climb before it


@dataclass(frozen=True, slots=True)
class Release:
    """A lasting abrupt fall: its block, its height, and whether it took back all earlier growth at the same pace."""

    index: int
    height: float
    whole: bool


def abrupt_height(value: Floats, quantum: float) -> tuple[float, float]:
    """The least height of an abrupt fall, and the range (median over the quarters, so that a warm-up adds nothing)."""
    steps = np.diff(value)
    sigma = MAD * median(np.abs(steps - median(steps)))
    edges = [value.size * part // _PARTS for part in range(_PARTS + 1)]
    ranges = sorted(_range(value[begin:end]) for begin, end in pairwise(edges) if end > begin)
    spread = 0.5 * (ranges[(len(ranges) - 1) // 2] + ranges[len(ranges) // 2])
    return max(_FALL * spread, _SIGMAS * sigma, _QUANTA * quantum), spread


def jump_blocks(value: Floats, jump: float) -> Ints:
    """Blocks at which the value moved by ``jump`` (in the direction of its sign) within one or two steps."""
    values = np.concatenate(([0.0], np.diff(value)))
    two = values + np.concatenate(([0.0], values[:-1]))
    hit = np.flatnonzero(np.maximum(values, two) >= jump if jump > 0 else np.minimum(values, two) <= jump)
    kept: list[int] = []
    for i in hit.tolist():
        if not kept or i - kept[-1] > 2:
            kept.append(i)
    return np.array(kept, dtype=np.int64)


def time_correlation(cycle: Floats) -> float:
    """The correlation of a stretch with time."""
    indices = np.arange(cycle.size) - (cycle.size - 1) / 2
    off = cycle - cycle.mean()
    size = float(np.sqrt((indices @ indices) * (off @ off)))
    return float(indices @ off) / size if size > 0 else 0.0


def slope_per_block(value: Floats) -> float:
    """The slope of the straight line per block; 0 for fewer than three blocks."""
    if value.size < 3:
        return 0.0
    indices = np.arange(value.size) - (value.size - 1) / 2
    return float(indices @ value) / float(indices @ indices)


def line_residual(part: Floats) -> float:
    """The root mean square distance from the straight line; 0 for fewer than four values."""
    if part.size < _FEW:
        return 0.0
    x = np.arange(part.size) - (part.size - 1) / 2
    y = part - part.mean()
    rest = y - x * float(x @ y) / float(x @ x)
    return float(np.sqrt(np.mean(rest * rest)))


def released(value: Floats, allowed: float = 0.0) -> Release | None:
    """The last lasting abrupt fall whose height the end has not reached again; None if there is none.

    Growth since then may be the climb of a long sawtooth: a cache flush, a rotation, a full collection. Heights are
    medians of a sixteenth of the blocks, so that a single block is neither a peak nor a fall, and the end of a job is
    no fall. ``allowed`` is the growth per block by which a later peak may be higher. The release was ``whole`` if it
    fell to the lowest level before it (within what is allowed) after a climb at least half as steep as the one after
    it: then it is a sawtooth seen once.
    """
    jump, _ = abrupt_height(value, 0.0)
    if not jump > 0:
        return None
    some = max(3, value.size // 16)
    for fall in jump_blocks(value, -jump)[::-1].tolist():
        if fall < 4:
            continue
        # the fall itself may take two blocks, which belong to neither side
        before = median(value[max(0, fall - 1 - some) : fall - 1])
        after = median(value[fall : fall + some])
        if before - after < _LASTING * jump or _came_at_once(value, fall, before - after, some):
            continue
        pace = max(slope_per_block(value[fall:]), 0.0)
        if median(value[-some:]) > before + allowed * (value.size - fall) + _BLURRED * pace:
            return None
        low = value[fall : fall + 3].min() <= value[: fall - 1].min() + allowed * value.size
        climb = value[: fall - 1]
        steep = slope_per_block(climb) >= _ALIKE * pace and line_residual(climb) <= _STRAIGHT * (before - after)
        return Release(fall, before - after, bool(low) and steep)
    return None


def _came_at_once(value: Floats, fall: int, height: float, some: int) -> bool:
    """Whether what fell had risen as abruptly shortly before: the end of a job, which says nothing about growth."""
    earlier = value[max(0, fall - 1 - 3 * some) : fall - 1]
    ups = np.diff(earlier)
    if not ups.size or float(ups.max()) < _ALIKE * height:
        return False
    up = int(np.argmax(ups))
    rise = float(median(earlier[up + 1 :][:some]) - median(earlier[: up + 1][-some:]))
    return rise >= _LASTING * height


def freed(value: Floats) -> Release | None:
    """The highest lasting abrupt fall that took back what had grown before it; None if there is none.

    For growth without a habitual sawtooth: at most two such falls, each after a climb of at least a twentieth of the
    run that made up most of it.
    """
    jump, _ = abrupt_height(value, 0.0)
    if not jump > 0:
        return None
    some, matches = max(3, value.size // 32), []
    begin = 0
    for fall in jump_blocks(value, -jump).tolist():
        climb = value[begin : max(fall - 1, begin)]
        begin = fall + 1
        if climb.size < max(_CLIMBED * value.size, 3) or fall + 1 >= value.size:
            continue
        before, after = median(climb[-some:]), median(value[fall + 1 : fall + 1 + some])
        height = before - after
        rise = before - median(climb[:some])
        if height >= _LASTING * jump and rise >= _MADE_UP * height and time_correlation(climb) >= _CLIMB:
            matches.append(Release(fall, height, whole=True))
    return max(matches, key=lambda cycle: cycle.height) if 0 < len(matches) <= _RARE else None


def _range(value: Floats) -> float:
    """The range between about the 2nd and the 98th percentile; numpy's own takes ten times as long on so few values."""
    ordered, rim = np.sort(value), round(0.02 * (value.size - 1))
    return float(ordered[value.size - 1 - rim] - ordered[rim])
