"""Polls as they arrived, unpacked into columns: what compaction reads, and what a reader adds to the blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from soakwatch.record.model import Ints, Values

POLL_COLUMNS = "seq, due_ns, start_ns, duration_ns, outcome, error, layout, offsets, data"
PollRow = tuple[int, int, int, int, int, int, int, bytes | None, bytes]
Layouts = Mapping[int, tuple[Ints, str]]
"""By the number of a layout: its series, shape (n,), and a letter for the type of each."""

_EXACT = 2**53


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """The polls of one layout: their positions, shape (n,), the words of their readings, shape (n, columns), and the
    offsets of the readings' times, shape (n, columns) or None where all are 0."""

    positions: Ints
    words: NDArray[np.uint64]
    offsets: Ints | None
    alike: bool  # all columns have the same offsets


class Pieces(Mapping[int, Sequence[tuple[int, int, str]]]):
    """By series where its readings are: layout, column and kind of each group that has some.

    Polls of processes that come and go have as many layouts as polls, so this is kept as arrays.
    """

    def __init__(self, layouts: Layouts) -> None:
        self._layouts = layouts
        sizes = [series.size for series, _ in layouts.values()]
        series = np.concatenate([np.empty(0, np.int64), *(series for series, _ in layouts.values())])
        order = np.argsort(series, kind="stable").astype(np.int32)
        self._series, self._first = np.unique(series[order], return_index=True)
        self._first = np.append(self._first, order.size)
        self._layout = np.repeat(np.fromiter(layouts, np.int64, len(sizes)), sizes)[order]
        self._column = np.concatenate([np.empty(0, np.int32), *(np.arange(n, dtype=np.int32) for n in sizes)])[order]

    def __getitem__(self, series: int) -> Sequence[tuple[int, int, str]]:
        place = int(np.searchsorted(self._series, series))
        if place == self._series.size or self._series[place] != series:
            raise KeyError(series)
        part = slice(*self._first[place : place + 2])
        return [
            (layout, column, self._layouts[layout][1][column])
            for layout, column in zip(self._layout[part].tolist(), self._column[part].tolist(), strict=True)
        ]

    def __iter__(self) -> Iterator[int]:
        return iter(self._series.tolist())

    def __len__(self) -> int:
        return int(self._series.size)

    def of(self, layout: int) -> tuple[Ints, str]:
        """Series and kinds of a layout."""
        return self._layouts[layout]


@dataclass(frozen=True, slots=True, eq=False)
class RecentSeries:
    """The readings of one series: positions of their polls, offsets of their times, words and kinds, shape (n,).

    Series with the same ``alike`` have the same positions and offsets; None: unknown.
    """

    positions: Ints
    offsets: Ints | None
    words: NDArray[np.uint64]
    kinds: NDArray[np.bytes_] | str
    alike: int | None


@dataclass(frozen=True, slots=True, eq=False)
class Recent:
    """Some successive polls of one source as columns, shape (n,) each; times UTC ns."""

    seq: Ints
    due_ns: Ints
    start_ns: Ints
    duration_ns: Ints
    outcome: Ints
    error: Ints
    groups: Mapping[int, Group]
    pieces: Pieces

    def column(self, series: int) -> RecentSeries:
        """The readings of one series in the order in which they came."""
        pieces = self.pieces[series]
        if len(pieces) == 1:
            layout, index, kind = pieces[0]
            group = self.groups[layout]
            offsets = None if group.offsets is None else group.offsets[:, index]
            alike = layout if group.alike else None
            return RecentSeries(group.positions, offsets, group.words[:, index].copy(), kind, alike)
        groups = [self.groups[layout] for layout, _, _ in pieces]
        positions = np.concatenate([group.positions for group in groups])
        columns = [index for _, index, _ in pieces]
        words = np.concatenate([group.words[:, index] for group, index in zip(groups, columns, strict=True)])
        offsets = np.concatenate(
            [
                np.zeros(group.positions.size, np.int64) if group.offsets is None else group.offsets[:, index]
                for group, index in zip(groups, columns, strict=True)
            ]
        )
        lengths = [group.positions.size for group in groups]
        kinds = np.repeat(np.array([kind for _, _, kind in pieces], dtype="S1"), lengths)
        order = np.lexsort((offsets, positions))  # a series may come more than once in a poll, in order of time
        every = offsets[order] if offsets.any() else None
        return RecentSeries(positions[order], every, words[order], kinds[order], None)


