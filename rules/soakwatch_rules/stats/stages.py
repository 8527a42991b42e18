"""Stages: a stretch cut in equal parts by time, each with its mean and standard deviation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Stage:
    """One part: ``mean`` and ``sd`` (divided by n - 1) in the unit of the readings, None where n is too small."""

    mean: float | None
    sd: float | None
    n: int


def stages(
    time_ns: NDArray[np.int64], value: NDArray[np.float64], begin_ns: int, end_ns: int, number: int = 3
) -> tuple[Stage, ...]:
    """The parts of begin <= t < end, each ``1/number`` of the time, however many readings fall in it.

    Deviations are taken from the first reading, so a constant has exactly that mean and a deviation of 0.
    """
    edges = [begin_ns + (end_ns - begin_ns) * part // number for part in range(number + 1)]
    at = np.searchsorted(time_ns, edges)
    return tuple(_stage(value[at[i] : at[i + 1]]) for i in range(number))


def _stage(value: NDArray[np.float64]) -> Stage:
    n = int(value.size)
    if n == 0:
        return Stage(None, None, 0)
    first = float(value[0])
    apart = value - first
    return Stage(first + float(apart.mean()), float(apart.std(ddof=1)) if n > 1 else None, n)
