"""Caches between two queries of a record: decoded blocks, where blocks lie in time, and counts of readings.

Blocks are never changed or removed, and their numbers only grow: what was read of them stays valid as long as the file
is the same.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from soakwatch.record._recent import Recent
from soakwatch.record.model import Ints, Values

MAX_BYTES = 64 * 2**20
"""Maximum bytes of decoded blocks: about 25 series of 72 h at 1 s."""
_MAX_FILES, _MAX_INDEXES = 8, 500
_MAX_UNPACKED_BYTES = 16 * 2**20  # readings of polls that are not compacted, for each file
_NO_INDEX: Ints = np.zeros((2, 0), dtype=np.int64)

File = tuple[str, int, int, str]
"""Path, device, inode, and when the run began."""
_Key = tuple[File, str, int]
K = TypeVar("K")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Chunks:
    """The chunks of a file that have readings, in order: first and last time of these, source, first and last block,
    last axis; shape (6, n). They are few, also where nearly every series has an axis of its own."""

    columns: Ints

    def touching(self, begin_ns: int | None, end_ns: int | None) -> NDArray[np.bool_]:
        """Mask of shape (n,): the chunks that have times in begin <= time < end."""
        first_ns, last_ns = self.columns[:2]
        touching = np.ones(first_ns.size, np.bool_)
        if begin_ns is not None:
            touching &= last_ns >= begin_ns
        if end_ns is not None:
            touching &= first_ns < end_ns
        return touching

    def of(self, blocks: Ints) -> Ints:
        """The place of the chunk in which each of these blocks is."""
        places: Ints = np.searchsorted(self.columns[3], blocks, side="right") - 1
        return places

    def source(self, chunk: int) -> int:
        """The source whose readings are in a chunk."""
        return int(self.columns[2, chunk])

    def blocks(self, some: NDArray[np.bool_]) -> tuple[int, int]:
        """The lowest and the highest number of the blocks of the chosen chunks; at least one must be chosen."""
        return int(self.columns[3][some].min()), int(self.columns[4][some].max())


NO_CHUNKS = Chunks(np.zeros((6, 0), dtype=np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """How many readings each series (by its number) has in the blocks up to and including ``until``."""

    until: int
    readings: Ints


class BlockCache:
    """The decoded blocks that were used last, by file and number. Safe for several threads."""

    def __init__(self, largest: int = MAX_BYTES) -> None:
        self._largest, self._size = largest, 0
        self._arrays: OrderedDict[_Key, Values] = OrderedDict()
        self._counts: OrderedDict[File, Counted] = OrderedDict()
        self._chunks: OrderedDict[File, Chunks] = OrderedDict()
        self._indexes: OrderedDict[tuple[File, int], Ints] = OrderedDict()
        self._unpacked: OrderedDict[File, Mapping[int, Recent]] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """Bytes of the decoded blocks."""
        return self._size

    def get(
        self, file: File, kind: str, numbers: Sequence[int], make: Callable[[list[int]], Iterable[tuple[int, Values]]]
    ) -> list[Values]:
        """The arrays with these numbers, in this order; ``make`` decodes those that are missing."""
        arrays: dict[int, Values] = {}
        with self._lock:
            for number in numbers:
                array = self._arrays.get((file, kind, number))
                if array is not None:
                    arrays[number] = array
                    self._arrays.move_to_end((file, kind, number))
        missing = [number for number in dict.fromkeys(numbers) if number not in arrays]
        if missing:
            decoded = dict(make(missing))
            self._keep(file, kind, decoded)
            arrays |= decoded
        return [arrays[number] for number in numbers]

    def unpacked(self, file: File) -> Mapping[int, Recent]:
        """By source, the polls that were not compacted when a view of the file was last closed."""
        with self._lock:
            return self._unpacked.get(file, {})

    def keep_unpacked(self, file: File, recent: Mapping[int, Recent]) -> None:
        """Remember such polls for the next view, as far as there is room."""
        kept, left = dict[int, Recent](), _MAX_UNPACKED_BYTES
        for source, polls in {**self.unpacked(file), **recent}.items():
            left -= sum(group.words.nbytes for group in polls.groups.values())
            if left >= 0:
                kept[source] = polls
        with self._lock:
            _put(self._unpacked, file, kept, _MAX_FILES)

    def counted(self, file: File) -> Counted:
        """The counts of a file so far."""
        with self._lock:
            return self._counts.get(file, Counted(0, np.zeros(0, dtype=np.int64)))

    def keep_counted(self, file: File, counted: Counted) -> None:
        """Keep the counts of a file; those of a few files are kept."""
        with self._lock:
            _put(self._counts, file, counted, _MAX_FILES)

    def index(self, file: File, series: int, sql: sqlite3.Connection) -> Ints:
        """Numbers and axes of all blocks of a series, shape (2, n); some may be newer than this snapshot."""
        with self._lock:
            index = self._indexes.get((file, series), _NO_INDEX)
        until = int(index[0, -1]) if index.size else 0
        rows = sql.execute("SELECT id, axis FROM block WHERE series=? AND id>? ORDER BY id", (series, until)).fetchall()
        if rows:
            index = np.concatenate([index, np.array(rows, dtype=np.int64).T], axis=1)
        with self._lock:
            _put(self._indexes, (file, series), index, _MAX_INDEXES)
        return index

    def chunks(self, file: File, sql: sqlite3.Connection) -> Chunks:
        """The chunks of a file; some may be newer than this snapshot."""
        with self._lock:
            chunks = self._chunks.get(file, NO_CHUNKS)
        rows = sql.execute(
            "SELECT min(axis.first_ns), max(axis.last_ns), source, first_block, last_block, max(axis.id)"
            " FROM axis JOIN chunk ON chunk.id = axis.chunk WHERE axis.id>? GROUP BY chunk.id ORDER BY chunk.id",
            (int(chunks.columns[5, -1]) if chunks.columns.size else 0,),
        ).fetchall()
        if rows:
            chunks = Chunks(np.concatenate([chunks.columns, np.array(rows, dtype=np.int64).T], axis=1))
            with self._lock:
                _put(self._chunks, file, chunks, _MAX_FILES)
        return chunks

    def _keep(self, file: File, kind: str, arrays: Mapping[int, Values]) -> None:
        with self._lock:
            for number, array in arrays.items():
                if (file, kind, number) not in self._arrays:
                    array.flags.writeable = False  # shared by all callers
                    self._arrays[file, kind, number] = array
                    self._size += array.nbytes
            while self._size > self._largest and len(self._arrays) > 1:
                self._size -= self._arrays.popitem(last=False)[1].nbytes


def _put(cache: OrderedDict[K, T], key: K, value: T, limit: int) -> None:
    cache[key] = value
    cache.move_to_end(key)
    while len(cache) > limit:
        cache.popitem(last=False)
