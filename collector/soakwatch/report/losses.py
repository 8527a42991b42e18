"""Which polls were lost and when: exact stretches for a table, and cells of equal width for a strip."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from soakwatch.report.show import number, span_text
from soakwatch.report.source import PollOutcomes
from soakwatch_rules.rule import Window


@dataclass(frozen=True, slots=True)
class Loss:
    """Neighbouring polls without an answer: due times of the first and the last, and how many ended how."""

    begin_ns: int
    end_ns: int
    polls: int
    words: str


@dataclass(frozen=True, slots=True)
class Cell:
    """A piece of a strip, as percentages of its width; ``word`` is how most of its lost polls ended."""

    left: str
    width: str
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
    told = tuple(_loss(polls, int(begins[n]), int(ends[n])) for n in longest)
    return told, int(begins.size) - len(told)


def cells_of(polls: PollOutcomes, window: Window, cells: int, interval_ns: int) -> tuple[Cell, ...]:
    """The polls on a strip of ``cells`` cells; neighbouring cells that ended alike are one.

    A single lost poll fills its cell, so that it is seen in any number of answered ones. A poll stands for the cells
    up to the next one, as far as its interval reaches; where none was due there is no cell.
    """
    length = max(window.end_ns - window.begin_ns, 1)
    due, outcome = polls.due_ns, polls.outcome
    place = np.clip(((due - window.begin_ns) / length * cells).astype(np.int64), 0, cells - 1)
    kinds = len(polls.words)
    table = np.bincount(place * kinds + outcome, minlength=cells * kinds).reshape(cells, kinds)
    lost = table[:, 1:].any(axis=1)
    word = np.where(lost, table[:, 1:].argmax(axis=1) + 1, 0)
    seat = np.arange(cells)
    last = np.maximum.accumulate(np.where(table.any(axis=1), seat, -1))
    reach = -(-interval_ns * cells // length)
    word = np.where((last >= 0) & (seat - last < max(reach, 1)), word[last], -1)
    edges = np.flatnonzero(np.diff(np.concatenate([[-1], word, [-1]])))
    made = []
    for begin, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        kind = int(word[begin])
        if kind < 0:
            continue
        low, high = np.searchsorted(place, [begin, end])
        told = low + np.flatnonzero((outcome[low:high] != 0) == (kind != 0))
        title = f"{_counted(outcome[told], polls.words)}, {span_text(int(due[told[0]]), int(due[told[-1]]))} UTC"
        made.append(Cell(f"{begin / cells * 100:.3f}", f"{(end - begin) / cells * 100:.3f}", polls.words[kind], title))
    return tuple(made)


def _loss(polls: PollOutcomes, begin: int, end: int) -> Loss:
    words = _counted(polls.outcome[begin:end], polls.words)
    return Loss(int(polls.due_ns[begin]), int(polls.due_ns[end - 1]), end - begin, words)


def _counted(outcome: NDArray[np.int64], words: tuple[str, ...]) -> str:
    counts = np.bincount(outcome, minlength=len(words)).tolist()
    return ", ".join(f"{number(count)} {word}" for count, word in zip(counts, words, strict=True) if count)
