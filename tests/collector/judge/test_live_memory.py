"""What the live judge keeps takes little memory, and comes back bit for bit."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from soakwatch.judge.live.minutes import MAX_BINS, MINUTE_NS, Minutes
from soakwatch.judge.live.packed_rows import PIECE_NS, PIECE_ROWS, PackedRows
from soakwatch.record.follow import Table

SECOND = 10**9
HOUR = 3600 * SECOND
KINDS = "dqQd"


def rows(times: NDArray[np.int64], rng: np.random.Generator) -> Table:
    """Readings of four series: shares with gaps, a counter that goes back, large numbers, one that never changes."""
    shares = rng.binomial(99, 0.3, times.size) / 99
    shares[rng.random(times.size) < 0.05] = np.nan
    columns = [
        shares.view(np.uint64),
        rng.integers(-(2**60), 2**60, times.size).view(np.uint64),
        rng.integers(2**63, 2**64, times.size, dtype=np.uint64),
        np.full(times.size, -0.0).view(np.uint64),
    ]
    return Table((1, 2, 3, 4), KINDS, times, np.stack(columns, axis=1))


@pytest.mark.parametrize("seed", range(4))
def test_packed_rows_are_those_that_came(seed: int) -> None:
    """Whatever comes late, twice or in which pieces: the rows of the last hour, the first that came of each time."""
    rng = np.random.default_rng(seed)
    kept, model = PackedRows(KINDS), dict[int, NDArray[np.uint64]]()
    every_s, first, late = int(rng.choice([1, 2, 10])), 0, 0
    most = 900 if seed % 2 else 10**6
    for _ in range(150):
        count = int(rng.integers(1, 90))
        back = int(rng.integers(1, 2000)) if rng.random() < 0.1 else 0
        late += back > 0
        times = np.arange(max(first - back, 0), max(first - back, 0) + count, dtype=np.int64) * every_s * SECOND
        table = rows(times, rng)
        for time_ns, row in zip(times.tolist(), table.words, strict=True):
            model.setdefault(time_ns, row)
        kept.add(table)
        kept.forget(max(model) - HOUR, most)
        newest = max(model)
        model = {time_ns: model[time_ns] for time_ns in sorted(model)[-most:] if time_ns >= newest - HOUR}
        first = newest // (every_s * SECOND) + 1
        begin, end = sorted(rng.integers(min(model) - HOUR // 4, max(model) + HOUR // 4, 2).tolist())
        some = int(rng.integers(1, 2000)) if rng.random() < 0.5 else None
        column = int(rng.integers(4))
        due = [time_ns for time_ns in list(model)[-(some or 0) :] if begin <= time_ns < end]
        parts = kept.parts(column, begin, end, some)
        assert [time_ns for part, _ in parts for time_ns in part.tolist()] == due
        came = [word for _, values in parts for word in values.view(np.uint64).tolist()]
        assert came == [int(model[time_ns][column]) for time_ns in due]
        assert (len(kept), kept.first_ns, kept.last_ns) == (len(model), min(model), max(model))
    assert late > 5


def test_an_hour_takes_a_tenth_of_what_came() -> None:
    """1000 series each second, most of which hardly change: pieces of more rows than the least."""
    rng = np.random.default_rng(1)
    series = tuple(range(1000))
    kept = PackedRows("q" * 1000)
    counted = np.zeros(1000, np.int64)
    sizes = list[int]()
    for minute in range(120):
        steps = np.cumsum(rng.poisson(1e-3, (60, 1000)), axis=0) + counted
        counted = steps[-1]
        times = (minute * 60 + np.arange(60, dtype=np.int64)) * SECOND
        kept.add(Table(series, kept.kinds, times, steps.view(np.uint64)))
        kept.forget(kept.last_ns - HOUR, 36_000)
        sizes.append(kept.nbytes)
    assert len(kept) == 3601
    assert PIECE_NS // SECOND > PIECE_ROWS
    assert max(sizes) < 3600 * 1000 * 8 / 10
    hours = [max(sizes[begin:end]) for begin, end in pairwise(range(60, 121, 30))]
    assert hours[1] < 1.1 * hours[0]


class PlainMinutes:
    """What ``Minutes`` promises, as two dictionaries of numbers: the bins of one gauge and of one counter."""

    def __init__(self) -> None:
        self.bin_ns = MINUTE_NS
        self._first: int | None = None  # the first bin, in bins of a minute
        self._newest_ns = -1
        self._gauge: dict[int, tuple[float, int]] = {}
        self._counter: dict[int, float] = {}

    def add(self, times: NDArray[np.int64], gauge: NDArray[np.float64], counter: NDArray[np.int64]) -> None:
        """Take readings, in order of time."""
        if self._first is None:
            self._first = int(times[0]) // self.bin_ns
        while int(times[-1]) // self.bin_ns - self._first >= MAX_BINS:
            self._fold()
        late, self._newest_ns = self._newest_ns >= times[0], max(self._newest_ns, int(times[-1]))
        last: dict[int, float] = {}
        batch: dict[int, list[float]] = {}
        for time_ns, level, count in zip(times.tolist(), gauge.tolist(), counter.tolist(), strict=True):
            if time_ns // self.bin_ns >= self._first:
                batch.setdefault(time_ns // self.bin_ns, []).append(level)
                last[time_ns // self.bin_ns] = float(count)
        for number, levels in batch.items():
            total, n = self._gauge.get(number, (0.0, 0))
            good = [level for level in levels if np.isfinite(level)]
            self._gauge[number] = total + float(sum(good)), n + len(good)
        self._counter |= {number: value for number, value in last.items() if not (late and number in self._counter)}

    def read(self, name: str, begin_ns: int, end_ns: int) -> list[tuple[int, float]]:
        """Middles and values of the bins wholly inside."""
        gauge = {number: total / n for number, (total, n) in self._gauge.items() if n}
        return [
            (number * self.bin_ns + self.bin_ns // 2, value)
            for number, value in sorted((gauge if name == "gauge" else self._counter).items())
            if begin_ns <= number * self.bin_ns and (number + 1) * self.bin_ns <= end_ns
        ]

    def _fold(self) -> None:
        gauge: dict[int, tuple[float, int]] = {}
        for number, (total, n) in sorted(self._gauge.items()):
            before = gauge.get(number // 2, (0.0, 0))
            gauge[number // 2] = before[0] + total, before[1] + n
        self._gauge, self._counter = gauge, {number // 2: value for number, value in sorted(self._counter.items())}
        assert self._first is not None
        self._first //= 2
        self.bin_ns *= 2


@pytest.mark.parametrize("seed", range(6))
def test_minutes_are_the_means_and_the_last_readings_of_what_came(seed: int) -> None:
    """Five days, packed and folded: gaps, catching up in one piece, hours that come late; every bin bit for bit."""
    rng = np.random.default_rng(seed)
    minutes, plain = Minutes(), PlainMinutes()
    begin = int(rng.integers(10**6)) * MINUTE_NS
    now, counted, checked = begin, 0, 0
    while now < begin + 5 * 24 * HOUR:
        size = int(rng.choice([1, 6, 60, 1500], p=[0.2, 0.4, 0.3, 0.1]))
        back = int(rng.integers(1, 30 * 60)) * MINUTE_NS if rng.random() < 0.08 else 0
        times = now - back + np.arange(size, dtype=np.int64) * 20 * SECOND
        gauge = np.asarray(rng.integers(0, 100, size) / 2, dtype=np.float64)  # sums of these are exact in any order
        gauge[rng.random(size) < 0.1] = np.nan
        counter = counted + np.cumsum(rng.integers(0, 5, size))
        counted = int(counter[-1])
        words = np.stack([gauge.view(np.uint64), counter.view(np.uint64)], axis=1)
        minutes.add(Table((7, 9), "dq", times, words), [True, False])
        plain.add(times, gauge, counter)
        now = max(now, int(times[-1])) + (int(rng.integers(400)) * MINUTE_NS if rng.random() < 0.02 else 20 * SECOND)
        if rng.random() < 0.05:
            low, high = sorted(rng.integers(begin - HOUR, now + HOUR, 2).tolist())
            for series, name in ((7, "gauge"), (9, "counter")):
                for window in ((low, high), (begin - HOUR, now + HOUR)):
                    middles, values = minutes.read(series, *window)
                    assert list(zip(middles.tolist(), values.tolist(), strict=True)) == plain.read(name, *window)
                    checked += middles.size
    assert minutes.bin_ns == plain.bin_ns == 2 * MINUTE_NS
    assert checked > 5_000


def test_days_of_minutes_take_a_quarter_of_what_they_are() -> None:
    """72 h of 200 series that wander: the table of the newest hours, and bytes a bin for the rest."""
    rng = np.random.default_rng(1)
    minutes, series = Minutes(), tuple(range(200))
    level = rng.integers(10**8, 10**9, 200) * 4096
    for hour in range(72):
        steps = 4096 * np.cumsum(rng.integers(-20, 21, (60, 200)), axis=0) + level
        level = steps[-1]
        times = (hour * 60 + np.arange(60, dtype=np.int64)) * MINUTE_NS
        minutes.add(Table(series, "q" * 200, times, steps.view(np.uint64)), [True] * 200)
    assert minutes.read(5, 0, 2**62)[0].size == MAX_BINS
    assert minutes.nbytes < MAX_BINS * 200 * 12 / 4
