"""Rows of readings in little memory: the newest as they came, older ones packed by the codec of the record.

A column of a piece that is packed takes about a byte a reading, and some µs to unpack; what comes back is the same bit
for bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from soakwatch.judge.live.raw_values import typed
from soakwatch.record.follow import Table, Words, decode, encode
from soakwatch.record.model import Ints, Values

PIECE_ROWS = 128
PIECE_NS = 225_000_000_000  # a sixteenth of an hour: rows that come faster make pieces of more of them
_ROOM = 64  # rows that a part which is not packed has room for at least

Part = tuple[Ints, Values]


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    """Successive rows: their times, and each column packed."""

    time_ns: Ints
    columns: tuple[bytes, ...]


class PackedRows:
    """The rows of some series that always come together, each time once."""

    def __init__(self, kinds: str) -> None:
        self.kinds = kinds
        self._pieces: list[_Piece] = []
        self._forgotten = 0  # rows of the first piece that are no longer there
        self._time: Ints = np.empty(0, np.int64)  # of the rows that are not packed, with room for more
        self._words: Words = np.empty((0, len(kinds)), np.uint64)
        self._low = self._high = 0  # of these, the rows that are there

    def __len__(self) -> int:
        return sum(piece.time_ns.size for piece in self._pieces) - self._forgotten + self._high - self._low

    @property
    def first_ns(self) -> int:
        """The time of the oldest row."""
        return int(self._pieces[0].time_ns[self._forgotten] if self._pieces else self._time[self._low])

    @property
    def last_ns(self) -> int:
        """The time of the newest row."""
        return int(self._time[self._high - 1] if self._high > self._low else self._pieces[-1].time_ns[-1])

    @property
    def nbytes(self) -> int:
        """What it holds in memory."""
        packed = sum(piece.time_ns.nbytes + sum(map(len, set(piece.columns))) for piece in self._pieces)
        return int(packed + self._time.nbytes + self._words.nbytes)

    def add(self, table: Table) -> None:
        """Take rows in order of time. Those that come late are put where they belong; of several rows of one time the
        first that came stays."""
        late = len(self) > 0 and int(table.time_ns[0]) <= self.last_ns
        if late:
            self._unpack_since(int(table.time_ns[0]))
        n = table.time_ns.size
        if self._high + n > self._time.size:
            self._make_room(n)
        self._time[self._high : self._high + n] = table.time_ns
        self._words[self._high : self._high + n] = table.words
        self._high += n
        if late:
            self._sort()
        self._pack()

    def forget(self, before_ns: int, most: int) -> None:
        """Drop the rows before a time, and the oldest of more than ``most``."""
        times = [piece.time_ns for piece in self._pieces] + [self._time[self._low : self._high]]
        older = sum(int(np.searchsorted(time, before_ns)) for time in times)
        gone = max(older - self._forgotten, len(self) - most)
        if gone <= 0:
            return
        gone += self._forgotten
        while self._pieces and gone >= self._pieces[0].time_ns.size:
            gone -= self._pieces.pop(0).time_ns.size
        self._forgotten = gone if self._pieces else 0
        self._low += 0 if self._pieces else gone

    def parts(self, column: int, begin_ns: int, end_ns: int, most: int | None = None) -> list[Part]:
        """The readings of a column in begin <= time < end, of the last ``most`` rows, in order of time."""
        left = len(self) if most is None else most
        parts: list[Part] = []
        low = max(self._low, self._high - left)
        time = self._time[low : self._high]
        start, stop = np.searchsorted(time, [begin_ns, end_ns])
        if stop > start:
            words = self._words[low + start : low + stop, column]
            parts.append((time[start:stop].copy(), typed(self.kinds[column], words)))
        left -= time.size
        for number in range(len(self._pieces) - 1, -1, -1):
            time = self._pieces[number].time_ns
            if left <= 0 or time[-1] < begin_ns:
                break
            skip = max(time.size - left, self._forgotten if number == 0 else 0)
            start, stop = np.searchsorted(time[skip:], [begin_ns, end_ns]) + skip
            if stop > start:
                parts.append((time[start:stop], decode(self._pieces[number].columns[column])[start:stop]))
            left -= time.size
        parts.reverse()
        return parts

    def _pack(self) -> None:
        """Pack what is not packed, once it is enough for a piece."""
        time = self._time[self._low : self._high]
        if time.size < PIECE_ROWS or int(time[-1]) - int(time[0]) < PIECE_NS:
            return
        words = self._words[self._low : self._high]
        still = (words == words[0]).all(axis=0)
        alike: dict[tuple[str, int], bytes] = {}
        columns: list[bytes] = []
        for number, kind in enumerate(self.kinds):
            if still[number]:
                key = kind, int(words[0, number])
                if key not in alike:
                    alike[key] = encode(typed(kind, words[:, number]))
                columns.append(alike[key])
            else:
                columns.append(encode(typed(kind, words[:, number])))
        self._pieces.append(_Piece(time.copy(), tuple(columns)))
        self._time, self._words = np.empty(0, np.int64), np.empty((0, len(self.kinds)), np.uint64)
        self._low = self._high = 0

    def _unpack_since(self, begin_ns: int) -> None:
        """Unpack the pieces that reach beyond a time."""
        first = len(self._pieces)
        while first > 0 and int(self._pieces[first - 1].time_ns[-1]) >= begin_ns:
            first -= 1
        opened = self._pieces[first:]
        if not opened:
            return
        skip = self._forgotten if first == 0 else 0
        time = [piece.time_ns for piece in opened]
        words = [np.stack([decode(each).view(np.uint64) for each in piece.columns], axis=1) for piece in opened]
        self._time = np.concatenate([*time, self._time[self._low : self._high]])[skip:]
        self._words = np.concatenate([*words, self._words[self._low : self._high]])[skip:]
        self._low, self._high = 0, self._time.size
        del self._pieces[first:]
        self._forgotten = 0 if first == 0 else self._forgotten

    def _sort(self) -> None:
        """Put the rows that are not packed in order of time; of those with one time the first that came stays."""
        time, first = np.unique(self._time[self._low : self._high], return_index=True)
        words = self._words[self._low : self._high][first]
        self._time, self._words, self._low, self._high = time, words, 0, time.size

    def _make_room(self, n: int) -> None:
        held = self._high - self._low
        size = max(_ROOM, held + n + (held + n) // 4)
        time, words = np.empty(size, np.int64), np.empty((size, len(self.kinds)), np.uint64)
        time[:held] = self._time[self._low : self._high]
        words[:held] = self._words[self._low : self._high]
        self._time, self._words, self._low, self._high = time, words, 0, held
