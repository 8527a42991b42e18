"""Lasting steps of a level: two windows of block medians compared, judged by the usual difference of such windows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from soakwatch_model.series import Floats, Ints, Mask
from soakwatch_model.shared_times import of_times
from soakwatch_rules.stats.medians import median, row_medians
from soakwatch_rules.stats.robust_level import MAD_TO_SIGMA

_PARTS = 5  # a block is the median of five means: two bad fifths do not move it
_TOOTH = 0.5  # share of a step that came gradually before it, or is regained after it, in the tooth of a sawtooth
_BUMP = 4  # windows: what a tooth brought and is gone within this is no new level
_CLEAR = 0.8  # a step must leave at most this share of the squares that a straight line leaves
_POWER = 0.84  # standard errors between found in half and found in 80 % of cases
_ACROSS = 4  # missing blocks beyond which a step cannot be told from a drift


@dataclass(frozen=True, slots=True)
class LevelStep:
    """A change of level: ``index`` is the first reading of the new level, ``before`` and ``after`` are the medians of
    the windows on both sides. ``tooth``: it takes back a gradual change, is taken back gradually, or soon undoes such a
    step."""

    index: int
    before: float
    after: float
    tooth: bool

    @property
    def height(self) -> float:
        """After minus before."""
        return self.after - self.before


@dataclass(frozen=True, slots=True)
class Steps:
    """``steps`` in time order, and what they were judged by.

    ``sigma``: the usual difference of two neighbouring windows. ``least``: the least height of a step at the typical
    level. ``smallest``: the height found with 80 % power. ``blocks``: the positions compared. ``holes``: gaps that no
    window crosses. ``switches``: steps back and forth between the same levels.
    """

    steps: tuple[LevelStep, ...]
    sigma: float
    least: float
    smallest: float
    blocks: int
    holes: int
    switches: int


def medians(seconds: Floats, value: Floats, length_s: float) -> tuple[Floats, Ints]:
    """Blocks of ``length_s`` from 0 on that hold readings: the median of the means of their fifths, and their numbers.

    >>> medians(np.arange(10.0), np.array([1.0, 1, 99, 1, 1, 3, 3, 3, 3, 3]), 5.0)
    (array([1., 3.]), array([0, 1]))
    """
    if not value.size:
        return np.empty(0), np.empty(0, dtype=np.int64)
    first, kept, row, column = _fifths(seconds, length_s)
    mean = np.add.reduceat(value, first) / np.diff(first, append=value.size)
    table = np.full((kept.size, _PARTS), np.nan)
    table[row, column] = mean
    return _row_medians(table), kept


@of_times
def _fifths(seconds: Floats, length_s: float) -> tuple[Ints, Ints, Ints, Ints]:
    """The first reading of each fifth of a block that holds any, the numbers of the blocks, and where each fifth is
    among these: its block and its place in it."""
    fifth = np.floor(seconds * (_PARTS / length_s) + 1e-9).astype(np.int64)
    first = np.flatnonzero(np.diff(fifth, prepend=fifth[0] - 1))
    indices = fifth[first] // _PARTS
    kept = np.unique(indices)
    return first, kept, np.searchsorted(kept, indices), fifth[first] % _PARTS


def _row_medians(table: Floats) -> Floats:
    """Medians of rows with at least one number each, ignoring NaN."""
    ordered = np.sort(table, axis=1)  # NaN go to the end
    count = (~np.isnan(table)).sum(axis=1)
    row = np.arange(table.shape[0])
    low, high = ordered[row, (count - 1) // 2], ordered[row, count // 2]
    middle: Floats = low + (high - low) / 2
    return middle


def steps(
    seconds: Floats, value: Floats, *, length_s: float, width: int, rise: float, sigmas: float, least: float
) -> Steps | None:
    """Finds lasting steps: the medians of ``width`` blocks before and after a moment differ by more than
    max(``rise``·level, ``sigmas``·sigma, ``least``), and a step explains both windows better than a straight line.

    sigma is the robust spread of all such differences in this series, so that correlated noise, sawteeth and daily
    cycles raise it as much as they move the windows; the median difference (a steady drift) is subtracted. Of
    overlapping candidates the largest counts. Windows never cross a gap of more than four blocks. None if no piece has
    4·``width`` blocks.
    """
    value_of, indices = medians(seconds, value, length_s)
    pieces = np.split(np.arange(indices.size), np.flatnonzero(np.diff(indices) > _ACROSS) + 1)
    pieces = [piece for piece in pieces if piece.size >= 2 * width]
    if not pieces or max(piece.size for piece in pieces) < 4 * width:
        return None
    sides = [_sides(value_of[piece], width) for piece in pieces]
    apart = np.concatenate([after - before for before, after in sides])
    usual = median(apart)
    sigma = MAD_TO_SIGMA * median(np.abs(apart - usual))
    steps: list[LevelStep] = []
    for piece, (before, after) in zip(pieces, sides, strict=True):
        b, matches = value_of[piece], list[tuple[int, int]]()
        even = _even(b)
        height = np.minimum(np.abs(after - before - usual), np.abs(after - before))
        needed = np.maximum(rise * np.maximum(np.abs(before), np.abs(after)), max(sigmas * sigma, least))
        for k in _peaks(height, height > needed, width):
            index = _edge(even[k : k + 2 * width])
            if index is None:
                continue
            matches.append((k, k + index))
        edges = [0, *(index for _, index in matches), b.size]
        for i, (k, index) in enumerate(matches):
            begin_s, end_s = indices[piece[index - 1]] * length_s, (indices[piece[index]] + 1) * length_s
            tooth = _tooth(b[edges[i] : index], b[index : edges[i + 2]], float(after[k] - before[k]), width)
            step = LevelStep(_moment(seconds, value, begin_s, end_s), float(before[k]), float(after[k]), tooth)
            bump = i > 0 and steps[-1].tooth and index - edges[i] <= _BUMP * width and _undoes(step, steps[-1])
            steps.append(replace(step, tooth=True) if bump else step)
    level = median(np.abs(value_of))
    wanted = max(rise / (1 - rise) * level, sigmas * sigma, least)
    # the step itself widens sigma by a tenth
    smallest = max(rise / (1 - rise) * level, 1.1 * sigmas * sigma, least) + _POWER * sigma
    switches = _switches([s for s in steps if not s.tooth])
    return Steps(tuple(steps), sigma, wanted, smallest, int(apart.size), len(pieces) - 1, switches)


def _sides(b: Floats, width: int) -> tuple[Floats, Floats]:
    middle = row_medians(np.lib.stride_tricks.sliding_window_view(b, width))
    return middle[:-width], middle[width:]


def _even(b: Floats) -> Floats:
    """Running medians of three: a single odd block does not bend the fits, and a step stays a step."""
    rows = np.lib.stride_tricks.sliding_window_view(np.pad(b, 1, mode="edge"), 3)
    middle: Floats = row_medians(rows)
    return middle


def _peaks(height: Floats, over: Mask, width: int) -> list[int]:
    """The largest candidate, then the largest at least ``width`` away from it, and so on; in order."""
    taken: list[int] = []
    left = np.where(over, height, -math.inf)
    while left.size and left.max() > -math.inf:
        # windows with the whole step on one side give a plateau of equal heights, whose middle is the step
        top = np.flatnonzero(left >= left.max())
        run = top[: int(np.argmax(np.diff(top, append=top[-1] + 2) > 1)) + 1]
        k = int(run[run.size // 2])
        taken.append(k)
        left[max(0, k - width + 1) : k + width] = -math.inf
    return sorted(taken)


def _edge(both: Floats) -> int | None:
    """The place in two windows where a step leaves the least squares; None if a straight line leaves hardly more, or if
    it is outside of their middle half, where one window contains a bend (the start of a warm-up)."""
    n = both.size
    x = np.arange(n) - (n - 1) / 2
    apart = both - both.mean()
    slope = float((x * apart).sum() / (x * x).sum())
    line = float(((apart - slope * x) ** 2).sum())
    left = np.cumsum(apart)[:-1]
    k = np.arange(1, n)
    gain = left * left / k + left * left / (n - k)
    quarter = n // 4
    index = quarter + int(np.argmax(gain[quarter - 1 : n - quarter]))
    step = float((apart**2).sum()) - float(gain[index - 1])
    return index if quarter < index < n - quarter and step < _CLEAR * line else None


def _tooth(left: Floats, right: Floats, height: float, width: int) -> bool:
    """Whether a step takes back half of a gradual change before it (since the previous step, or within the last four
    windows), or half of it is taken back gradually before the next."""
    gone = median(left[-3:]) - np.array([median(part) for part in _whence(left, width)])
    back = np.array([median(part) for part in _whence(right[::-1], width)]) - median(right[:3])
    return any(
        bool((went * height < 0).any() and (-went * np.sign(height)).max() >= _TOOTH * abs(height))
        for went in (gone, back)
    )


def _whence(part: Floats, width: int) -> list[Floats]:
    """The begin of a stretch, and its part two to four windows before its end."""
    earlier = part[-4 * width : -2 * width]
    return [part[:width], earlier] if earlier.size >= width else [part[:width]]


def _moment(seconds: Floats, value: Floats, begin_s: float, end_s: float) -> int:
    """The index in begin..end at which splitting leaves the least squares."""
    low, high = np.searchsorted(seconds, [begin_s, end_s])
    part = value[low:high]
    n = part.size
    if n < 2:
        return int(min(low, value.size - 1))
    total = np.cumsum(part - part.mean())[:-1]
    k = np.arange(1, n)
    return int(low + 1 + np.argmax(np.abs(total) / np.sqrt(k * (n - k))))


def _undoes(second: LevelStep, first: LevelStep) -> bool:
    """Whether a step goes back to the level before another."""
    return second.height * first.height < 0 and abs(second.after - first.before) <= _TOOTH * abs(first.height)


def _switches(true: list[LevelStep]) -> int:
    """The number of steps that only undo the one before or are undone, if there are at least four in a row (a
    cycle)."""
    back = [_undoes(second, first) for first, second in pairwise(true)]
    return sum(back) + 1 if sum(back) >= 3 else 0
