"""Blocks: a series cut into equal stretches of time, with one robust value each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from soakwatch_model.series import Floats, Ints
from soakwatch_rules.stats.medians import median, row_medians

Statistic = Literal["mean", "about", "min", "median"]
"""The value of a block; "about" is the mean up to rounding, in a fifth of the time."""

MAX_BLOCKS: Final = 96
MIN_SAMPLES: Final = 16
_TRIM: Final = 0.15  # share of a block's readings that is left out at each end
_FILLED: Final = 0.3  # a block with fewer than this share of the usual readings is missing
_WINDOW: Final = 0.18  # share of the run that the running median covers
_SIGMAS: Final = 4.0
_JOBS: Final = 12  # parts of the run; the longest job lasts one
_OUT_OF: Final = 6.0  # robust sigmas; noise is skewed and has tails
_MANY_JOBS: Final = 1 / 3
MAD: Final = 1.4826  # median absolute deviation to standard deviation of a normal


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """Block centres in seconds on the caller's axis, their values, and the share of missing blocks (interpolated)."""

    time_s: Floats
    value: Floats
    missing: float

    def __len__(self) -> int:
        return int(self.value.size)

    @property
    def span_s(self) -> float:
        """The time in seconds that all blocks cover."""
        return float(self.time_s[-1] - self.time_s[0]) * len(self) / max(len(self) - 1, 1)


def how_many(readings: int, most: int = MAX_BLOCKS) -> int:
    """The number of blocks for a number of readings: about one each up to ``most``, equal shares beyond.

    From 48 on it is a multiple of eight, so that few tables of shapes are needed.

    >>> how_many(20), how_many(50), how_many(100), how_many(8640)
    (20, 48, 48, 96)
    """
    if readings >= 4 * most:
        return most
    number = readings if readings <= most else readings // -(-readings // most)
    return number if number < 48 else number - number % 8


def blocks(
    time_s: Floats, value: Floats, *, begin_s: float, end_s: float, number: int, statistic: Statistic = "mean"
) -> Blocks:
    """``number`` equal stretches of begin..end; "mean" leaves out the lowest and highest 15 % of a block's readings."""
    edges = np.linspace(begin_s, end_s, number + 1)
    positions = np.searchsorted(time_s, edges)
    positions[-1] = time_s.size
    counts = np.diff(positions)
    filled = counts[counts > 0]
    usual = median(filled) if filled.size else 1.0
    good = counts >= max(1.0, _FILLED * usual)
    result = np.full(number, np.nan)
    # all blocks with the same number of readings at once: a steady cadence makes two or three sizes
    for size in np.unique(counts[good]).tolist():
        alike = np.flatnonzero(good & (counts == size))
        result[alike] = _of(_rows(value, positions[alike], size), statistic)
    centres = 0.5 * (edges[1:] + edges[:-1])
    lost = ~good
    if lost.any() and good.any():
        result[lost] = np.interp(centres[lost], centres[good], result[good])
    return Blocks(centres, result, float(lost.mean()))


def _rows(value: Floats, first: Ints, size: int) -> Floats:
    """``size`` values from each of some positions on."""
    begin, end = int(first[0]), int(first[-1]) + size
    if end - begin == first.size * size:  # they follow each other, as ``first`` rises and stretches do not overlap
        return value[begin:end].reshape(first.size, size)
    rows: Floats = value[first[:, None] + np.arange(size)]
    return rows


def _of(readings: Floats, statistic: Statistic) -> Floats:
    """The value of each row."""
    size = readings.shape[1]
    if statistic == "min":
        return np.asarray(readings.min(axis=1))
    if statistic == "median":
        return np.asarray(row_medians(readings))
    if size < 5:
        return np.asarray(readings.mean(axis=1))
    cut = max(1, int(_TRIM * size))
    if statistic == "about":
        return np.asarray(np.sort(readings, axis=1)[:, cut : size - cut].mean(axis=1))
    inner = np.partition(readings, (cut, size - cut - 1), axis=1)
    return np.asarray(inner[:, cut : size - cut].mean(axis=1))


def winsorised(value: Floats) -> Floats:
    """Blocks limited to 4 robust sigmas around a running median of 18 % of them, except in the last half window.

    An outlier at the end may be growth that has just begun; an earlier one is over.
    """
    half = int(_WINDOW * value.size / 2)
    if half < 2:
        return value
    padded = np.concatenate([np.full(half, value[0]), value, np.full(half, value[-1])])
    middle = row_medians(np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1))
    off = value - middle
    steps = np.diff(value)
    pace = median(steps)
    # a steady rise equals its own running median; its noise shows only between neighbours
    between = median(np.abs(steps - pace)) / math.sqrt(2)
    sigma = MAD * max(median(np.abs(off)), between)
    if not sigma > 0:
        return value
    # near an abrupt fall the running median of a climb lags by up to half a window
    most = _SIGMAS * sigma + half * abs(pace)
    drawn: Floats = middle + np.clip(off, -most, most)
    drawn[:2] = value[:2]
    drawn[value.size - half :] = value[value.size - half :]
    return drawn


def opened(value: Floats, width: int, least: int = 3) -> Floats:
    """The highest level below which no stretch of ``width`` values falls: rises that are shorter are removed.

    The opening of mathematical morphology (J. Serra, Image Analysis and Mathematical Morphology, 1982): the running
    maximum of the running minimum. A steady rise and a step stay as they are. At both ends stretches of ``least``
    values count too, so that a rise shortly before the end stays.
    """
    windows = np.lib.stride_tricks.sliding_window_view
    beyond = np.full(width - least, np.inf)
    low = windows(np.concatenate([beyond, value, beyond]), width).min(axis=1)
    none = np.full(least - 1, -np.inf)
    result: Floats = windows(np.concatenate([none, low, none]), width).max(axis=1)
    return result


def without_jobs(value: Floats, least: float) -> Floats:
    """Values without jobs (backups, batches): what rises for up to a twelfth of the run, by far more than the noise,
    and goes back is replaced by the line between its neighbours.

    A job lies above the ``opened`` values (both relative to the line through the outer thirds) by more than ``least``
    and six robust sigmas of that distance. The last three values stay, since they may be growth that has just begun. If
    a third or more would be replaced, nothing is.

    >>> float(without_jobs(np.where(np.arange(24) % 8 == 5, 9.0, np.arange(24.0) % 3 / 2), 1.0)[5])
    0.25
    """
    width, third = max(3, value.size // _JOBS + 1), value.size // 3
    if value.size < 2 * width:
        return value
    height = 1.5 * float(median(value[-third:]) - median(value[:third]))
    flat = value - np.linspace(0.0, height, value.size)
    off = flat - opened(flat, width)
    middle = median(off)
    job = off > middle + max(least, _OUT_OF * MAD * median(np.abs(off - middle)))
    if not job.any() or job.mean() > _MANY_JOBS:
        return value
    places = np.arange(value.size)
    rest: Floats = np.interp(places, places[~job], value[~job])
    return rest