def unpack(rows: Iterable[PollRow], layouts: Layouts) -> Recent:
    """The columns of some polls; ``layouts`` gives the series and kinds of each layout."""
    numbers: list[tuple[int, int, int, int, int, int]] = []
    by_layout: dict[int, tuple[list[int], list[bytes], list[bytes | None]]] = {}
    for position, (seq, due, start, duration, outcome, error, layout, offsets, data) in enumerate(rows):
        numbers.append((seq, due, start, duration, outcome, error))
        if layout:
            positions, words, moved = by_layout.setdefault(layout, ([], [], []))
            positions.append(position)
            words.append(data)
            moved.append(offsets)
    polls = np.array(numbers, dtype=np.int64).reshape(-1, 6).T.copy()
    groups: dict[int, Group] = {}
    for layout, (positions, words, moved) in by_layout.items():
        columns = layouts[layout][0].size
        matrix = np.frombuffer(b"".join(words), dtype="<u8").reshape(len(words), columns)
        groups[layout] = Group(np.array(positions, dtype=np.int64), matrix, *_offsets(moved, columns))
    pieces = Pieces({layout: layouts[layout] for layout in groups})
    return Recent(polls[0], polls[1], polls[2], polls[3], polls[4], polls[5], groups, pieces)


def followed(before: Recent, later: Recent, first_seq: int) -> Recent:
    """Polls that were unpacked earlier, from the number ``first_seq`` on, and then the later ones."""
    cut = int(np.searchsorted(before.seq, first_seq))
    kept = before.seq.size - cut
    columns = [
        np.concatenate([getattr(before, name)[cut:], getattr(later, name)])
        for name in ("seq", "due_ns", "start_ns", "duration_ns", "outcome", "error")
    ]
    groups: dict[int, Group] = {}
    for number, group in before.groups.items():
        low = int(np.searchsorted(group.positions, cut))
        if low < group.positions.size:
            offsets = None if group.offsets is None else group.offsets[low:]
            groups[number] = Group(group.positions[low:] - cut, group.words[low:], offsets, group.alike)
    old = frozenset(groups)  # the number of an unused layout may be given to another one later
    for number, group in later.groups.items():
        moved = Group(group.positions + kept, group.words, group.offsets, group.alike)
        groups[number] = _joined(groups[number], moved) if number in old else moved
    pieces = Pieces({layout: (before if layout in old else later).pieces.of(layout) for layout in groups})
    return Recent(columns[0], columns[1], columns[2], columns[3], columns[4], columns[5], groups, pieces)


def _joined(group: Group, later: Group) -> Group:
    offsets = None
    if group.offsets is not None or later.offsets is not None:
        parts = (np.zeros(of.words.shape, np.int64) if of.offsets is None else of.offsets for of in (group, later))
        offsets = np.concatenate(list(parts))
    positions = np.concatenate([group.positions, later.positions])
    return Group(positions, np.concatenate([group.words, later.words]), offsets, group.alike and later.alike)


def typed_runs(column: RecentSeries) -> list[tuple[slice, Values]]:
    """The readings as arrays of their own type, in as few runs as keep every bit.

    Integers up to 2**53 among floats become floats; a larger one begins a run of its own.
    """
    kinds, words = column.kinds, column.words
    if isinstance(kinds, str):
        return [(slice(0, words.size), _as(kinds, words))]
    big = ((kinds == b"q") & (np.abs(words.view(np.int64)) > _EXACT)) | ((kinds == b"Q") & (words > _EXACT))
    if bool((kinds != b"d").all()):
        negative = (kinds == b"q") & (words.view(np.int64) < 0)
        huge = words.view(np.int64) < 0
        if not negative.any():
            return [(slice(0, words.size), words.view(np.uint64) if huge.any() else words.view(np.int64))]
        run_kind = np.where((kinds == b"Q") & huge, b"Q", b"q")
    else:
        run_kind = np.where(big, kinds, b"d")
    edges = [0, *(np.flatnonzero(run_kind[1:] != run_kind[:-1]) + 1).tolist(), words.size]
    runs: list[tuple[slice, Values]] = []
    for begin, end in pairwise(edges):
        stretch = slice(begin, end)
        kind = run_kind[begin].decode()
        runs.append((stretch, _floats(words[stretch], kinds[stretch]) if kind == "d" else _as(kind, words[stretch])))
    return runs


def _as(kind: str, words: NDArray[np.uint64]) -> Values:
    if kind == "d":
        return words.view(np.float64)
    return words if kind == "Q" else words.view(np.int64)


def _floats(words: NDArray[np.uint64], kinds: NDArray[np.bytes_]) -> NDArray[np.float64]:
    signed = words.view(np.int64).astype(np.float64)
    return np.where(kinds == b"d", words.view(np.float64), np.where(kinds == b"q", signed, words.astype(np.float64)))


def _offsets(moved: Sequence[bytes | None], columns: int) -> tuple[Ints | None, bool]:
    if not any(moved):
        return None, True
    matrix = np.zeros((len(moved), columns), dtype=np.int64)
    alike = True
    for row, offsets in enumerate(moved):
        if offsets is not None:
            matrix[row] = np.frombuffer(offsets, dtype="<i8")
            alike = alike and len(offsets) == 8
    return matrix, alike or columns == 1
