"""Abrupt falls and rises in a series of blocks, and the climb of a stretch between two of them."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np

from soakwatch_model.series import Floats, Ints
from soakwatch_rules.stats.time_blocks import MAD

_FALL: Final = 0.3  # share of the range between the 2nd and the 98th percentile
_PARTS: Final = 4
_SIGMAS: Final = 5.0
_QUANTA: Final = 3.0
_FEW: Final = 4  # with fewer values a line fits nearly anything


def abrupt_height(value: Floats, quantum: float) -> tuple[float, float]:
    """The least height of an abrupt fall, and the range (median over the quarters, so that a warm-up adds nothing)."""
    steps = np.diff(value)
    sigma = MAD * float(np.median(np.abs(steps - np.median(steps))))
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


def _range(value: Floats) -> float:
    """The range between about the 2nd and the 98th percentile; numpy's own takes ten times as long on so few values."""
    ordered, rim = np.sort(value), round(0.02 * (value.size - 1))
    return float(ordered[value.size - 1 - rim] - ordered[rim])
