"""What the live judge keeps takes little memory, and comes back bit for bit."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

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
