"""Means of one minute of every series since the start of the run, in bounded memory.

A gauge is kept as the mean of its minute, a counter or a state as its last sample in it (the mean of a counter that
restarted is meaningless). A minute without samples is missing, never zero. After 72 hours two minutes become one.

The newest bins are a table; older ones are packed by the codec of the record, a piece of each series at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from soakwatch.judge.live.raw_values import Floats, floats
from soakwatch.record.follow import Table, decode, encode
from soakwatch.record.model import Ints

MINUTE_NS = 60_000_000_000
MAX_BINS = 4320  # bins of a series: 72 h of minutes
PIECE_BINS = 128  # bins that are packed at once
_OPEN_BINS = 192  # the least bins of the table; those behind a piece wait for readings that come late
_WHOLE_PIECE = 1024  # bins: a piece that has so many takes no more

Counts = NDArray[np.float32]
_Piece = tuple[int, bytes, bytes]  # bins, their sums, their counts


class Minutes:
    """A row of bins for each series; ``bin_ns`` is the length of a bin."""

    def __init__(self) -> None:
        self.bin_ns = MINUTE_NS
        self._origin: int | None = None  # the number of the first bin
        self._newest_ns: Ints = np.zeros(0, np.int64)  # of each row
        self._rows: dict[int, int] = {}
        self._mean: list[bool] = []
        self._packed: list[list[_Piece]] = []  # of each row; all rows have as many bins packed
        self._packed_bins = 0
        self._sum: Floats = np.zeros((0, _OPEN_BINS))
        self._count: Counts = np.zeros((0, _OPEN_BINS), np.float32)  # exact up to 16 million readings a bin

    def add(self, table: Table, gauges: Sequence[bool]) -> None:
        """Take the readings of a table, in order of time; ``gauges`` says of which columns the mean counts."""
        if not table.time_ns.size:
            return
        values = floats(table.kinds, table.words)
        rows = np.array([self._row(series, mean) for series, mean in zip(table.series, gauges, strict=True)])
        late = bool((self._newest_ns[rows] >= table.time_ns[0]).any())
        self._newest_ns[rows] = np.maximum(self._newest_ns[rows], table.time_ns[-1])
        bin_index = self._bins(table.time_ns)
        inside = bin_index >= 0  # readings from before the first bin came late: the final judgement sees them
        bin_index, values = bin_index[inside], values[inside]
        if not bin_index.size:
            return
        edges = np.flatnonzero(np.append(True, bin_index[1:] != bin_index[:-1]))
        bins, last = bin_index[edges], np.append(edges[1:], bin_index.size) - 1
        good = np.isfinite(values)
        with np.errstate(over="ignore", invalid="ignore"):
            sums = np.add.reduceat(np.where(good, values, 0.0), edges, axis=0)
        counts = np.add.reduceat(good, edges, axis=0, dtype=np.float32)
        newest = values[last]
        old = int(np.searchsorted(bins, self._packed_bins))
        for column, row in enumerate(rows.tolist() if old else ()):
            parts = sums[:old, column], counts[:old, column], newest[:old, column]
            self._add_packed(row, bins[:old], parts, late=late)
        if old < bins.size:
            self._add_open(rows, np.array(gauges), bins[old:], (sums[old:], counts[old:], newest[old:]), late=late)

    def read(self, series: int, begin_ns: int, end_ns: int) -> tuple[Ints, Floats]:
        """The bins wholly inside begin <= time < end that have readings: their middles and values."""
        row = self._rows.get(series)
        if row is None or self._origin is None:
            return np.empty(0, np.int64), np.empty(0)
        low = max(0, -(-begin_ns // self.bin_ns) - self._origin)
        high = min(self._packed_bins + self._sum.shape[1], end_ns // self.bin_ns - self._origin)
        sums, count, first = self._of(row, low, max(low, high))
        bins = np.flatnonzero(count)
        with np.errstate(over="ignore", invalid="ignore"):
            values = sums[bins] / count[bins]
        return (bins + first + self._origin) * self.bin_ns + self.bin_ns // 2, values

    @property
    def nbytes(self) -> int:
        """What it holds in memory."""
        packed = sum(len(sums) + len(counts) for pieces in self._packed for _, sums, counts in pieces)
        return int(self._sum.nbytes + self._count.nbytes + packed)

    def _row(self, series: int, mean: bool) -> int:  # noqa: FBT001
        row = self._rows.get(series)
        if row is None:
            row = self._rows[series] = len(self._rows)
            self._mean.append(mean)
            nothing = _packed(np.zeros(self._packed_bins), np.zeros(self._packed_bins, np.float32))
            self._packed.append([nothing] if self._packed_bins else [])
            if row >= self._sum.shape[0]:
                self._resize(max(16, row + row // 4 + 1))
                self._newest_ns = np.resize(self._newest_ns, self._sum.shape[0])
            self._newest_ns[row] = np.iinfo(np.int64).min
        return row

    def _bins(self, time_ns: Ints) -> Ints:
        """The bins of some times; negative for times before the first."""
        if self._origin is None:
            self._origin = int(time_ns[0]) // self.bin_ns
        while int(time_ns[-1]) // self.bin_ns - self._origin >= MAX_BINS:
            self._fold()
        bins: Ints = time_ns // self.bin_ns - self._origin
        while int(bins[-1]) - self._packed_bins >= _OPEN_BINS:
            self._pack(PIECE_BINS)
        return bins

    def _add_open(
        self, rows: Ints, means: NDArray[np.bool_], bins: Ints, parts: tuple[Floats, Counts, Floats], *, late: bool
    ) -> None:
        """Add to the table: sums and counts of gauges, of others the last reading of each bin."""
        sums, counts, last = parts
        bins = bins - self._packed_bins
        some, others = rows[means], rows[~means]
        with np.errstate(over="ignore", invalid="ignore"):
            self._sum[some[:, None], bins] += sums[:, means].T
            self._count[some[:, None], bins] += counts[:, means].T
        if not others.size:
            return
        newest = last[:, ~means].T
        here = np.isfinite(newest)
        if late:  # only where nothing is: the reading that is there may be a later one
            here &= self._count[others[:, None], bins] == 0
        self._sum[others[:, None], bins] = np.where(here, newest, self._sum[others[:, None], bins])
        self._count[others[:, None], bins] = np.where(here, 1.0, self._count[others[:, None], bins])

    def _add_packed(self, row: int, bins: Ints, parts: tuple[Floats, Counts, Floats], *, late: bool) -> None:
        """Add to bins of one row that are packed: readings that came late, or a past read source by source."""
        begin, pieces = 0, self._packed[row]
        for number, (size, packed_sums, packed_counts) in enumerate(pieces):
            low, high = np.searchsorted(bins, [begin, begin + size])
            if high > low:
                sums, counts = np.array(decode(packed_sums), np.float64), decode(packed_counts).astype(np.float32)
                here, (more, of, newest) = bins[low:high] - begin, (part[low:high] for part in parts)
                if self._mean[row]:
                    with np.errstate(over="ignore", invalid="ignore"):
                        sums[here] += more
                        counts[here] += of
                else:
                    good = np.isfinite(newest) & ((counts[here] == 0) if late else True)
                    sums[here[good]], counts[here[good]] = newest[good], 1.0
                pieces[number] = _packed(sums, counts)
            begin += size

    def _of(self, row: int, low: int, high: int) -> tuple[Floats, Counts, int]:
        """Sums and counts of the bins of a row, as copies, from ``low`` or a little earlier; which bin is the first.

        What lies outside of low <= bin < high has a count of 0.
        """
        sums: list[Floats] = []
        counts: list[Counts] = []
        begin = first = 0
        for size, packed_sums, packed_counts in self._packed[row]:
            if begin + size <= low:
                first = begin + size
            elif begin < high:
                sums.append(np.asarray(decode(packed_sums), np.float64))
                counts.append(decode(packed_counts).astype(np.float32))
            begin += size
        if high > self._packed_bins:
            sums.append(self._sum[row])
            counts.append(self._count[row])
        if not sums:
            return np.empty(0), np.empty(0, np.float32), low
        every, number = np.concatenate(sums), np.concatenate(counts)
        number[: max(0, low - first)] = 0
        number[max(0, high - first) :] = 0
        return every, number, first

    def _pack(self, bins: int) -> None:
        """Pack the oldest bins of the table."""
        for row in range(len(self._rows)):
            sums, counts = self._sum[row, :bins], self._count[row, :bins]
            pieces = self._packed[row]
            if pieces and pieces[-1][0] < _WHOLE_PIECE:
                _, before, number = pieces.pop()
                sums = np.concatenate([np.asarray(decode(before), np.float64), sums])
                counts = np.concatenate([decode(number).astype(np.float32), counts])
            pieces.append(_packed(sums, counts))
        self._packed_bins += bins
        for table in (self._sum, self._count):
            table[:, :-bins] = table[:, bins:].copy()
            table[:, -bins:] = 0

    def _resize(self, rows: int) -> None:
        for name in ("_sum", "_count"):
            old = getattr(self, name)
            new = np.zeros((rows, _OPEN_BINS), old.dtype)
            new[: old.shape[0]] = old
            setattr(self, name, new)

    def _fold(self) -> None:
        """Two bins become one, a row at a time."""
        assert self._origin is not None
        odd = self._origin % 2
        size = self._packed_bins + _OPEN_BINS
        half = (size + odd + 1) // 2
        packed = max(0, (half - _OPEN_BINS + PIECE_BINS - 1) // PIECE_BINS * PIECE_BINS)
        table, number = np.zeros_like(self._sum), np.zeros_like(self._count)
        for row, mean in enumerate(self._mean):
            sums, counts = np.zeros(2 * half), np.zeros(2 * half, np.float32)
            sums[odd : odd + size], counts[odd : odd + size], _ = self._of(row, 0, size)
            early, late = slice(0, None, 2), slice(1, None, 2)
            some = counts[early] + counts[late]
            if mean:
                with np.errstate(over="ignore", invalid="ignore"):
                    folded = sums[early] + sums[late]
            else:
                folded, some = np.where(counts[late] > 0, sums[late], sums[early]), np.minimum(some, 1.0)
            table[row, : half - packed], number[row, : half - packed] = folded[packed:], some[packed:]
            self._packed[row] = _pieces(folded[:packed], some[:packed])
        self._sum, self._count, self._packed_bins = table, number, packed
        self._origin //= 2
        self.bin_ns *= 2


def _packed(sums: Floats, counts: Counts) -> _Piece:
    return sums.size, encode(sums), encode(counts.astype(np.int64))


def _pieces(sums: Floats, counts: Counts) -> list[_Piece]:
    """A row of bins as pieces."""
    return [
        _packed(sums[low : low + _WHOLE_PIECE], counts[low : low + _WHOLE_PIECE])
        for low in range(0, sums.size, _WHOLE_PIECE)
    ]
