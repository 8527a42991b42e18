"""Which polls were lost and when: exact stretches for a table, and cells of equal width for a strip."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from soakwatch.core.formatting import number, span_text
from soakwatch.record.source import PollOutcomes
from soakwatch_model.window import Window
from soakwatch_rules.wording.polls import lost_polls

_FEW, _HALF = 0.1, 0.5
_HEIGHTS = (100, 45, 70, 100)  # of answered polls; of few, some and most polls lost


@dataclass(frozen=True, slots=True)
class Loss:
    """Neighbouring polls without an answer: due times of the first and the last, and how many ended how."""

    begin_ns: int
    end_ns: int
    polls: int
    words: str


@dataclass(frozen=True, slots=True)
class Cell:
    """A piece of a strip, as percentages of its width and height; ``word`` is "ok", or how most lost polls ended.

    The height of lost ones tells their share of the piece's polls: below a tenth, below a half, or more.
    """

    left: str
    width: str
    height: int
    word: str
    title: str


def within(polls: PollOutcomes, window: Window) -> PollOutcomes:
    """The polls that were due in the window."""
    low, high = np.searchsorted(polls.due_ns, [window.begin_ns, window.end_ns])
    return PollOutcomes(polls.due_ns[low:high], polls.outcome[low:high], polls.words)


def losses_of(polls: PollOutcomes, most: int) -> tuple[tuple[Loss, ...], int]:
    """The ``most`` longest stretches of lost polls in order of time, and how many more there are.

    A stretch ends where a poll was answered. Costs arrays of the polls' length, and text for what is told only.
    """
    lost = np.concatenate([[False], polls.outcome != 0, [False]])
    edges = np.flatnonzero(lost[1:] != lost[:-1])
    begins, ends = edges[::2], edges[1::2]
    longest = np.sort(np.argsort(begins - ends, kind="stable")[:most])
    losses = tuple(_loss(polls, int(begins[n]), int(ends[n])) for n in longest)
    return losses, int(begins.size) - len(losses)


def cells_of(polls: PollOutcomes, window: Window, cells: int, interval_ns: int) -> tuple[Cell, ...]:
    """The polls on a strip of ``cells`` cells: first the answered pieces, then the lost ones that lie upon them.

    Neighbouring cells that ended alike are one piece. A single lost poll shows over its whole cell, so that it is
    seen in any number of answered ones. A poll stands for the cells up to the next one, as far as its interval
    reaches; where none was due there is no piece.
    """
    length = max(window.end_ns - window.begin_ns, 1)
    bins = np.clip(((polls.due_ns - window.begin_ns) / length * cells).astype(np.int64), 0, cells - 1)
    kinds = len(polls.words)
    table = np.bincount(bins * kinds + polls.outcome, minlength=cells * kinds).reshape(cells, kinds)
    index = np.arange(cells)
    last = np.maximum.accumulate(np.where(table.any(axis=1), index, -1))
    reach = max(-(-interval_ns * cells // length), 1)
    table = np.where(((last >= 0) & (index - last < reach))[:, None], table[last], 0)
    lost = table[:, 1:].sum(axis=1)
    share = lost / np.maximum(table.sum(axis=1), 1)
    size = 1 + (share >= _FEW).astype(np.int64) + (share >= _HALF)
    kind = (table[:, 1:].argmax(axis=1) + 1) * len(_HEIGHTS) + size
    strip = []
    for layer in ((table[:, 0] > 0).astype(np.int64), np.where(lost > 0, kind, 0)):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], layer, [0]])))
        for begin, end in pairwise(edges.tolist()):
            code = int(layer[begin])
            if code:
                word, height = divmod(code, len(_HEIGHTS)) if code > 1 else (0, 0)
                strip.append(_cell(polls, bins, cells, (begin, end), word, _HEIGHTS[height]))
    return tuple(strip)


def _cell(
    polls: PollOutcomes, bins: NDArray[np.int64], cells: int, edges: tuple[int, int], word: int, height: int
) -> Cell:
    begin, end = edges
    low, high = np.searchsorted(bins, [begin, end])
    chosen = low + np.flatnonzero((polls.outcome[low:high] != 0) == (word != 0))
    when = span_text(int(polls.due_ns[chosen[0]]), int(polls.due_ns[chosen[-1]]))
    title = f"{_counted(polls.outcome[chosen], polls.words)}, {when} UTC"
    return Cell(f"{begin / cells * 100:.3f}", f"{(end - begin) / cells * 100:.3f}", height, polls.words[word], title)


def _loss(polls: PollOutcomes, begin: int, end: int) -> Loss:
    words = _counted(polls.outcome[begin:end], polls.words)
    return Loss(int(polls.due_ns[begin]), int(polls.due_ns[end - 1]), end - begin, words)


def _counted(outcome: NDArray[np.int64], words: tuple[str, ...]) -> str:
    counts = dict(zip(words, np.bincount(outcome, minlength=len(words)).tolist(), strict=True))
    answered = counts.pop(words[0])
    return ", ".join(part for part in (f"{number(answered)} answered" if answered else "", lost_polls(counts)) if part)
