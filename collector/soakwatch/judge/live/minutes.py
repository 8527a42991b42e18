"""Means of one minute of every series since the start of the run, in bounded memory.

A gauge is kept as the mean of its minute, a counter or a state as its last sample in it (the mean of a counter that
restarted is meaningless). A minute without samples is missing, never zero. After 72 hours two minutes become one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from soakwatch.judge.live.raw_values import Floats, floats
from soakwatch.record.follow import Table
from soakwatch.record.model import Ints

MINUTE_NS = 60_000_000_000
MAX_BINS = 4320  # bins of a series: 72 h of minutes


class Minutes:
    """A row of bins for each series; ``bin_ns`` is the length of a bin."""

    def __init__(self) -> None:
        self.bin_ns = MINUTE_NS
        self._origin: int | None = None  # the number of the first bin
        self._newest_ns: Ints = np.zeros(0, np.int64)  # of each row
        self._rows: dict[int, int] = {}
        self._mean: list[bool] = []
        self._sum: Floats = np.zeros((0, 0))
        self._count = np.zeros((0, 0), np.float32)  # exact up to 16 million readings a bin

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
        means = np.array(gauges)
        some = rows[means]
        with np.errstate(over="ignore", invalid="ignore"):
            self._sum[some[:, None], bins] += sums[:, means].T
            self._count[some[:, None], bins] += counts[:, means].T
        others = rows[~means]
        if others.size:
            newest = values[last][:, ~means].T
            here = np.isfinite(newest)
            if late:  # only where nothing is: the reading that is there may be a later one
                here &= self._count[others[:, None], bins] == 0
            self._sum[others[:, None], bins] = np.where(here, newest, self._sum[others[:, None], bins])
            self._count[others[:, None], bins] = np.where(here, 1.0, self._count[others[:, None], bins])

    def read(self, series: int, begin_ns: int, end_ns: int) -> tuple[Ints, Floats]:
        """The bins wholly inside begin <= time < end that have readings: their middles and values."""
        row = self._rows.get(series)
        if row is None or self._origin is None:
            return np.empty(0, np.int64), np.empty(0)
        low = max(0, -(-begin_ns // self.bin_ns) - self._origin)
        high = min(self._sum.shape[1], end_ns // self.bin_ns - self._origin)
        if high <= low:
            return np.empty(0, np.int64), np.empty(0)
        count = self._count[row, low:high]
        bins = np.flatnonzero(count)
        with np.errstate(over="ignore", invalid="ignore"):
            values = self._sum[row, low:high][bins] / count[bins]
        return (bins + low + self._origin) * self.bin_ns + self.bin_ns // 2, values

    @property
    def nbytes(self) -> int:
        """What it holds in memory."""
        return int(self._sum.nbytes + self._count.nbytes)

    def _row(self, series: int, mean: bool) -> int:  # noqa: FBT001
        row = self._rows.get(series)
        if row is None:
            row = self._rows[series] = len(self._rows)
            self._mean.append(mean)
            if row >= self._sum.shape[0]:
                self._resize(max(16, row + row // 2 + 1), self._sum.shape[1])
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
        if int(bins[-1]) >= self._sum.shape[1]:
            columns = max(64, self._sum.shape[1])
            while columns <= int(bins[-1]):
                columns = min(MAX_BINS, 2 * columns)
            self._resize(self._sum.shape[0], columns)
        return bins

    def _resize(self, rows: int, columns: int) -> None:
        for name in ("_sum", "_count"):
            old = getattr(self, name)
            new = np.zeros((rows, columns), old.dtype)
            new[: old.shape[0], : old.shape[1]] = old
            setattr(self, name, new)

    def _fold(self) -> None:
        """Two bins become one."""
        assert self._origin is not None
        odd = self._origin % 2
        rows, columns = self._sum.shape
        half = (columns + odd + 1) // 2
        sums, counts = np.zeros((rows, 2 * half)), np.zeros((rows, 2 * half), np.float32)
        sums[:, odd : odd + columns], counts[:, odd : odd + columns] = self._sum, self._count
        early, late = slice(0, None, 2), slice(1, None, 2)
        means = np.zeros(rows, np.bool_)
        means[: len(self._mean)] = self._mean
        with np.errstate(over="ignore", invalid="ignore"):
            both = sums[:, early] + sums[:, late]
        newest = np.where(counts[:, late] > 0, sums[:, late], sums[:, early])
        self._sum = np.ascontiguousarray(np.where(means[:, None], both, newest))
        some = counts[:, early] + counts[:, late]
        self._count = np.where(means[:, None], some, np.minimum(some, 1.0)).astype(np.float32)
        self._origin //= 2
        self.bin_ns *= 2
